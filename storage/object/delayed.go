package object

import (
	"context"
	"iter"
	"time"
)

// Delayed is a Store whose every request takes Latency longer, as over a network. A List waits once.
type Delayed struct {
	Store
	Latency time.Duration
}

// NewDelayed returns a Delayed over s.
func NewDelayed(s Store, latency time.Duration) *Delayed { return &Delayed{Store: s, Latency: latency} }

// Unwrap returns the store under it.
func (d *Delayed) Unwrap() Store { return d.Store }

// HighLatency reports whether requests are delayed at all.
func (d *Delayed) HighLatency() bool { return d.Latency > 0 }

// wait waits for Latency or returns ctx.Err().
func (d *Delayed) wait(ctx context.Context) error {
	t := time.NewTimer(d.Latency)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Delayed) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.ReadAt(ctx, name, p, off)
}

// ReadWhole is one request, as of a service.
func (d *Delayed) ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	if err := d.wait(ctx); err != nil {
		return nil, 0, err
	}
	return ReadWhole(ctx, d.Store, name, most)
}

func (d *Delayed) Stat(ctx context.Context, name string) (Info, error) {
	if err := d.wait(ctx); err != nil {
		return Info{}, err
	}
	return d.Store.Stat(ctx, name)
}

func (d *Delayed) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.PutIfAbsent(ctx, name, data)
}

func (d *Delayed) Create(ctx context.Context, name string) (Writer, error) {
	w, err := d.Store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &delayedWriter{Writer: w, d: d}, nil
}

type delayedWriter struct {
	Writer
	d *Delayed
}

func (w *delayedWriter) Commit(ctx context.Context) error {
	if err := w.d.wait(ctx); err != nil {
		return err
	}
	return w.Writer.Commit(ctx)
}

func (d *Delayed) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := d.wait(ctx); err != nil {
			yield(Info{}, err)
			return
		}
		d.Store.List(ctx, prefix, startAfter)(yield)
	}
}

func (d *Delayed) Delete(ctx context.Context, name string) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.Delete(ctx, name)
}

func (d *Delayed) Truncate(ctx context.Context, of Info) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.Truncate(ctx, of)
}
