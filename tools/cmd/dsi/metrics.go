package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dsistore/dsistore/tools/metrics"
)

// metricsFlag is embedded in commands that take long.
type metricsFlag struct {
	MetricsAddr string `placeholder:"HOST:PORT" help:"While the command runs, serve Prometheus metrics there, as in :9464. Without a host only this machine reaches them; port 0 takes a free one, which is printed. Default: none."`
}

func (f metricsFlag) metricsAddr() string { return f.MetricsAddr }

type metricsKey struct{}

// metricsOf returns the metrics of the command that ctx is of; nil, which takes what it is told, where nobody asked for any.
func metricsOf(ctx context.Context) *metrics.Metrics {
	m, _ := ctx.Value(metricsKey{}).(*metrics.Metrics)
	return m
}

// serveMetrics serves the metrics of the command that was parsed, if it was asked to, until stop, and returns the context to run it with.
func (a *app) serveMetrics(ctx context.Context, parsed *kong.Context) (_ context.Context, stop func(), err error) {
	none := func() {}
	command := parsed.Selected()
	if command == nil || !command.Target.CanAddr() {
		return ctx, none, nil
	}
	f, ok := command.Target.Addr().Interface().(interface{ metricsAddr() string })
	if !ok || f.metricsAddr() == "" {
		return ctx, none, nil
	}
	m := metrics.New()
	server, err := metrics.Serve(f.metricsAddr(), m)
	if err != nil {
		return ctx, none, usageError{Err: err}
	}
	fmt.Fprintf(a.err, "dsi: metrics at %s\n", server.URL())
	a.metrics, a.command = m, strings.TrimSpace(command.Path())
	return context.WithValue(ctx, metricsKey{}, m), func() { _ = server.Close() }, nil
}
