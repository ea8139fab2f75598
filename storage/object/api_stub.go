// Package object stores blobs.
package object

// STUB: the signatures; the storage owner replaces this file.

import (
	"context"
	"errors"
	"io"
	"iter"
)

var (
	// ErrNotFound is matched when the named object does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrExists is matched by PutIfAbsent when the name is taken.
	ErrExists = errors.New("object exists")
)

// Info describes an object.
type Info struct {
	Name string
	Size int64
	// ModTime in Unix nanoseconds, for gc's grace period.
	ModTime int64
}

// A Writer streams a new object, which exists, durable and whole, once Commit returns nil, and not before.
type Writer interface {
	io.Writer
	Commit(ctx context.Context) error
	Abort()
}

// A Store holds immutable objects under slash-separated names. All methods are safe for concurrent use.
type Store interface {
	// ReadAt fills p from off; io.ErrUnexpectedEOF when the object is shorter.
	ReadAt(ctx context.Context, name string, p []byte, off int64) error
	Stat(ctx context.Context, name string) (Info, error)
	// PutIfAbsent creates the object, durably, or returns ErrExists and changes nothing.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Create starts a new object; names are unique by construction, an existing one is ErrExists at Commit.
	Create(ctx context.Context, name string) (Writer, error)
	// List yields objects whose name has the prefix and sorts after startAfter, in name order.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error]
	Delete(ctx context.Context, name string) error
	// URI names the root, without credentials.
	URI() string
}
