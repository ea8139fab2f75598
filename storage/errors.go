package storage

import (
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// The errors that callers match. Packages catalog and names define all but ErrNoStore.
var (
	// ErrNoStore is matched when there is no store where one was to be opened. It matches ErrNotFound too.
	ErrNoStore         error = noStore{}
	ErrNotFound              = catalog.ErrNotFound
	ErrConflict              = catalog.ErrConflict
	ErrExists                = catalog.ErrExists
	ErrDuplicateSource       = catalog.ErrDuplicateSource
	ErrName                  = names.ErrName
)

// noStore is ErrNoStore.
type noStore struct{}

func (noStore) Error() string        { return "no dsistore store" }
func (noStore) Is(target error) bool { return target == ErrNotFound }
