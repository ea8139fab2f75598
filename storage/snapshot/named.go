package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A kind is one of the three kinds of named entries of the listing: overlays, sample lists and branches.
type kind[T any] struct {
	what   string // for messages
	space  byte
	key    func(name string) []byte
	decode func(name string, value []byte) (T, string)
	name   func(T) string
	count  func(*Manifest) uint64 // where it is 0, nothing is read
}

var (
	overlays = kind[catalog.Overlay]{
		"overlay", catalog.OverlaySpace, catalog.OverlayKey, catalog.DecodeOverlay,
		func(o catalog.Overlay) string { return o.Name }, func(m *Manifest) uint64 { return m.Overlays },
	}
	sampleLists = kind[catalog.SampleList]{
		"sample list", catalog.ListSpace, catalog.ListKey, catalog.DecodeList,
		func(l catalog.SampleList) string { return l.Name }, func(m *Manifest) uint64 { return m.Lists },
	}
	branches = kind[catalog.Branch]{
		"branch", catalog.BranchSpace, catalog.BranchKey, catalog.DecodeBranch,
		func(b catalog.Branch) string { return b.Name }, func(m *Manifest) uint64 { return m.Branches },
	}
)

// all returns the entries of the kind, in name order.
func (k *kind[T]) all(ctx context.Context, s *Snapshot) (out []T, err error) {
	if k.count(&s.Manifest) == 0 {
		return nil, nil
	}
	err = s.EachIn(ctx, k.space, func(key, value []byte) string {
		x, reason := k.decode(string(key[1:]), value)
		out = append(out, x)
		return reason
	})
	return out, err
}

// find returns the entry of a name, nil where there is none.
func (k *kind[T]) find(ctx context.Context, s *Snapshot, name string) (*T, error) {
	if k.count(&s.Manifest) == 0 {
		return nil, nil
	}
	values, err := s.GetListing(ctx, k.key(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	x, reason := k.decode(name, values[0])
	if reason != "" {
		return nil, s.CorruptListing(reason)
	}
	return &x, nil
}

// get is find with an error where there is none.
func (k *kind[T]) get(ctx context.Context, s *Snapshot, name string) (none T, err error) {
	x, err := k.find(ctx, s, name)
	if err != nil {
		return none, err
	}
	if x != nil {
		return *x, nil
	}
	all, err := k.all(ctx, s)
	if err != nil {
		return none, err
	}
	var names []string
	for _, x := range all {
		names = append(names, k.name(x))
	}
	return none, fmt.Errorf("table %s: %w", s.Log.Table, catalog.NotFound(k.what, name, names))
}

// Overlays returns the overlays of the snapshot: those that are merged, the lowest first, and then the others, by
// number. Its cost is one request or two, and none in a snapshot without overlays.
func (s *Snapshot) Overlays(ctx context.Context) ([]catalog.Overlay, error) {
	out, err := overlays.all(ctx, s)
	slices.SortFunc(out, func(a, b catalog.Overlay) int {
		// Merged-1: those that are not come last.
		return cmp.Or(cmp.Compare(a.Merged-1, b.Merged-1), cmp.Compare(a.Number, b.Number))
	})
	return out, err
}

// SampleLists returns the sample lists of the snapshot, in name order.
func (s *Snapshot) SampleLists(ctx context.Context) ([]catalog.SampleList, error) {
	return sampleLists.all(ctx, s)
}

// Branches returns the branches of the table as of the snapshot, in name order. Those that hold now are the newest
// snapshot's.
func (s *Snapshot) Branches(ctx context.Context) ([]catalog.Branch, error) {
	return branches.all(ctx, s)
}

// Overlay returns the overlay of a name; the message of ErrNotFound suggests names.
func (s *Snapshot) Overlay(ctx context.Context, name string) (catalog.Overlay, error) {
	return overlays.get(ctx, s, name)
}

// SampleList is Overlay for a sample list.
func (s *Snapshot) SampleList(ctx context.Context, name string) (catalog.SampleList, error) {
	return sampleLists.get(ctx, s, name)
}

// Branch is Overlay for a branch.
func (s *Snapshot) Branch(ctx context.Context, name string) (catalog.Branch, error) {
	return branches.get(ctx, s, name)
}

// FindOverlay returns the overlay of a name, nil where there is none.
func (s *Snapshot) FindOverlay(ctx context.Context, name string) (*catalog.Overlay, error) {
	return overlays.find(ctx, s, name)
}

// FindList is FindOverlay for a sample list.
func (s *Snapshot) FindList(ctx context.Context, name string) (*catalog.SampleList, error) {
	return sampleLists.find(ctx, s, name)
}

// FindBranch is FindOverlay for a branch.
func (s *Snapshot) FindBranch(ctx context.Context, name string) (*catalog.Branch, error) {
	return branches.find(ctx, s, name)
}
