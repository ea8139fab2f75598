package format

import (
	"errors"
	"fmt"
)

// ErrCorrupt is returned when stored bytes are wrong. The error is a *CorruptError.
var ErrCorrupt = errors.New("corrupt data")

// ErrUnsupported is returned when stored bytes need a newer version of this program. The error is an *UnsupportedError.
var ErrUnsupported = errors.New("unsupported data")

// A CorruptError says what is wrong with stored bytes and where. Each layer fills in the fields that it knows.
type CorruptError struct {
	Object  string // the blob's name
	Feature string // name or id
	Stripe  int    // -1 if no stripe is concerned
	Stream  string // presence, lengths, values, ...; empty if no stream is concerned
	Offset  int64  // in the object; before Locate, in the feature file; -1 if unknown
	Reason  string
}

func (e *CorruptError) Error() string { return place("corrupt data", e) }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// An UnsupportedError says what this program does not know in stored bytes, and where.
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

// Locate returns a copy of a CorruptError or UnsupportedError with object and feature set, unless they are set already,
// and with base, the offset of the feature file in the object, added to Offset. It returns other errors unchanged.
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
