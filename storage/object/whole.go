package object

import (
	"context"
	"errors"
	"io"
)

// wholeReader is a store that reads an object whose size is not known by one request.
type wholeReader interface {
	// ReadWhole is the function ReadWhole of the store.
	ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error)
}

// ReadWhole returns the bytes of an object, which are the caller's, and their number. Of an object of more than most
// bytes it returns the number alone. A service is asked once for one that is small; other stores are asked for the size
// first.
func ReadWhole(ctx context.Context, s Store, name string, most int64) ([]byte, int64, error) {
	if w, ok := s.(wholeReader); ok {
		return w.ReadWhole(ctx, name, most)
	}
	info, err := s.Stat(ctx, name)
	if err != nil || info.Size > most {
		return nil, info.Size, err
	}
	b := make([]byte, info.Size)
	return b, info.Size, s.ReadAt(ctx, name, b, 0)
}

// partReader is a store that reads what an object has of a range by one request.
type partReader interface {
	// ReadUpTo is the function ReadUpTo of the store.
	ReadUpTo(ctx context.Context, name string, p []byte, off int64) (n int, err error)
}

// ReadUpTo fills p from off on, or as much of it as the object has, and returns how many bytes that are.
func ReadUpTo(ctx context.Context, s Store, name string, p []byte, off int64) (n int, err error) {
	if r, ok := s.(partReader); ok {
		return r.ReadUpTo(ctx, name, p, off)
	}
	if err = s.ReadAt(ctx, name, p, off); !errors.Is(err, io.ErrUnexpectedEOF) {
		return len(p), err
	}
	info, err := s.Stat(ctx, name)
	if err != nil {
		return 0, err
	}
	n = int(max(0, min(int64(len(p)), info.Size-off)))
	if n == 0 {
		return 0, nil
	}
	return n, s.ReadAt(ctx, name, p[:n], off)
}
