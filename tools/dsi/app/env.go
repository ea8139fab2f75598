package app

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/internal/commandline"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/metrics"
	"github.com/dsistore/dsistore/tools/terminal"
)

// An Env is what a command of dsi reads from and prints to.
type Env struct {
	*terminal.Env
	Metrics *metrics.Metrics // nil, which takes what it is told: nobody asked for any
	command string           // that the metrics are of
}

// Interruptible returns standard input, except that a Read which waits for input ends when ctx does.
func (e *Env) Interruptible(ctx context.Context) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(in, struct{ io.Reader }{e.In}, make([]byte, 256<<10))
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	return out
}

// PrintCommitted says what a command that only makes a snapshot did.
func (e *Env) PrintCommitted(table string, made *storage.Snapshot, what string) error {
	if e.JSON {
		return e.PrintJSON(Of(made.Table().Store(), table, made.Info().Number))
	}
	e.Printf("%s in snapshot %d of %s\n", what, made.Info().Number, terminal.OneLine(table))
	return nil
}

// A Head is what a listing is of: it comes first in what --json prints.
type Head struct {
	Store    string `json:"store"`
	Table    string `json:"table,omitempty"`
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// Of returns the Head of a listing. An empty table or a snapshot of 0 is left out.
func Of(store *storage.Store, table string, snapshot uint64) Head {
	return Head{store.Blobs().URI(), table, snapshot}
}

// MetricsFlag is embedded in commands that take long.
type MetricsFlag struct {
	MetricsAddr string `placeholder:"HOST:PORT" help:"Serve Prometheus metrics at this address while the command runs, as in :9464. Without a host, only this machine can reach them; port 0 selects a free port, which is printed. Default: none."`
}

func (f MetricsFlag) metricsAddr() string { return f.MetricsAddr }

// ServeMetrics serves the metrics of the command that was parsed, if it asks for them, until the command ends.
func (e *Env) ServeMetrics(parsed *commandline.Command) error {
	f, ok := parsed.Target.(interface{ metricsAddr() string })
	if !ok || f.metricsAddr() == "" {
		return nil
	}
	m := metrics.New()
	server, err := metrics.Serve(f.metricsAddr(), m)
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	e.AtEnd(server.Close)
	e.Warnf("metrics at %s", server.URL())
	e.Metrics, e.command = m, parsed.Path
	return nil
}
