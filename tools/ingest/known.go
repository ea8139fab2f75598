package ingest

import (
	"fmt"

	"github.com/dsistore/dsistore/storage"
)

// A KnownSourceError is returned when a source was ingested before. Nothing was added. It matches
// storage.ErrDuplicateSource.
type KnownSourceError struct {
	Path   string
	Stream bool // it is no file: new only is no way out
	// Table: the table has no partitions, so an overwrite replaces all of its Rows.
	Table bool
	Rows  uint64
}

func (e *KnownSourceError) Error() string { return e.Advise("NewOnly", "Overwrite") }

func (e *KnownSourceError) Is(target error) bool { return target == storage.ErrDuplicateSource }

// Advise is Error with the names that the caller's user knows the options NewOnly and Overwrite by.
func (e *KnownSourceError) Advise(newOnly, overwrite string) string {
	leaveOut, what := newOnly+" leaves such files out; ", "the partitions that it has rows of"
	if e.Stream {
		leaveOut = ""
	}
	if e.Table {
		what = fmt.Sprintf("the whole table (it has no partitions, and %d rows)", e.Rows)
	}
	return fmt.Sprintf("%s: %v: nothing was added; %s%s replaces %s, and rows that were deleted come back",
		e.Path, storage.ErrDuplicateSource, leaveOut, overwrite, what)
}
