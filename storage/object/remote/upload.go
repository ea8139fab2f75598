package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/storage/object"
)

const (
	// PartBytes is the size of a part: S3's least is 5 MiB, and at most maxParts make an object. Google Cloud Storage
	// wants a multiple of 256 KiB.
	PartBytes = 8 << 20
	maxParts  = 10_000
)

// errEnded is the error of a writer that was committed or aborted.
var errEnded = errors.New("the writer has ended")

// An Upload makes one object of a service. Its errors are those of an object.Store.
type Upload interface {
	// Put makes the object by one request. It is called alone: neither Begin nor any other is called then.
	Put(ctx context.Context, data []byte) error
	// Begin begins an upload in parts. It is called once.
	Begin(ctx context.Context) error
	// AtOnce is how many parts may be on their way at once.
	AtOnce() int
	// Part sends the part of a number, from 0 on: of PartBytes, but for the last, and in order, if AtOnce is 1. data is
	// borrowed until it returns.
	Part(ctx context.Context, number int, data []byte) error
	// Complete makes the object of the first n parts, which have been sent, and of last, which is empty, unless AtOnce
	// is 1: a service that takes parts in order wants to know which is the last.
	Complete(ctx context.Context, n int, last []byte) error
	// Abort ends an upload in parts that was begun and makes no object. Its context is that of Create.
	Abort(ctx context.Context)
}

// An UploadWriter writes an object by an Upload: by one request if it is at most a part, else by parts that are sent
// while it is written. It holds one part more than are on their way. Its owner's goroutine uses it.
type UploadWriter struct {
	ctx  context.Context // of Create
	name string
	to   Upload

	part   []byte // that is being filled
	begun  bool
	parts  int // that were sent
	group  *errgroup.Group
	gctx   context.Context // of the parts that are sent
	cancel func()          // of gctx
	ended  bool

	mu   sync.Mutex
	free [][]byte // buffers of parts that were sent; guarded by mu
}

var _ object.Writer = (*UploadWriter)(nil)

// NewUploadWriter returns what writes an object. It makes no request. ctx is that of Create.
func NewUploadWriter(ctx context.Context, name string, to Upload) (*UploadWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return &UploadWriter{ctx: ctx, name: name, to: to}, nil
}

// Begin begins an upload in parts, however small the object is.
func (w *UploadWriter) Begin() error {
	if err := w.to.Begin(w.ctx); err != nil {
		return err
	}
	w.begun = true
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	w.group, w.gctx = errgroup.WithContext(ctx)
	w.group.SetLimit(w.to.AtOnce())
	return nil
}

// usable returns an error if the writer or the context of its Create has ended.
func (w *UploadWriter) usable() error {
	if w.ended {
		return fmt.Errorf("object %s: %w", w.name, errEnded)
	}
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("object %s: the context that it was created under has ended: %w", w.name, err)
	}
	return nil
}

// Write copies p into parts, and sends those that are full. The error of a part is that of a later Write or of Commit.
func (w *UploadWriter) Write(p []byte) (int, error) {
	n := len(p)
	if err := w.usable(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		if len(w.part) == PartBytes {
			if err := w.send(); err != nil {
				return 0, err
			}
		}
		k := min(len(p), PartBytes-len(w.part))
		w.part = append(w.part, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

// send starts sending the part. It begins the upload if need be, and waits while enough parts are on their way.
func (w *UploadWriter) send() error {
	if !w.begun {
		if err := w.Begin(); err != nil {
			return err
		}
	}
	if err := w.gctx.Err(); err != nil { // a part's error, or the context has ended
		return cmp.Or(w.group.Wait(), fmt.Errorf("object %s: %w", w.name, err))
	}
	if w.parts == maxParts {
		return fmt.Errorf("object %s: more than %d bytes", w.name, maxParts*PartBytes)
	}
	part, number := w.part, w.parts
	w.parts++
	w.group.Go(func() error {
		if err := w.to.Part(w.gctx, number, part); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.free = append(w.free, part)
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := len(w.free) - 1; k >= 0 {
		w.part, w.free = w.free[k][:0], w.free[:k]
	} else {
		w.part = make([]byte, 0, PartBytes)
	}
	return nil
}

// Commit makes the object: by one request where it is less than a part.
func (w *UploadWriter) Commit(ctx context.Context) error {
	if err := w.usable(); err != nil {
		w.Abort()
		return err
	}
	if err := ctx.Err(); err != nil {
		w.Abort()
		return fmt.Errorf("object %s: %w", w.name, err)
	}
	// It ends with the context of Create, too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if !w.begun {
		w.ended = true
		return w.to.Put(ctx, w.part)
	}
	err := w.complete(ctx)
	if err != nil {
		w.Abort()
	}
	w.ended = true
	w.cancel()
	return err
}

func (w *UploadWriter) complete(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.cancel)()
	last := w.part
	if len(last) > 0 && w.to.AtOnce() > 1 {
		if err := w.send(); err != nil {
			return err
		}
		last = nil
	}
	if err := w.group.Wait(); err != nil {
		if end := ctx.Err(); end != nil {
			err = fmt.Errorf("object %s: %w", w.name, end)
		}
		return err
	}
	return w.to.Complete(ctx, w.parts, last)
}

// Abort ends an upload in parts.
func (w *UploadWriter) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	if !w.begun {
		return
	}
	w.cancel()
	_ = w.group.Wait() // a part that arrives after the end of its upload may stay
	w.to.Abort(w.ctx)
}
