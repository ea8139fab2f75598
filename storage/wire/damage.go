package wire

import (
	"errors"
	"io"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

// Corrupt says what is wrong with an object.
func Corrupt(object, reason string) error {
	return &format.CorruptError{Object: object, Stripe: -1, Offset: -1, Reason: reason}
}

// Damaged turns the error of reading an object past its end into a corrupt one; others stay.
func Damaged(object string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return Corrupt(object, "object ends early")
	}
	return err
}

// Missing turns the error of an object that is not there, and that a snapshot names, into a corrupt one; others stay.
func Missing(name string, err error) error {
	if errors.Is(err, object.ErrNotFound) {
		return Corrupt(name, "object is missing")
	}
	return Damaged(name, err)
}
