package engine

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/tools/metrics"
)

// A metricsServer serves the metrics of what the process opens after it was begun.
type metricsServer struct {
	metrics *metrics.Metrics
	server  *metrics.Server
	asked   string // the address that was asked for
	url     string
}

type metricsParams struct {
	Addr string `json:"addr"`
}

// serveMetrics begins to serve metrics, for as long as the process lives, and returns their URL. A second call for the
// same address returns the same.
func (e *Engine) serveMetrics(_ context.Context, p *metricsParams) (any, error) {
	e.metricsMu.Lock()
	defer e.metricsMu.Unlock()
	if s := e.metrics.Load(); s != nil {
		if s.asked != p.Addr {
			err := fmt.Errorf("addr: metrics are served at %s already, as %q asked for", s.url, s.asked)
			return nil, usageError{err}
		}
		return s.url, nil
	}
	m := metrics.New()
	server, err := metrics.Serve(p.Addr, m)
	if err != nil {
		return nil, usageError{err}
	}
	e.metrics.Store(&metricsServer{m, server, p.Addr, server.URL()})
	return server.URL(), nil
}

// measured returns the metrics that are served; nil, whose methods do nothing, where none are.
func (e *Engine) measured() *metrics.Metrics {
	if s := e.metrics.Load(); s != nil {
		return s.metrics
	}
	return nil
}
