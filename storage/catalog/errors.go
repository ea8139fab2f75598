package catalog

import (
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/internal/suggest"
)

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

// A NotFoundError says that there is nothing of a name. It matches ErrNotFound.
type NotFoundError struct {
	Kind string // "table", "snapshot", "feature", "overlay", "sample list", "branch" or "lease"
	Name string
	// Dropped: it is a feature that was dropped. Pattern: Name is one that no feature matches.
	Dropped, Pattern bool
	// Close are names that were probably meant, the nearest first.
	Close []string
	// Overlay has the feature, and is not read. Also where the table had another of this name, which it dropped.
	Overlay string
}

// NotFound returns the error of a name that none in among is.
func NotFound(kind, name string, among []string) *NotFoundError {
	return &NotFoundError{Kind: kind, Name: name, Close: suggest.Names(name, among, 3)}
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Pattern:
		return fmt.Sprintf("%.150q selects no %s of the table", e.Name, e.Kind)
	case e.Overlay != "":
		return fmt.Sprintf("%s %.150q: %v in the table: overlay %.150q has it, which is not read here", e.Kind, e.Name,
			ErrNotFound, e.Overlay)
	case e.Dropped:
		return fmt.Sprintf("%s %.150q: %v: it was dropped", e.Kind, e.Name, ErrNotFound)
	}
	return fmt.Sprintf("%s %.150q: %v%s", e.Kind, e.Name, ErrNotFound, suggest.Question(e.Close))
}

func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }
