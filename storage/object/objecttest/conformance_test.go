package objecttest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/storage/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStores(t *testing.T) {
	memory := func(*testing.T) object.Store { return object.NewMemory() }
	open := func(uri string) object.Store {
		s, err := object.Open(uri)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, make := range map[string]func(t *testing.T) object.Store{
		"Path":      func(t *testing.T) object.Store { return open(filepath.Join(t.TempDir(), "deep", "root")) },
		"File":      func(t *testing.T) object.Store { return open("file://" + filepath.ToSlash(t.TempDir())) },
		"LocalFS":   func(*testing.T) object.Store { return object.NewLocalFS(vfs.NewMem(), "/root") },
		"Memory":    memory,
		"Counted":   func(t *testing.T) object.Store { return object.NewCounted(memory(t)) },
		"Delayed":   func(t *testing.T) object.Store { return object.NewDelayed(memory(t), time.Microsecond) },
		"Fault":     func(t *testing.T) object.Store { return object.NewFault(memory(t)) },
		"Throttled": func(t *testing.T) object.Store { return object.NewThrottled(memory(t), 1<<30) },
		"All": func(t *testing.T) object.Store {
			return object.NewFault(object.NewThrottled(object.NewDelayed(object.NewCounted(memory(t)),
				time.Microsecond), 1<<30))
		},
	} {
		t.Run(name, func(t *testing.T) { Conformance(t, make) })
	}
}
