//go:build !unix

package diskcache

import (
	"errors"

	"github.com/dsistore/dsistore/storage/object"
)

func wrap(object.Store, string, int64) (object.Store, error) {
	return nil, errors.New("a cache on the local disk: there is none on this system")
}
