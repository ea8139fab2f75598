package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Part is a service's answer to a request for a range of an object.
type Part struct {
	// Body has the range's bytes, fewer where the object ends before; its reader closes it. nil: the object ends before
	// the range begins.
	Body io.ReadCloser
	// Length is how many bytes Body should have, and Size how many the object has; -1: the service does not say it.
	Length, Size int64
}

// A Fetch makes one request for n bytes of an object from off on. Its errors are those of a Store. The context lives as
// long as the body is read.
type Fetch func(ctx context.Context, off int64, n int) (Part, error)

const (
	// bodyAttempts is how often what is left of a range is asked for after a body ended early or stalled.
	bodyAttempts = 5
	// stall is how long a body may give no byte.
	stall = 20 * time.Second
)

// errBody is matched by an error of a body, after the service has answered.
var errBody = errors.New("the answer's body broke off")

// ReadAt is Store.ReadAt of an object of a service: it asks for the range, and again for what is left of it where a
// body ends early or stalls. s is asked for the object's size where p is empty.
func (f Fetch) ReadAt(ctx context.Context, s Store, name string, p []byte, off int64) error {
	if err := checkRange(name, off); err != nil {
		return err
	}
	if len(p) == 0 {
		info, err := s.Stat(ctx, name)
		if err == nil && off > info.Size {
			err = shortRead(name, 0, off, info.Size)
		}
		return err
	}
	for attempt := 1; ; attempt++ {
		n, short, _, err := f.read(ctx, name, p, off)
		p, off = p[n:], off+int64(n)
		switch {
		case len(p) == 0:
			return nil
		case short:
			return fmt.Errorf("object %s: read of %d bytes at %d: %w", name, len(p), off, io.ErrUnexpectedEOF)
		case n == 0 && !errors.Is(err, errBody), attempt == bodyAttempts, ctx.Err() != nil:
			return err
		}
		if n > 0 {
			attempt = 0 // it goes on
		}
	}
}

// firstBytes is how much of an object of unknown size is asked for at first.
const firstBytes = 256 << 10

// ReadWhole is the function ReadWhole of an object of a service. It asks for the beginning: the answer says how long
// the object is.
func (f Fetch) ReadWhole(ctx context.Context, s Store, name string, most int64) ([]byte, int64, error) {
	begin := make([]byte, max(1, min(firstBytes, most)))
	n, short, size, err := f.read(ctx, name, begin, 0)
	if short { // where it has no bytes too
		size, err = int64(n), nil
	}
	switch {
	case err != nil && !errors.Is(err, errBody), size < 0 && err != nil:
		return nil, 0, err
	case size < int64(n):
		return nil, 0, fmt.Errorf("object %s: the service does not say how long it is", name)
	case size > most:
		return nil, size, nil
	}
	all := make([]byte, size)
	copy(all, begin[:n])
	if rest := all[n:]; len(rest) > 0 {
		err = f.ReadAt(ctx, s, name, rest, int64(n))
	} else {
		err = nil
	}
	return all, size, err
}

// read makes one request, and returns how many bytes of p it has filled. short: the object ends there. size is that of
// the object, -1 where the answer does not say it.
func (f Fetch) read(ctx context.Context, name string, p []byte, off int64) (n int, short bool, size int64, err error) {
	bctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	part, err := f(bctx, off, len(p))
	if err != nil {
		return 0, false, -1, err
	}
	if part.Body == nil {
		return 0, true, -1, nil
	}
	defer part.Body.Close()
	timer := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no byte for %s", stall)) })
	defer timer.Stop()
	for n < len(p) && err == nil {
		var k int
		k, err = part.Body.Read(p[n:])
		n += k
		timer.Reset(stall)
	}
	if n == len(p) {
		return n, false, part.Size, nil
	}
	if end := ctx.Err(); end != nil {
		return n, false, part.Size, fmt.Errorf("object %s: %w", name, end)
	}
	if cause := context.Cause(bctx); cause != nil {
		err = cause
	}
	if err == io.EOF && part.Length == int64(n) {
		return n, true, part.Size, nil
	}
	return n, false, part.Size, fmt.Errorf("object %s: %w after %d of %d bytes: %w", name, errBody, n, len(p), err)
}
