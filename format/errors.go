package format

import (
	"errors"
	"fmt"
)

// ErrCorrupt is matched by every error that says that stored bytes are wrong.
var ErrCorrupt = errors.New("corrupt data")

// ErrUnsupported is matched when stored bytes are sound but were written for a newer version of this program.
var ErrUnsupported = errors.New("unsupported data")

// A CorruptError says what is wrong with stored bytes and where. Each layer fills in the fields that it knows.
type CorruptError struct {
	Object  string // the blob's name
	Feature string // name or id
	Stripe  int    // -1 where no stripe is meant
	Stream  string // presence, lengths, values, ...; empty where no stream is meant
	Offset  int64  // in the object; in the feature file until Locate has added where that starts; -1 where unknown
	Reason  string
}

func (e *CorruptError) Error() string { return place("corrupt data", e) }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// An UnsupportedError says what in the stored bytes this program is too old for, and where.
type UnsupportedError CorruptError

func (e *UnsupportedError) Error() string {
	return place("unsupported data", (*CorruptError)(e)) + " (written by a newer version)"
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

func place(s string, e *CorruptError) string {
	if e.Object != "" {
		s += " in " + e.Object
	}
	if e.Feature != "" {
		s += ", feature " + e.Feature
	}
	if e.Stripe >= 0 {
		s += fmt.Sprintf(", stripe %d", e.Stripe)
	}
	if e.Stream != "" {
		s += ", stream " + e.Stream
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(", offset %d", e.Offset)
	}
	return s + ": " + e.Reason
}

// Locate returns err with the object and the feature that it happened in, where it says none yet, and with base, the
// offset of the feature file in the object, added to its offset. Errors of other types are returned as they are.
func Locate(err error, object, feature string, base int64) error {
	var e CorruptError
	var c *CorruptError
	var u *UnsupportedError
	switch {
	case errors.As(err, &c):
		e = *c
	case errors.As(err, &u):
		e = CorruptError(*u)
	default:
		return err
	}
	if e.Object == "" {
		e.Object = object
	}
	if e.Feature == "" {
		e.Feature = feature
	}
	if e.Offset >= 0 {
		e.Offset += base
	}
	if c != nil {
		return &e
	}
	return (*UnsupportedError)(&e)
}

func corrupt(offset int64, reason string, args ...any) error {
	return &CorruptError{Stripe: -1, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}

func unsupported(offset int64, reason string, args ...any) error {
	return &UnsupportedError{Stripe: -1, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}
