package storage

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// A table keeps the properties that commits set, each as it was set last, and in each snapshot as it was then.
func TestProperties(t *testing.T) {
	blobs := object.NewMemory()
	tab := newTable(t, blobs)
	want := []map[string]string{
		{}, {"profile": "size"}, {"profile": "size", "other": "é"}, {"profile": "size", "other": "é"}, {"profile": "speed", "other": "é"},
	}
	for i, set := range []map[string]string{nil, {"profile": "size"}, {"other": "é"}, {"profile": "size"}, {"profile": "speed"}} {
		d, err := fakeSegment(t.Context(), blobs, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Commit(t.Context(), Change{Operation: "ingest", Add: []SegmentDescriptor{d}, Properties: set}); err != nil {
			t.Fatal(err)
		}
		for n := range i + 1 {
			s, err := newTable(t, blobs).At(t.Context(), uint64(n+1))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"profile", "other", "none"} {
				if got, err := s.Property(t.Context(), name); err != nil || got != want[n][name] {
					t.Errorf("after %d commits, snapshot %d: %s is %q, want %q: %v", i+1, n+1, name, got, want[n][name], err)
				}
			}
		}
	}
	for _, set := range []map[string]string{{"": "x"}, {strings.Repeat("x", 65): "x"}, {"x": "\xff"}, {"x": strings.Repeat("x", 1025)}} {
		if _, err := tab.Commit(t.Context(), Change{Operation: "ingest", Properties: set}); err == nil {
			t.Errorf("properties %.20q are taken", set)
		}
	}
}
