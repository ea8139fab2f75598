package metrics

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dsistore/dsistore/internal/serve"
)

// A Server answers scrapes over HTTP until Close.
type Server struct{ *serve.Server }

// maxScrapes bounds the scrapes that are answered at once: each takes a lock of every reader's counters.
const maxScrapes = 8

// Serve serves at an address, as serve.Serve takes it, what m shows, and what the Go runtime and the system say of the
// process. Who can reach the address can read the metrics: there is no password, and nothing to change.
func Serve(addr string, m *Metrics) (*Server, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "dsistore: /metrics\n")
	})
	s, err := serve.Serve("metrics", addr, mux)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URL returns where the metrics are.
func (s *Server) URL() string { return "http://" + s.Addr().String() + "/metrics" }
