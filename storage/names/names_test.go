package names

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

func FuzzNames(f *testing.F) {
	for _, s := range []string{"ads", "../x", ".", "a/b", "%41", "é", "A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidateTable(s) == nil {
			name := SnapshotName(s, 7)
			if err := object.ValidateName(name); err != nil {
				t.Fatal(err)
			}
			if got, next, ok := ParseTable(name); !ok || got != s || next <= name {
				t.Fatalf("%q gives %q, which is of %q", s, name, got)
			}
		}
		if i, ok := ParseDataName(s); ok && !strings.HasPrefix(s, i.Dir()) {
			t.Fatalf("%q is of %v", s, i)
		}
	})
}

// TestSnapshotNames: names sort newest first, and are taken apart as they are put together.
func TestSnapshotNames(t *testing.T) {
	last := ""
	for _, n := range []uint64{MaxSnapshot, MaxSnapshot - 1, 1 << 32, 10_000, 9_999, 101, 100, 99,
		10, 9, 2, 1} {
		name := SnapshotName("a b", n)
		if name <= last {
			t.Errorf("%d: %s is not after %s", n, name, last)
		}
		if got, ok := ParseSnapshot("a b", name); !ok || got != n {
			t.Errorf("%d: %s is %d", n, name, got)
		}
		if _, ok := ParseSnapshot("a", name); ok {
			t.Errorf("%s is of another table", name)
		}
		last = name
	}
}
