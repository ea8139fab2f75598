package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

const (
	// bodyAttempts is how often a range is asked for while bodies end early or stall without one byte of it.
	bodyAttempts = 5
	// stall is how long a body may give no byte.
	stall = 20 * time.Second
	// whole is how much of an object of unknown size is asked for at first.
	whole = 256 << 10
)

// An Answer is that of a service to a request for a range.
type Answer struct {
	Body   io.ReadCloser // owned by the receiver, which closes it
	Length int64         // of the body; -1: not said
	From   int64         // offset in the object of the body's first byte
	Size   int64         // of the object; -1: not said
}

// A Get sends one request for n bytes of an object from off on. It returns io.EOF where the object ends before off, and
// else errors as the methods of object.Store do. ctx ends when the body has been read.
type Get func(ctx context.Context, off, n int64) (Answer, error)

// NewAnswer returns the Answer of a body. length is the value of Content-Length, -1 without one; contentRange is that
// of Content-Range, "" without one: then the body is the whole object.
func NewAnswer(body io.ReadCloser, length int64, contentRange string) Answer {
	a := Answer{Body: body, Length: length, Size: length}
	if contentRange == "" {
		return a
	}
	a.From, a.Size = -1, -1
	span, total, _ := strings.Cut(strings.TrimPrefix(contentRange, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	if from, err := strconv.ParseInt(first, 10, 64); err == nil && from >= 0 {
		a.From = from
	}
	if size, err := strconv.ParseInt(total, 10, 64); err == nil && size >= 0 {
		a.Size = size
	}
	return a
}

// errBody is matched by an error of a body, after the service has answered.
var errBody = errors.New("the answer's body broke off")

// ReadAt is the method ReadAt of an object.Store, but for an empty p, which is ReadNothing's: it asks for the range,
// and again for the rest where a body ends early or stalls.
func ReadAt(ctx context.Context, name string, p []byte, off int64, get Get) error {
	n, err := ReadUpTo(ctx, name, p, off, get)
	if err == nil && n < len(p) {
		err = fmt.Errorf("object %s: read of %d bytes at %d: %w", name, len(p)-n, off+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}

// ReadNothing is the method ReadAt of a Store for an empty p: it asks how long the object is.
func ReadNothing(ctx context.Context, s object.Store, name string, off int64) error {
	if off < 0 {
		return negative(name, off)
	}
	info, err := s.Stat(ctx, name)
	if err == nil && off > info.Size {
		err = fmt.Errorf("object %s of %d bytes: read at %d: %w", name, info.Size, off, io.ErrUnexpectedEOF)
	}
	return err
}

func negative(name string, off int64) error {
	return fmt.Errorf("object %s: read at negative offset %d", name, off)
}

// ReadUpTo is ReadAt of as much of the range as the object has: n bytes.
func ReadUpTo(ctx context.Context, name string, p []byte, off int64, get Get) (n int, err error) {
	if off < 0 {
		return 0, negative(name, off)
	}
	for attempt := 1; ; attempt++ {
		k, short, _, err := read(ctx, name, p[n:], off+int64(n), get)
		n += k
		switch {
		case n == len(p) || short:
			return n, nil
		case ctx.Err() != nil:
			return n, fmt.Errorf("object %s: %w", name, ctx.Err())
		case k > 0:
			attempt = 0 // it goes on
		case !errors.Is(err, errBody), attempt == bodyAttempts:
			return n, err
		}
	}
}

// ReadWhole is the function object.ReadWhole of a store: it asks for the beginning of an object, and the answer says
// how long it is.
func ReadWhole(ctx context.Context, name string, most int64, get Get) ([]byte, int64, error) {
	begin := make([]byte, max(1, min(whole, most)))
	n, short, size, err := read(ctx, name, begin, 0, get)
	if short { // where it has no bytes too
		size, err = int64(n), nil
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, 0, fmt.Errorf("object %s: %w", name, ctx.Err())
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
		return all, size, ReadAt(ctx, name, rest, int64(n), get)
	}
	return all, size, nil
}

// read makes one request, and returns how many bytes of p it has filled. short: the object ends there. size is that of
// the object, -1 where the answer does not say it.
func read(ctx context.Context, name string, p []byte, off int64, get Get) (n int, short bool, size int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := get(ctx, off, int64(len(p)))
	if err == io.EOF {
		return 0, true, -1, nil
	}
	if err != nil {
		return 0, false, -1, err
	}
	defer a.Body.Close()
	if a.From != off {
		return 0, false, -1, fmt.Errorf("object %s: asked for bytes from %d on, and the service answered with those "+
			"from %d on: it keeps no ranges", name, off, a.From)
	}
	timer := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no byte for %s", stall)) })
	defer timer.Stop()
	for n < len(p) && err == nil {
		var k int
		k, err = a.Body.Read(p[n:])
		n += k
		timer.Reset(stall)
	}
	if n == len(p) {
		return n, false, a.Size, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	// A service may answer with less than it was asked for. It is the end where that is the object's.
	if err == io.EOF && a.Length == int64(n) && (a.Size < 0 || off+int64(n) == a.Size) {
		return n, true, a.Size, nil
	}
	return n, false, a.Size, fmt.Errorf("object %s: %w after %d of %d bytes: %w", name, errBody, n, len(p), err)
}
