package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

var (
	// ErrNotFound is matched when the named object does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrNoBucket is matched when there is no bucket or container of the store's name, which is never ErrNotFound: of
	// what was written nothing is known.
	ErrNoBucket = errors.New("does not exist (look at its name, and at the endpoint)")
	// ErrExists is matched by PutIfAbsent and Writer.Commit when the name is taken.
	ErrExists = errors.New("object exists")
	// ErrChanged is matched by Truncate when the name has another object than the one that was meant.
	ErrChanged = errors.New("object changed")
	// ErrDenied is matched when the store does not let this user do it. To try again does not help.
	ErrDenied = errors.New("access denied (look at the credentials, and at what they may do)")
	// ErrThrottled is matched when the store has too many requests, also after a store's own retries.
	ErrThrottled = errors.New("too many requests")
)

// Info describes an object.
type Info struct {
	Name string
	Size int64
	// ModTime is when the object was made, in Unix nanoseconds by the store's clock. All ages in a store are told by
	// it.
	ModTime int64
	// Version tells this object from others that had or get its name: an ETag, for instance. Empty: the store does not
	// say.
	Version string
}

// A Writer streams a new object, which exists, durable and whole, once Commit returns nil, and not before. Exactly one
// of Commit and Abort ends it; Abort after Commit does nothing. It lives under the context of its Create: after that
// has ended, Write and Commit return its error, and there is no object. Not safe for concurrent use.
type Writer interface {
	io.Writer
	// Commit makes the object. It returns ErrExists, and leaves what is there, when the name is taken. ctx bounds this
	// call; it does not replace the context of Create.
	Commit(ctx context.Context) error
	// Abort drops what was written.
	Abort()
}

// A Store holds immutable objects under slash-separated names, which ValidateName allows; no object's name is another's
// and a slash and more. All methods are safe for concurrent use; errors name the object.
type Store interface {
	// ReadAt fills p from off; io.ErrUnexpectedEOF when the object ends before, ErrNotFound when there is none.
	ReadAt(ctx context.Context, name string, p []byte, off int64) error
	// Stat describes one object; ErrNotFound when there is none.
	Stat(ctx context.Context, name string) (Info, error)
	// PutIfAbsent creates the object, durably, or returns ErrExists and changes nothing: the object that is there is
	// durable. Of several that race for a name, in any number of processes, exactly one returns nil. After any other
	// error the object may exist, now or later, and need not be durable.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Create starts a new object; names are unique by construction, an existing one is ErrExists at Commit. ctx is that
	// of the whole upload, whose requests a store may send in the background: it must not end before Commit or Abort
	// has returned. So it is not the context of an errgroup.Group whose Wait returns before.
	Create(ctx context.Context, name string) (Writer, error)
	// List yields objects whose name has the prefix and sorts after startAfter, in the byte order of names. After an
	// error it ends.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error]
	// Delete removes an object, if there is one.
	Delete(ctx context.Context, name string) error
	// Truncate replaces an object, as Stat or List has described it, by one without bytes, durably. It is the only way
	// in which an object changes: what it held is gone, and its name stays taken for ever, so that no PutIfAbsent
	// succeeds at it again. Where the store tells versions, it has no effect unless the name has that version, however
	// late the request comes: of a name that has no bytes any more it returns nil, else ErrChanged. With an empty
	// version it replaces whatever there is, or nothing.
	Truncate(ctx context.Context, of Info) error
	// URI names the root, without credentials.
	URI() string
}

const (
	maxName      = 1000 // S3 allows 1024, its root prefix included
	maxComponent = 255  // of most file systems
)

// ValidateName returns an error when name cannot be an object's name: components separated by single slashes, each of 1
// to 255 bytes out of letters, digits and -._=%+@,~ and none of them "." or ".."; the first does not begin with "_".
func ValidateName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("object name of %d bytes: want 1 to %d", len(name), maxName)
	}
	if name[0] == '_' {
		return fmt.Errorf("object name %q: names that begin with _ belong to the store", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("object name %q: empty, . and .. are no components", name)
		case len(part) > maxComponent:
			return fmt.Errorf("object name %q: a component of %d bytes, want at most %d", name, len(part), maxComponent)
		}
	}
	for i := range len(name) {
		c := name[i]
		if c == '/' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-._=%+@,~", c) >= 0 {
			continue
		}
		return fmt.Errorf("object name %q: byte %#02x is not allowed", name, c)
	}
	return nil
}

// checkRange returns an error for a read that no object of any size could serve.
func checkRange(name string, off int64) error {
	if off < 0 {
		return fmt.Errorf("object %s: read at negative offset %d", name, off)
	}
	return nil
}

// checkUpload returns an error when the context of an object's Create has ended.
func checkUpload(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("object %s: the context that it was created under has ended: %w", name, err)
	}
	return nil
}

// Changed returns an error that matches ErrChanged.
func Changed(name string) error { return fmt.Errorf("%w: %s", ErrChanged, name) }

func notFound(name string) error { return fmt.Errorf("%w: %s", ErrNotFound, name) }
func exists(name string) error   { return fmt.Errorf("%w: %s", ErrExists, name) }

func shortRead(name string, n int, off, size int64) error {
	return fmt.Errorf("object %s of %d bytes: read of %d at %d: %w", name, size, n, off, io.ErrUnexpectedEOF)
}
