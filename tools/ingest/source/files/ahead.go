package files

import (
	"context"
	"io"
)

// ahead reads an object from its beginning: while one block is consumed, the next one is asked for. Not safe for
// concurrent use.
type ahead struct {
	blocks chan block // closed after the last
	cancel context.CancelFunc
	ctx    context.Context
	left   int64  // bytes of the object that blocks have not brought yet
	now    []byte // what is left of the current block
	err    error
}

type block struct {
	b   []byte
	err error
}

// newAhead begins to read at once. It ends with ctx, or with Close.
func newAhead(ctx context.Context, at *bucket, of *described) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{blocks: make(chan block), cancel: cancel, ctx: ctx, left: of.Size}
	go func() {
		defer close(a.blocks)
		for off := int64(0); off < of.Size; {
			n := block{b: make([]byte, min(requestBytes, of.Size-off))}
			n.err = at.read(ctx, of, n.b, off)
			select {
			case a.blocks <- n:
			case <-ctx.Done():
				return
			}
			if n.err != nil {
				return
			}
			off += int64(len(n.b))
		}
	}()
	return a
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.now) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		next, ok := <-a.blocks
		switch {
		case ok && next.err == nil:
			a.now, a.left = next.b, a.left-int64(len(next.b))
		case ok:
			a.err = next.err
		case a.left > 0:
			a.err = a.ctx.Err()
		default:
			a.err = io.EOF
		}
	}
	n := copy(p, a.now)
	a.now = a.now[n:]
	return n, nil
}

// Close ends the reading, and waits for what reads ahead.
func (a *ahead) Close() error {
	a.cancel()
	for range a.blocks {
	}
	return nil
}
