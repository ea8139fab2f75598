package storage

import (
	"errors"
	"io"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
)

var (
	// ErrNoStore is matched when there is no store where one was to be opened. It matches ErrNotFound too.
	ErrNoStore error = noStore{}
	// ErrNotFound is matched when a table, snapshot, feature, overlay, sample list or branch does not exist; the message names the nearest.
	ErrNotFound = errors.New("not found")
	// ErrConflict is matched when a commit lost a race to one that it does not commute with, or speaks of segments that
	// are gone. Nothing was changed; the segments that it would have added are there, unless gc condemned them.
	ErrConflict = errors.New("commit conflict")
	// ErrExists is matched when a change defines an overlay, a sample list or a branch whose name is taken.
	ErrExists = errors.New("name is taken")
	// ErrName is matched when a name cannot be that of a table, an overlay, a sample list or a branch; the message says why.
	ErrName = errors.New("bad name")
	// ErrDuplicateSource is matched when a change adds a source that the table already holds.
	ErrDuplicateSource = errors.New("source already ingested")
)

// corrupt says what is wrong with an object.
func corrupt(object, reason string) error {
	return &format.CorruptError{Object: object, Stripe: -1, Offset: -1, Reason: reason}
}

// damaged turns the error of reading an object past its end into a corrupt one; others stay.
func damaged(object string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt(object, "object ends early")
	}
	return err
}

// missing turns the error of an object that is not there, and that a snapshot names, into a corrupt one; others stay.
func missing(name string, err error) error {
	if errors.Is(err, object.ErrNotFound) {
		return corrupt(name, "object is missing")
	}
	return damaged(name, err)
}

// noStore is ErrNoStore.
type noStore struct{}

func (noStore) Error() string        { return "no dsistore store" }
func (noStore) Is(target error) bool { return target == ErrNotFound }
