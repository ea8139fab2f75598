package simulate

import (
	"bytes"
	"context"
	"iter"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
)

// A client is how a machine sees the store: each request waits until the scheduler carries it out.
type client struct {
	m *machine
}

func (c *client) URI() string { return "simulated" }

// HighLatency reports whether requests take long for the machine, so that the code asks for several things at once.
func (c *client) HighLatency() bool { return c.m.far }

func (c *client) ask(ctx context.Context, o *operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(o.data) > sst.BlockSize {
		c.m.r.blocks.Store(true)
	}
	return c.m.ask(o)
}

func (c *client) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	return c.ask(ctx, &operation{kind: opRead, name: name, p: p, off: off})
}

func (c *client) Stat(ctx context.Context, name string) (object.Info, error) {
	o := &operation{kind: opStat, name: name}
	err := c.ask(ctx, o)
	return o.info, err
}

func (c *client) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return c.ask(ctx, &operation{kind: opPut, name: name, data: bytes.Clone(data)})
}

func (c *client) Create(ctx context.Context, name string) (object.Writer, error) {
	if r, ok := ctx.Value(recorderKey{}).(*recorder); ok {
		return r.create(name), nil
	}
	if err := c.ask(ctx, &operation{kind: opCreate, name: name}); err != nil {
		return nil, err
	}
	return &clientWriter{c: c, name: name}, nil
}

// A clientWriter keeps an object until it is whole: nobody sees any of it before.
type clientWriter struct {
	blobWriter
	c    *client
	name string
}

func (w *clientWriter) Commit(ctx context.Context) error {
	w.put = func(data []byte) error { return w.c.ask(ctx, &operation{kind: opPut, name: w.name, data: data}) }
	return w.blobWriter.Commit(ctx)
}

func (c *client) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for after := startAfter; ; {
			o := &operation{kind: opList, name: prefix, after: after}
			if err := c.ask(ctx, o); err != nil {
				yield(object.Info{}, err)
				return
			}
			for _, info := range o.page {
				if !yield(info, nil) {
					return
				}
				after = info.Name
			}
			if !o.more {
				return
			}
		}
	}
}

func (c *client) Truncate(ctx context.Context, of object.Info) error {
	return c.ask(ctx, &operation{kind: opTruncate, name: of.Name, meant: of})
}

func (c *client) Delete(ctx context.Context, name string) error {
	return c.ask(ctx, &operation{kind: opDelete, name: name})
}
