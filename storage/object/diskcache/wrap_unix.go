//go:build unix

package diskcache

import (
	"path/filepath"
	"sync"

	"github.com/dsistore/dsistore/storage/object"
)

var (
	openMu sync.Mutex
	opened = map[string]*Cache{} // by directory; guarded by openMu
)

// Shared returns the cache in a directory, which is opened once for the process: see Open.
func Shared(dir string, bytes int64) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	openMu.Lock()
	defer openMu.Unlock()
	if c := opened[dir]; c != nil {
		return c, nil
	}
	c, err := Open(dir, bytes)
	if err == nil {
		opened[dir] = c
	}
	return c, err
}

func wrap(s object.Store, dir string, bytes int64) (object.Store, error) {
	c, err := Shared(dir, bytes)
	if err != nil {
		return nil, err
	}
	return NewStore(s, c), nil
}
