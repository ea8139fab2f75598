package object

import (
	"context"
	"time"
)

// cleanupTime is long enough for the requests of a service that answers.
const cleanupTime = 30 * time.Second

// Cleanup returns a context for deleting what an operation has made that nobody names. It goes on where ctx has ended,
// and ends after half a minute: gc finds what is left.
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// batchDeleter is a store that deletes many objects by one request.
type batchDeleter interface {
	// DeleteAll is Delete of every name. After an error some are deleted.
	DeleteAll(ctx context.Context, names []string) error
}

// DeleteAll deletes objects, those that there are: by few requests where the store can, else many at a time. After an
// error some are deleted.
func DeleteAll(ctx context.Context, s Store, names []string) error {
	if b, ok := s.(batchDeleter); ok && len(names) > 1 {
		return b.DeleteAll(ctx, names)
	}
	return Parallel(ctx, RequestsAtOnce, len(names), func(ctx context.Context, i int) error {
		return s.Delete(ctx, names[i])
	})
}

// Versioned is a store that may keep what was deleted or replaced.
type Versioned interface {
	// KeepsVersions reports whether it does, or did at some time.
	KeepsVersions(ctx context.Context) (bool, error)
	// RemoveVersions removes for good the bytes that are kept of objects which were deleted and replaced, of names that
	// have the prefix and match. What List shows stays. It returns how many versions it has removed, and their bytes.
	// ErrDenied: something protects them.
	RemoveVersions(ctx context.Context, prefix string, match func(name string) bool) (n, bytes int64, err error)
}
