package engine

import (
	"context"
	"encoding/json"
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

// serveMetrics begins to serve metrics, for as long as the process lives, and returns where. A second call for the same address returns the
// same.
func (e *Engine) serveMetrics(_ context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Addr string `json:"addr"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	e.metricsMu.Lock()
	defer e.metricsMu.Unlock()
	if s := e.metrics.Load(); s != nil {
		if s.asked != p.Addr {
			return nil, usageError{fmt.Errorf("addr: metrics are served at %s already, as %q asked for", s.url, s.asked)}
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

// measured returns the metrics that are served; nil, which takes what it is told, where none are.
func (e *Engine) measured() *metrics.Metrics {
	if s := e.metrics.Load(); s != nil {
		return s.metrics
	}
	return nil
}
