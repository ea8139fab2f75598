package snapshot

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/wire"
)

// SampleLists returns the sample lists of the snapshot, in name order.
func (s *Snapshot) SampleLists(ctx context.Context) ([]catalog.SampleList, error) {
	if s.Manifest.Lists == 0 {
		return nil, nil
	}
	var out []catalog.SampleList
	err := s.EachIn(ctx, catalog.ListSpace, func(key, value []byte) string {
		l, reason := catalog.DecodeList(string(key[1:]), value)
		out = append(out, l)
		return reason
	})
	return out, err
}

// SampleList returns the sample list of a name; ErrNotFound names the nearest.
func (s *Snapshot) SampleList(ctx context.Context, name string) (catalog.SampleList, error) {
	l, err := s.FindList(ctx, name)
	if err != nil || l != nil {
		return deref(l), err
	}
	all, err := s.SampleLists(ctx)
	if err != nil {
		return catalog.SampleList{}, err
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return catalog.SampleList{}, fmt.Errorf("table %s: sample list %.150q: %w%s", s.Log.Table, name,
		catalog.ErrNotFound, suggest.Hint(name, names))
}

// FindList returns nil where there is no such list.
func (s *Snapshot) FindList(ctx context.Context, name string) (*catalog.SampleList, error) {
	if s.Manifest.Lists == 0 {
		return nil, nil
	}
	values, err := s.Log.Store.Trees.Get(ctx, s.Manifest.Listing, catalog.ListKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	l, reason := catalog.DecodeList(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
	}
	return &l, nil
}

// ListedRows returns the rows of segments of the snapshot that are in a sample list, in order; deleted ones may be
// among them. A list that does not exist has none: SampleList tells. Its cost follows from what is asked for.
func (s *Snapshot) ListedRows(ctx context.Context, list string,
	segments ...catalog.SegmentDescriptor) ([]bitmap.Ref, error) {
	if s.Manifest.Lists == 0 {
		return make([]bitmap.Ref, len(segments)), nil
	}
	return s.rowBitmaps(ctx, catalog.ListRowsPrefix(list), "rows of sample list "+list, segments)
}
