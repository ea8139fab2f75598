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
	Body    io.ReadCloser // owned by the receiver, which closes it
	Length  int64         // of the body; -1: not said
	From    int64         // offset in the object of the body's first byte
	Size    int64         // of the object; -1: not said
	Version string        // of the object, as object.Info has it; empty: not said
}

// A Get sends one request for n bytes of an object from off on, if it has the version; empty: whatever it has. It
// returns io.EOF where the object ends before off, object.ErrChanged where it has another version, and else errors as
// the methods of object.Store do. ctx ends when the body has been read.
type Get func(ctx context.Context, name, version string, off, n int64) (Answer, error)

// NewAnswer returns the Answer of a body. length is the value of Content-Length, -1 without one; contentRange is that
// of Content-Range, "" without one: then the body is the whole object.
func NewAnswer(body io.ReadCloser, length int64, contentRange, version string) Answer {
	a := Answer{Body: body, Length: length, Size: length, Version: version}
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

// A Reader has the methods by which an object.Store reads.
type Reader struct {
	Get  Get
	Head func(ctx context.Context, name string) (object.Info, error) // the Store's Stat
}

// ReadAt asks for the range, and again for what is left of it where a body ends early or stalls.
func (r *Reader) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if err := object.ValidateName(name); err != nil {
		return err
	}
	if len(p) > 0 {
		return r.ReadVersion(ctx, object.Info{Name: name}, p, off)
	}
	if off < 0 {
		return negative(name, off)
	}
	info, err := r.Head(ctx, name)
	if err == nil && off > info.Size {
		err = fmt.Errorf("object %s of %d bytes: read at %d: %w", name, info.Size, off, io.ErrUnexpectedEOF)
	}
	return err
}

// ReadVersion is the method ReadAt of an object.Bucket: its objects have any name, and the version of the description.
func (r *Reader) ReadVersion(ctx context.Context, of object.Info, p []byte, off int64) error {
	n, err := r.readUpTo(ctx, of, p, off)
	if err == nil && n < len(p) {
		err = fmt.Errorf("object %s: read of %d bytes at %d: %w", of.Name, len(p)-n, off+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}

func negative(name string, off int64) error {
	return fmt.Errorf("object %s: read at negative offset %d", name, off)
}

// ReadUpTo is ReadAt of as much of the range as the object has: n bytes.
func (r *Reader) ReadUpTo(ctx context.Context, name string, p []byte, off int64) (n int, err error) {
	if err := object.ValidateName(name); err != nil {
		return 0, err
	}
	return r.readUpTo(ctx, object.Info{Name: name}, p, off)
}

func (r *Reader) readUpTo(ctx context.Context, of object.Info, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, negative(of.Name, off)
	}
	for attempt := 1; ; attempt++ {
		k, short, _, err := r.read(ctx, of, p[n:], off+int64(n))
		n += k
		switch {
		case n == len(p) || short:
			return n, nil
		case ctx.Err() != nil:
			return n, fmt.Errorf("object %s: %w", of.Name, ctx.Err())
		case k > 0:
			attempt = 0 // it goes on
		case !errors.Is(err, errBody), attempt == bodyAttempts:
			return n, err
		}
	}
}

// ReadWhole is the function object.ReadWhole of a store: it asks for the beginning of an object, and the answer says
// how long it is. The rest is that of the same version: one that was truncated meanwhile is read again.
func (r *Reader) ReadWhole(ctx context.Context, name string, most int64) (all []byte, size int64, err error) {
	if err := object.ValidateName(name); err != nil {
		return nil, 0, err
	}
	for range 2 { // it is truncated once
		if all, size, err = r.readWhole(ctx, name, most); !errors.Is(err, object.ErrChanged) {
			break
		}
	}
	return all, size, err
}

func (r *Reader) readWhole(ctx context.Context, name string, most int64) ([]byte, int64, error) {
	begin := make([]byte, max(1, min(whole, most)))
	n, short, a, err := r.read(ctx, object.Info{Name: name}, begin, 0)
	size := a.Size
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
		err = r.ReadVersion(ctx, object.Info{Name: name, Version: a.Version}, rest, int64(n))
	}
	return all, size, err
}

// read makes one request, and returns how many bytes of p it has filled. short: the object ends there. Of the answer,
// whose body is closed, the size is -1 where it is not known.
func (r *Reader) read(ctx context.Context, of object.Info, p []byte, off int64) (n int, short bool, a Answer,
	err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	none := Answer{Size: -1}
	a, err = r.Get(ctx, of.Name, of.Version, off, int64(len(p)))
	if err == io.EOF {
		return 0, true, none, nil
	}
	if err != nil {
		return 0, false, none, err
	}
	defer a.Body.Close()
	if of.Version != "" && a.Version != of.Version { // a service that takes no notice of the condition
		return 0, false, none, object.Changed(of.Name)
	}
	if a.From != off {
		return 0, false, none, fmt.Errorf("object %s: asked for bytes from %d on, and the service answered with those "+
			"from %d on: it keeps no ranges", of.Name, off, a.From)
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
		return n, false, a, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	// A service may answer with less than it was asked for. It is the end where that is the object's.
	if err == io.EOF && a.Length == int64(n) && (a.Size < 0 || off+int64(n) == a.Size) {
		return n, true, a, nil
	}
	return n, false, a, fmt.Errorf("object %s: %w after %d of %d bytes: %w", of.Name, errBody, n, len(p), Lost(err))
}

// Lost returns the error of a request that got no whole answer, so that it does not match io.EOF and
// io.ErrUnexpectedEOF: a connection has ended, and for a Store these mean that an object has, which is damage.
func Lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New(err.Error())
	}
	return err
}
