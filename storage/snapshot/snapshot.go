package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// Info is what `dsi snapshots` prints.
type Info struct {
	Number                 uint64
	Time                   time.Time
	Operation              string // ingest, overwrite, ...
	Rows                   uint64 // of the segments, deleted ones too
	Segments               uint64
	Bytes                  uint64
	Features               uint64
	AddedRows, RemovedRows uint64 // rows of segments that the commit added and took away
	DeletedRows            uint64 // of Rows: in segments, and no reader sees them
	// Oldest is the first snapshot that had not expired then; 0: none had.
	Oldest uint64
}

// LiveRows returns how many rows a reader sees.
func (i Info) LiveRows() uint64 { return i.Rows - i.DeletedRows }

// A Snapshot is an immutable version of a table. Its fields are for the packages that commit, verify and collect
// garbage; nobody changes them. Safe for concurrent use.
type Snapshot struct {
	Log      *Log
	Manifest Manifest

	seen atomic.Int64 // when the store had it last, as a time since began; 0: nobody has looked
}

// began is what Snapshot.seen counts from: not a date, which a clock may change.
var began = time.Now()

// seenFor is how long Exists believes that a store which is far away still has what it had.
const seenFor = time.Second

// Info describes the snapshot.
func (s *Snapshot) Info() Info { return s.Manifest.Info }

// Exists reports whether the store still has this very snapshot: it was not removed, nor the store made anew with
// another of its number. One small read, but for a store of high latency that had it less than a second ago.
func (s *Snapshot) Exists(ctx context.Context) (bool, error) {
	if seen := time.Duration(s.seen.Load()); seen != 0 && time.Since(began)-seen < seenFor &&
		object.HighLatency(s.Log.Store.Blobs) {
		return true, nil
	}
	now := time.Since(began)
	m, err := s.Log.Header(ctx, s.Manifest.Info.Number)
	if errors.Is(err, object.ErrNotFound) || errors.Is(err, ErrReplaced) {
		return false, nil
	}
	if err != nil || m.Commit != s.Manifest.Commit {
		return false, err
	}
	s.seen.Store(int64(now))
	return true, nil
}

func (s *Snapshot) ObjectName() string {
	return names.SnapshotName(s.Log.Table, s.Manifest.Info.Number)
}

// TreeName is the object to blame for an entry of a tree: the newest part, for want of knowing better.
func (s *Snapshot) TreeName(t lsm.Tree) string {
	if len(t.Memtable) > 0 || len(t.Runs) == 0 {
		return s.ObjectName()
	}
	return t.Kind.ObjectName(t.Runs[len(t.Runs)-1].ID)
}

// Lookup returns the named features in the order asked for, reading only what they need; an unknown name gives
// ErrNotFound, and its message suggests names.
func (s *Snapshot) Lookup(ctx context.Context, names ...string) ([]catalog.Feature, error) {
	found, err := s.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Feature, len(names))
	for i, f := range found {
		if f == nil {
			return nil, s.noFeature(ctx, names[i])
		}
		out[i] = *f
	}
	return out, nil
}

// Find is Lookup with nil where there is no such feature.
func (s *Snapshot) Find(ctx context.Context, names ...string) ([]*catalog.Feature, error) {
	out, err := s.FindAll(ctx, names...)
	for i, f := range out {
		if f != nil && f.Status == catalog.FeatureDropped {
			out[i] = nil
		}
	}
	return out, err
}

// FindAll is Find with those that were dropped.
func (s *Snapshot) FindAll(ctx context.Context, names ...string) ([]*catalog.Feature, error) {
	keys := make([][]byte, len(names))
	for i, n := range names {
		keys[i] = catalog.NameKey(n)
	}
	values, err := s.GetSchema(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]*catalog.Feature, len(names))
	for i, v := range values {
		if v == nil {
			continue
		}
		f, reason := catalog.DecodeFeature(names[i], v)
		if reason != "" {
			return nil, s.CorruptSchema(reason)
		}
		out[i] = &f
	}
	return out, nil
}

func (s *Snapshot) noFeature(ctx context.Context, name string) error {
	all, err := s.AllFeatures(ctx)
	if err != nil {
		return err
	}
	// Readers take partition keys for features.
	names, err := s.PartitionKeys(ctx)
	if err != nil {
		return err
	}
	dropped := false
	for _, f := range all {
		if f.Status != catalog.FeatureDropped {
			names = append(names, f.Name)
		}
		dropped = dropped || f.Status == catalog.FeatureDropped && f.Name == name
	}
	missing := catalog.NotFound("feature", name, names)
	missing.Dropped = dropped
	return fmt.Errorf("table %s: %w", s.Log.Table, missing)
}

// Features returns the whole schema in name order, without features that were dropped: its cost is the schema's.
func (s *Snapshot) Features(ctx context.Context) ([]catalog.Feature, error) {
	all, err := s.AllFeatures(ctx)
	return slices.DeleteFunc(all, func(f catalog.Feature) bool { return f.Status == catalog.FeatureDropped }), err
}

// AllFeatures is Features with those that were dropped and whose name no other feature has taken since.
func (s *Snapshot) AllFeatures(ctx context.Context) ([]catalog.Feature, error) {
	lower, upper := catalog.SpaceBounds(catalog.NameSpace)
	var out []catalog.Feature
	err := s.each(ctx, s.Manifest.Schema, lower, upper, func(key, value []byte) string {
		f, reason := catalog.DecodeFeature(string(key[1:]), value)
		out = append(out, f)
		return reason
	})
	return out, err
}

// Segments returns the segments whose partition matches (nil: all), in partition order, then in the order in which they
// were added, save that segments that replaced others stand where those stood: the canonical row order of the snapshot.
// match is called once a partition; of those that do not match no more than the first segment is looked at.
func (s *Snapshot) Segments(ctx context.Context,
	match func(catalog.Partition) bool) ([]catalog.SegmentDescriptor, error) {
	var out []catalog.SegmentDescriptor
	err := s.WalkSegments(ctx, func(canonical string, p catalog.Partition) bool { return match == nil || match(p) },
		func(d catalog.SegmentDescriptor) { out = append(out, d) })
	return out, err
}

// Partition returns the segments of one partition in the canonical order, reading only its part of the listing.
func (s *Snapshot) Partition(ctx context.Context, p catalog.Partition) ([]catalog.SegmentDescriptor, error) {
	var out []catalog.SegmentDescriptor
	canonical := p.String()
	lower, upper := catalog.PartitionPrefix(canonical), catalog.PartitionEnd(canonical)
	err := s.EachBetween(ctx, lower, upper, func(key, value []byte) string {
		_, d, reason := catalog.ParseSegment(key, value)
		out = append(out, d)
		return reason
	})
	return out, err
}

// Partitions returns the partitions that have segments, in partition order. Its cost is a look-up each.
func (s *Snapshot) Partitions(ctx context.Context) ([]catalog.Partition, error) {
	var out []catalog.Partition
	err := s.WalkSegments(ctx, func(_ string, p catalog.Partition) bool { out = append(out, p); return false }, nil)
	return out, err
}

// PartitionKeys returns the partition keys of the table, in order: those of its first partition, or, of a table without
// segments, those of the first that its last commit with segments had. Its cost is one look-up, however many partitions
// there are. Ingest holds every partition of a table to them; a commit does only if its change is Arranged.
func (s *Snapshot) PartitionKeys(ctx context.Context) ([]string, error) {
	var keys []string
	lower, upper := catalog.SpaceBounds(catalog.PartitionSpace)
	it := s.Log.Store.Trees.Iter(ctx, s.Manifest.Listing, upper)
	if it.Seek(ctx, lower) {
		_, d, reason := catalog.ParseSegment(it.Key, it.Value)
		if reason != "" {
			return nil, s.CorruptListing(reason)
		}
		for _, v := range d.Partition {
			keys = append(keys, v.Key)
		}
	}
	if it.Err != nil || s.Manifest.Info.Segments > 0 {
		return keys, it.Err
	}
	return s.lastPartitionKeys(ctx)
}

// WalkSegments calls want once a partition, and then visit for each of its segments when want says so.
func (s *Snapshot) WalkSegments(ctx context.Context, want func(string, catalog.Partition) bool,
	visit func(catalog.SegmentDescriptor)) error {
	lower, upper := catalog.SpaceBounds(catalog.PartitionSpace)
	it := s.Log.Store.Trees.Iter(ctx, s.Manifest.Listing, upper)
	var current []byte // the prefix of the partition that the walk is in
	for ok := it.Seek(ctx, lower); ok; {
		_, d, reason := catalog.ParseSegment(it.Key, it.Value)
		if reason != "" {
			return s.CorruptListing(reason)
		}
		if current == nil || !bytes.HasPrefix(it.Key, current) {
			canonical := d.Partition.String()
			current = catalog.PartitionPrefix(canonical)
			if !want(canonical, d.Partition) {
				ok = it.Seek(ctx, catalog.PartitionEnd(canonical))
				continue
			}
		}
		visit(d)
		ok = it.Next(ctx)
	}
	return it.Err
}

// HasSource reports whether a source of the fingerprint was ever ingested into the table, up to this snapshot.
func (s *Snapshot) HasSource(ctx context.Context, fingerprint string) (bool, error) {
	v, err := s.GetListing(ctx, catalog.SourceKey(fingerprint))
	return err == nil && v[0] != nil, err
}

// EachSource calls visit with the name of each source that was ever ingested into the table, up to this snapshot: once
// for each of its fingerprints. Its cost is that of reading all of them.
func (s *Snapshot) EachSource(ctx context.Context, visit func(name string)) error {
	lower, upper := catalog.SpaceBounds(catalog.SourceSpace)
	return s.EachBetween(ctx, lower, upper, func(_, value []byte) string {
		_, name, ok := catalog.ParseSource(value)
		if !ok {
			return "source is malformed"
		}
		visit(name)
		return ""
	})
}

// SegmentsByID returns the segments of the ids in order, nil where the snapshot has none. Its cost is two look-ups.
func (s *Snapshot) SegmentsByID(ctx context.Context, ids ...string) ([]*catalog.SegmentDescriptor, error) {
	keys, err := catalog.SegmentIDKeys(ids...)
	if err != nil {
		return nil, err
	}
	where, err := s.GetListing(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]*catalog.SegmentDescriptor, len(ids))
	var at []int
	var there [][]byte
	for i, w := range where {
		if w != nil {
			at, there = append(at, i), append(there, append([]byte{catalog.PartitionSpace}, w...))
		}
	}
	values, err := s.GetListing(ctx, there...)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		_, d, reason := catalog.ParseSegment(there[k], values[k])
		if reason == "" && d.ID != ids[i] {
			reason = fmt.Sprintf("segment %s is listed by the id %s", d.ID, ids[i])
		}
		if reason != "" {
			return nil, s.CorruptListing(reason)
		}
		out[i] = &d
	}
	return out, nil
}

// AddedIn returns the numbers of the snapshots that added segments of this one, in order. Its cost is a look-up.
func (s *Snapshot) AddedIn(ctx context.Context, segments ...catalog.SegmentDescriptor) ([]uint64, error) {
	keys, err := catalog.SegmentIDKeys(catalog.IDs(segments)...)
	if err != nil {
		return nil, err
	}
	where, err := s.GetListing(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, len(segments))
	for i, w := range where {
		if w == nil {
			return nil, fmt.Errorf("table %s: segment %s in snapshot %d: %w", s.Log.Table, segments[i].ID,
				s.Manifest.Info.Number, catalog.ErrNotFound)
		}
		_, p, ok := catalog.ParseSegmentKey(append([]byte{catalog.PartitionSpace}, w...))
		if !ok {
			return nil, s.CorruptListing("listing key is malformed")
		}
		out[i] = p.Added
	}
	return out, nil
}

// FeaturesByID returns the features of the ids in order, under the names that they have now and dropped ones too; nil
// where the schema has none. Its cost is two look-ups.
func (s *Snapshot) FeaturesByID(ctx context.Context, ids ...catalog.FeatureID) ([]*catalog.Feature, error) {
	keys := make([][]byte, len(ids))
	for i, f := range ids {
		keys[i] = catalog.FeatureIDKey(f)
	}
	owners, err := s.GetSchema(ctx, keys...)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ids))
	for i, name := range owners {
		names[i] = string(name)
	}
	out, err := s.FindAll(ctx, names...)
	if err != nil {
		return nil, err
	}
	for i, f := range out {
		switch {
		case owners[i] == nil:
			out[i] = nil
		case f == nil || f.ID != ids[i]: // it was dropped, and another has, or had, its name
			out[i] = &catalog.Feature{ID: ids[i], Name: names[i], Status: catalog.FeatureDropped}
		}
	}
	return out, nil
}

// OpenSegment opens a segment's index: one read as a rule.
func (s *Snapshot) OpenSegment(ctx context.Context, d catalog.SegmentDescriptor) (*segment.Reader, error) {
	return s.Log.Store.Segments.Open(ctx, d)
}
