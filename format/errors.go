package format

import (
	"errors"
	"fmt"
)

// ErrCorrupt is matched by every error that says that stored bytes are wrong.
var ErrCorrupt = errors.New("corrupt data")

// A CorruptError says what is wrong with stored bytes and where. Each layer fills in the fields that it knows.
type CorruptError struct {
	Object  string // the blob's name
	Feature string // name or id
	Stripe  int    // -1 where no stripe is meant
	Stream  string // presence, lengths, values, ...; empty where no stream is meant
	Offset  int64  // in the object; -1 where unknown
	Reason  string
}

func (e *CorruptError) Error() string {
	s := "corrupt data"
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

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
