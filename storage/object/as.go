package object

import (
	"context"
	"time"
)

// As returns s, or a store that it wraps, as a T: of the outermost that is one. ok is false when there is none.
func As[T any](s Store) (t T, ok bool) {
	for {
		if t, ok = s.(T); ok {
			return t, true
		}
		w, wraps := s.(interface{ Unwrap() Store })
		if !wraps {
			return t, false
		}
		s = w.Unwrap()
	}
}

// AsLocal returns the Local under s, through any wrappers, or nil when there is none.
func AsLocal(s Store) *Local {
	l, _ := As[*Local](s)
	return l
}

// HighLatency reports whether each request of s takes about as long as a network does, so that several at once are
// better than fewer one after another: whether s or a store that it wraps has a method HighLatency that says so.
func HighLatency(s Store) bool {
	for {
		if f, ok := s.(interface{ HighLatency() bool }); ok && f.HighLatency() {
			return true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return false
		}
		s = w.Unwrap()
	}
}

// Gap returns how many bytes between two ranges of an object of s are at most worth reading, so that both are one
// request: as many as cost what a request does. 64 KiB, or 256 KiB where a request goes through a network
// (docs/decisions/0043 has the figures), unless s or a store that it wraps has a method Gap that says otherwise.
func Gap(s Store) int64 {
	if g, ok := As[interface{ Gap() int64 }](s); ok {
		return g.Gap()
	}
	if HighLatency(s) {
		return 256 << 10
	}
	return 64 << 10
}

// Margin returns by how much the time of an object may lie before the moment from which on it is seen, if it was made
// by one request: times may be rounded, and a request takes time. To find out whether something is old enough, add the
// margin to the age. 0 where neither s nor a store that it wraps has a method Margin.
func Margin(s Store) time.Duration {
	if d, ok := As[interface{ Margin() time.Duration }](s); ok {
		return d.Margin()
	}
	return 0
}

// Unfinished is a store in which writers that end by force leave what they have written so far, and no object.
type Unfinished interface {
	// Temporary lists what writers of any process left or are writing, oldest or not, with the time when it was begun
	// or last written. Names are no objects'.
	Temporary(ctx context.Context) ([]Info, error)
	// RemoveTemporary removes something that Temporary listed. A writer that goes on with it gets an error.
	RemoveTemporary(ctx context.Context, name string) error
}
