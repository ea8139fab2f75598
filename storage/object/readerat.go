package object

import (
	"context"
	"errors"
	"io"
)

// ReaderAt returns one object as an io.ReaderAt, for packages that know no stores. It lives for one call, and so may
// hold its context. A read behind the end is io.ErrUnexpectedEOF.
func ReaderAt(ctx context.Context, blobs Store, name string) io.ReaderAt {
	return readerAt{ctx, blobs, name}
}

type readerAt struct {
	ctx   context.Context
	blobs Store
	name  string
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	err := r.blobs.ReadAt(r.ctx, r.name, p, off)
	switch {
	case err == nil:
		return len(p), nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, io.ErrUnexpectedEOF
	}
	return 0, err
}
