package storage

import (
	"errors"

	"github.com/dsistore/dsistore/storage/names"
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
	ErrName = names.ErrName
	// ErrDuplicateSource is matched when a change adds a source that the table already holds.
	ErrDuplicateSource = errors.New("source already ingested")
)

// noStore is ErrNoStore.
type noStore struct{}

func (noStore) Error() string        { return "no dsistore store" }
func (noStore) Is(target error) bool { return target == ErrNotFound }
