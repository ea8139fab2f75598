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
