package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Server answers scrapes over HTTP until Close.
type Server struct {
	listener net.Listener
	server   http.Server
	done     chan struct{} // closed when serving has ended
}

// maxScrapes bounds the scrapes that are answered at once: each takes a lock of every reader's counters.
const maxScrapes = 8

// Serve serves at an address, host:port, what m shows, and what the Go runtime and the system say of the process.
// Without a host only this machine reaches it: 127.0.0.1; to be reached from others a host is named, as 0.0.0.0 is.
// Port 0 takes a free one. Who can reach the address can read the metrics: there is no password, and nothing to change.
func Serve(addr string, m *Metrics) (*Server, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("metrics address %q: want host:port, or :port for this machine alone", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // "tcp" would take 0.0.0.0 for all of IPv6 too
	}
	listener, err := net.Listen(network, net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("metrics address %q: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "dsistore: /metrics\n")
	})
	s := &Server{listener: listener, done: make(chan struct{})}
	s.server = http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ErrServerClosed, or the listener is gone: a job goes on without its metrics
	}()
	return s, nil
}

// URL returns where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Close ends the server. A scrape that is being answered has a second to end, so that the last figures are not cut off.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	<-s.done
	return err
}
