//go:build !unix

package diskcache

import (
	"errors"

	"github.com/dsistore/dsistore/storage/object"
)

var errSystem = errors.New("there is no cache on the local disk on this system")

func wrap(object.Store, string, int64) (object.Store, error) { return nil, errSystem }

// A Cache is an open directory: there is none on this system.
type Cache struct{}

// Shared returns an error.
func Shared(string, int64) (*Cache, error) { return nil, errSystem }

func (*Cache) Stat() (Stat, error) { return Stat{}, errSystem }
func (*Cache) Clear() error        { return errSystem }

// A Store is a store over a Cache: there is none on this system.
type Store struct{ object.Store }
