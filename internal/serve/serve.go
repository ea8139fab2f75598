// Package serve answers HTTP at an address that a user gives, which only this machine reaches unless it names a host.
//
//	Serve(what, "host:port", handler) ──> Server ── Addr, Close
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// A Server answers requests until Close.
type Server struct {
	listener net.Listener
	server   http.Server
	done     chan struct{} // closed when serving has ended
}

// Serve serves at an address, host:port; what says in errors whose address it is. Without a host only this machine
// reaches it: 127.0.0.1; to be reached from others a host is named, as 0.0.0.0 is. Port 0 takes a free one.
func Serve(what, addr string, handler http.Handler) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%s address %q: want host:port, or :port for this machine alone", what, addr)
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
		return nil, fmt.Errorf("%s address %q: %w", what, addr, err)
	}
	s := &Server{listener: listener, done: make(chan struct{})}
	s.server = http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ErrServerClosed, or the listener is gone: a job goes on without its metrics
	}()
	return s, nil
}

// Addr returns the address that it answers at.
func (s *Server) Addr() *net.TCPAddr { return s.listener.Addr().(*net.TCPAddr) }

// Close ends the server. A request that is being answered has a second to end, so that the last figures are not cut
// off.
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
