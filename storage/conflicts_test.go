package storage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// overtaken is a store in which somebody else commits just before the first snapshot is put.
type overtaken struct {
	object.Store
	commit func()
}

func (o *overtaken) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if o.commit != nil && strings.Contains(name, names.SnapshotsDir) {
		commit := o.commit
		o.commit = nil
		commit()
	}
	return o.Store.PutIfAbsent(ctx, name, data)
}

// A Store counts the commits through it that met others, those that went on and those that did not.
func TestConflictsAreCounted(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	add := func(tab *Table, ds string) {
		t.Helper()
		d := writeSegment(t, tab, partition("ds", ds), []uint32{3}, 1, segment.Options{})
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
			t.Fatal(err)
		}
	}
	blobs := &overtaken{Store: mem}
	tab, other := newTable(t, blobs), newTable(t, mem)
	add(tab, "1")
	if got := tab.Store().Conflicts(); got != (Conflicts{}) {
		t.Fatalf("alone: %+v", got)
	}
	blobs.commit = func() { add(other, "2") }
	add(tab, "3")
	if got := tab.Store().Conflicts(); got != (Conflicts{Retried: 1}) {
		t.Fatalf("overtaken by a commit that commutes: %+v, want 1 retried", got)
	}
	gone := names.RandomID().String()
	if _, err := tab.Commit(ctx, commit.Change{Operation: "compact", Base: 1,
		Ops: []commit.Operation{commit.RemoveSegments{gone}}}); !errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	if got := tab.Store().Conflicts(); got != (Conflicts{Retried: 1, Refused: 1}) {
		t.Fatalf("refused: %+v, want 1 retried and 1 refused", got)
	}
	if got := other.Store().Conflicts(); got != (Conflicts{}) {
		t.Fatalf("the one that was first: %+v", got)
	}
}
