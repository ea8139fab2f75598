package storage

import (
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestCreateMeanwhile: another makes the store after Create has looked for the marker, and before it has looked whether the root is empty.
func TestCreateMeanwhile(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	h := &hookedStore{Store: mem}
	h.lists = func(string) {
		h.lists = nil
		other, err := Create(ctx, mem, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		tab, err := other.NewTable(ctx, "ads")
		if err == nil {
			_, err = tab.Commit(ctx, Change{Operation: "ingest", Features: features("a")})
		}
		if err != nil {
			t.Error(err)
		}
	}
	s, err := Create(ctx, h, Options{})
	if err != nil {
		t.Fatalf("the store that another has just made: %v", err)
	}
	if tables, err := s.Tables(ctx); err != nil || len(tables) != 1 {
		t.Errorf("tables %v, %v", tables, err)
	}
}
