package snapshot

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/wire"
)

// Branches returns the branches of the table as of the snapshot, in name order. Those that hold now are the newest
// snapshot's.
func (s *Snapshot) Branches(ctx context.Context) ([]catalog.Branch, error) {
	if s.Manifest.Branches == 0 {
		return nil, nil
	}
	var out []catalog.Branch
	err := s.EachIn(ctx, catalog.BranchSpace, func(key, value []byte) string {
		b, reason := catalog.DecodeBranch(string(key[1:]), value)
		out = append(out, b)
		return reason
	})
	return out, err
}

// Branch returns the branch of a name; ErrNotFound names the nearest.
func (s *Snapshot) Branch(ctx context.Context, name string) (catalog.Branch, error) {
	b, err := s.FindBranch(ctx, name)
	if err != nil || b != nil {
		return deref(b), err
	}
	all, err := s.Branches(ctx)
	if err != nil {
		return catalog.Branch{}, err
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return catalog.Branch{}, fmt.Errorf("table %s: branch %.150q: %w%s", s.Log.Table, name, catalog.ErrNotFound,
		suggest.Hint(name, names))
}

// FindBranch returns nil where there is no such branch.
func (s *Snapshot) FindBranch(ctx context.Context, name string) (*catalog.Branch, error) {
	if s.Manifest.Branches == 0 {
		return nil, nil
	}
	values, err := s.Log.Store.Trees.Get(ctx, s.Manifest.Listing, catalog.BranchKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	b, reason := catalog.DecodeBranch(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
	}
	return &b, nil
}
