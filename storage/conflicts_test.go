package storage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
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

// TestFeaturesOfAnother: where another commit after the base has made a feature of the same name, and of another type
// or role, that is a conflict; made against the table as it is, the change is wrong for certain.
func TestFeaturesOfAnother(t *testing.T) {
	ctx := t.Context()
	for what, change := range map[string]func(f *catalog.Feature){
		"type": func(f *catalog.Feature) { f.Type = vector.Type{Kind: vector.String} },
		"role": func(f *catalog.Feature) { f.Role = catalog.RoleSessionKey },
	} {
		t.Run(what, func(t *testing.T) {
			tab := newTable(t, object.NewMemory())
			mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("a"))}})
			mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("b"))}})
			other := features("b")
			change(&other[0])
			for base, want := range map[uint64]bool{1: true, 2: false} {
				_, err := tab.Commit(ctx, commit.Change{Operation: "ingest", Base: base,
					Ops: []commit.Operation{commit.AddFeatures(other)}})
				if err == nil || errors.Is(err, ErrConflict) != want {
					t.Errorf("base %d: %v: a conflict: %v", base, err, want)
				}
			}
		})
	}
}
