package compaction

import (
	"path"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestEraseWithoutKeyTable: a key table that is lost or damaged does not keep rows from being erased: all values
// are there, and are found by decoding them.
func TestEraseWithoutKeyTable(t *testing.T) {
	x := erasable(t, object.NewMemory(), 1)
	segments, err := x.latest().Segments(t.Context(), nil)
	x.check(err)
	keys := sessionKeys(x, "person-0003")
	lost := 0
	for _, d := range segments {
		if d.KeysSize > 0 && lost == 0 {
			x.check(x.blobs.Delete(t.Context(), path.Dir(d.Index)+"/keys.sst"))
			lost++
		}
	}
	if lost == 0 {
		t.Fatal("no segment has a table of keys")
	}
	if _, err := Erase(t.Context(), x.table, Erasure{Keys: keys, Compact: x.options()}); err != nil {
		t.Error(err)
	}
}
