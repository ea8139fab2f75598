package batch

import (
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A value that is not UTF-8 is mended, for the column is of strings; null is told from empty.
func TestPartitionValue(t *testing.T) {
	p := catalog.Partition{{Key: "a", Value: "x\xffy"}, {Key: "b", Null: true}, {Key: "c"}}
	for key, want := range map[string]string{"a": "x\uFFFDy", "b": "null", "c": "", "d": "null"} {
		v, ok := partitionValue(p, key)
		if !ok {
			v = "null"
		}
		if v != want {
			t.Errorf("%s: %q, want %q", key, v, want)
		}
	}
}
