package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// A View is what a reader reads of a table: the rows of a snapshot, under overlays, and of those the ones in a sample
// list.
type View struct {
	// Snapshot has the segments, their deletes, the schema and the merged overlays.
	Snapshot *Snapshot
	// Overlays lie over the merged ones, the lowest first.
	Overlays []ViewOverlay
	// List is the sample list of ListIn; empty: all rows.
	List   string
	ListIn *Snapshot
	// Branch is the name of the branch that the view was opened by; empty: none.
	Branch string
}

// A ViewOverlay is an overlay, and the snapshot that has its layers.
type ViewOverlay struct {
	catalog.Overlay
	In *Snapshot
}

// OpenBranch returns what a branch of the table reads; the message of ErrNotFound suggests branches.
func (t *Table) OpenBranch(ctx context.Context, name string) (*View, error) {
	newest, err := t.Latest(ctx)
	if err != nil {
		return nil, err
	}
	b, err := newest.Branch(ctx, name)
	if err != nil {
		return nil, err
	}
	pinned, err := t.log.View(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("branch %s: %w", name, err)
	}
	made := map[*snapshot.Snapshot]*Snapshot{nil: nil} // one for each, so that callers can compare them
	of := func(s *snapshot.Snapshot) *Snapshot {
		if _, ok := made[s]; !ok {
			made[s] = &Snapshot{s, t}
		}
		return made[s]
	}
	v := &View{Branch: name, Snapshot: of(pinned.Snapshot), List: b.List.Name, ListIn: of(pinned.ListIn)}
	for _, o := range pinned.Overlays {
		v.Overlays = append(v.Overlays, ViewOverlay{o.Overlay, of(o.In)})
	}
	return v, nil
}

// SplitRef splits "table@branch" at its last @, which no name has. Without one branch is empty.
func SplitRef(ref string) (table, branch string) {
	if i := strings.LastIndexByte(ref, '@'); i >= 0 {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}

// Open opens what "table" or "table@branch" stands for: the table's newest snapshot, or what its branch reads.
func (s *Store) Open(ctx context.Context, ref string) (*View, error) {
	if _, branch := SplitRef(ref); branch == "" {
		_, snap, err := s.Newest(ctx, ref)
		return &View{Snapshot: snap}, err
	}
	t, branch, err := s.OpenRef(ctx, ref)
	if err != nil {
		return nil, err
	}
	return t.OpenBranch(ctx, branch)
}

// OpenRef returns the table that "table" or "table@branch" names, and the branch, which may not exist; empty: none is
// named.
func (s *Store) OpenRef(ctx context.Context, ref string) (t *Table, branch string, err error) {
	name, branch := SplitRef(ref)
	if branch == "" {
		name = ref // "table@" is no name
	}
	t, err = s.Table(ctx, name)
	return t, branch, err
}
