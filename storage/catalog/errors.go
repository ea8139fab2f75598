package catalog

import "errors"

var (
	// ErrNotFound is matched when a table, snapshot, feature, overlay, sample list or branch does not exist; the
	// message suggests names.
	ErrNotFound = errors.New("not found")
	// ErrConflict is matched when a commit lost a race to one that it does not commute with, or names segments that are
	// gone. Nothing was changed; the segments that it would have added exist, unless gc condemned them.
	ErrConflict = errors.New("commit conflict")
	// ErrExists is matched when a change defines an overlay, a sample list or a branch whose name is taken.
	ErrExists = errors.New("name is taken")
	// ErrDuplicateSource is matched when a change adds a source that the table already holds.
	ErrDuplicateSource = errors.New("source already ingested")
)
