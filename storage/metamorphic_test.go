package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// The model of a table: a plain slice of snapshots, each with everything in it.
type modelSegment struct {
	id, partition string
	rows          uint64
	added         int // the snapshot
}

type modelSnapshot struct {
	segments []modelSegment // in the canonical order of their partition
	features map[string]vector.Type
	sources  map[string]int
	time     time.Time
}

type model struct{ snapshots []modelSnapshot } // snapshot n is at n-1

func (m *model) latest() modelSnapshot {
	if len(m.snapshots) == 0 {
		return modelSnapshot{}
	}
	return m.snapshots[len(m.snapshots)-1]
}

// commit is what Commit promises, said plainly. It returns the error that must come.
func (m *model) commit(c commit.Change, now time.Time) error {
	l := m.latest()
	n := len(m.snapshots) + 1
	next := modelSnapshot{features: maps.Clone(l.features), sources: maps.Clone(l.sources), time: now}
	if next.features == nil {
		next.features, next.sources = map[string]vector.Type{}, map[string]int{}
	}
	if now.Before(l.time) {
		next.time = l.time
	}
	for _, f := range commit.Op[commit.AddFeatures](&c) {
		t := f.Type
		if known, ok := next.features[f.Name]; ok {
			var err error
			if t, err = vector.Widen(known, t); err != nil {
				if int(c.Base) != len(m.snapshots) { // another may have made it since
					err = fmt.Errorf("%w: %w", err, ErrConflict)
				}
				return err
			}
		}
		next.features[f.Name] = t
	}
	for _, s := range commit.Op[commit.AddSources](&c) {
		if at, ok := next.sources[s.Fingerprint]; ok && (len(commit.Op[commit.OverwritePartitions](&c)) == 0 ||
			at > int(c.Base)) {
			return ErrDuplicateSource
		}
		next.sources[s.Fingerprint] = n
	}
	gone := map[string]bool{}
	for _, p := range commit.Op[commit.OverwritePartitions](&c) {
		for _, s := range l.segments {
			if s.partition == p.String() {
				if s.added > int(c.Base) {
					return ErrConflict
				}
				gone[s.id] = true
			}
		}
	}
	for _, r := range commit.Op[commit.RemoveSegments](&c) {
		if !slices.ContainsFunc(l.segments, func(s modelSegment) bool { return s.id == r }) {
			return ErrConflict
		}
		gone[r] = true
	}
	placed := map[string]bool{} // partitions
	add := func(only string) {
		for _, d := range commit.Op[commit.AddSegments](&c) {
			if p := d.Partition.String(); !placed[p] && (only == "all" || p == only) {
				next.segments = append(next.segments, modelSegment{d.ID, p, d.Rows, n})
			}
		}
		placed[only] = true
	}
	for _, s := range l.segments {
		if slices.Contains(commit.Op[commit.RemoveSegments](&c), s.id) {
			add(s.partition)
		}
		if !gone[s.id] {
			next.segments = append(next.segments, s)
		}
	}
	add("all")
	for _, d := range commit.Op[commit.AddSegments](&c) {
		if slices.ContainsFunc(l.segments, func(s modelSegment) bool { return s.id == d.ID }) {
			return ErrConflict
		}
	}
	m.snapshots = append(m.snapshots, next)
	return nil
}

// fakeSegment puts an index of nothing and describes a segment of it alone: commits look no further.
func fakeSegment(ctx context.Context, tab *Table, p catalog.Partition, rows uint64) (catalog.SegmentDescriptor, error) {
	of, err := tab.log.Identity(ctx)
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	i := names.NewID(of)
	d := catalog.SegmentDescriptor{ID: i.String(), Partition: p, Rows: rows, Bytes: 10 + rows, Index: i.IndexName(),
		IndexSize: 10 + rows}
	return d, tab.s.core.Blobs.PutIfAbsent(ctx, d.Index, make([]byte, d.IndexSize))
}

func checkSnapshot(t *rapid.T, s *Snapshot, want modelSnapshot) {
	ctx := context.Background()
	i := s.Info()
	byPartition := slices.Clone(want.segments)
	slices.SortStableFunc(byPartition, func(a, b modelSegment) int { return strings.Compare(a.partition, b.partition) })
	rows := uint64(0)
	for _, w := range want.segments {
		rows += w.rows
	}
	if i.Rows != rows || i.Segments != uint64(len(want.segments)) || i.Features != uint64(len(want.features)) ||
		!i.Time.Equal(want.time) {
		t.Fatalf("%+v, want %d rows, %d segments, %d features, %v", i, rows, len(want.segments),
			len(want.features), want.time)
	}
	got, err := s.Segments(ctx, nil)
	if err != nil || len(got) != len(byPartition) {
		t.Fatalf("%d segments, want %d: %v", len(got), len(byPartition), err)
	}
	var partitions []string
	for k, w := range byPartition {
		if got[k].ID != w.id || got[k].Partition.String() != w.partition || got[k].Rows != w.rows {
			t.Fatalf("segment %d is %+v, want %+v", k, got[k], w)
		}
		if len(partitions) == 0 || partitions[len(partitions)-1] != w.partition {
			partitions = append(partitions, w.partition)
		}
	}
	ps, err := s.Partitions(ctx)
	if err != nil || len(ps) != len(partitions) {
		t.Fatalf("partitions %v, want %v: %v", ps, partitions, err)
	}
	for k, p := range ps {
		if p.String() != partitions[k] {
			t.Fatalf("partitions %v, want %v", ps, partitions)
		}
		one, err := s.Partition(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		some, err := s.Segments(ctx, func(q catalog.Partition) bool { return q.Equal(p) })
		if err != nil || !slices.EqualFunc(one, some, func(a, b catalog.SegmentDescriptor) bool {
			return a.ID == b.ID
		}) || len(one) == 0 {
			t.Fatalf("partition %v: %v, then %v: %v", p, one, some, err)
		}
	}
	fs, err := s.Features(ctx)
	if err != nil || len(fs) != len(want.features) {
		t.Fatalf("features %v, want %v: %v", fs, want.features, err)
	}
	for name, typ := range want.features {
		f, err := s.Lookup(ctx, name)
		if err != nil || f[0].Type != typ || f[0].ID != catalog.NewFeatureID(name, 0) {
			t.Fatalf("feature %s: %v %v, want %v", name, f, err, typ)
		}
	}
	for k := range 12 {
		print := fmt.Sprint("p", k)
		has, err := s.HasSource(ctx, print)
		if _, ok := want.sources[print]; err != nil || has != ok {
			t.Fatalf("source %s: %v, want %v: %v", print, has, ok, err)
		}
	}
}

// TestMetamorphic runs random commits by several writers with old and new bases, and reads, against the model.
func TestMetamorphic(t *testing.T) {
	types := []vector.Type{
		int64Type, {Kind: vector.Dense, Elem: vector.Int8}, {Kind: vector.Dense,
			Elem: vector.Float32}, {Kind: vector.Dense, Elem: vector.Float64},
		{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.String}, {Kind: vector.Bytes},
	}
	values := []string{"a", "b", "", "%2F", "x/y=z", "é"}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		blobs := object.NewMemory()
		now := time.Unix(1e9, 0).UTC()
		handles := make([]*Table, 3)
		for i := range handles {
			s, err := Create(ctx, blobs, Options{Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			s.core.Trees.MemtableBytes = rapid.SampledFrom([]uint64{0, 300, 2000, lsm.DefaultMemtableBytes}).Draw(t,
				"tail")
			if handles[i], err = s.NewTable(ctx, "t/../ü"); err != nil {
				t.Fatal(err)
			}
		}
		var m model
		handle := func() *Table { return handles[rapid.IntRange(0, len(handles)-1).Draw(t, "handle")] }
		drawPartition := func() catalog.Partition {
			switch v := rapid.IntRange(-1, len(values)-1).Draw(t, "partition"); v {
			case -1:
				return catalog.Partition{{Key: "ds", Null: true}}
			default:
				return partition("ds", values[v])
			}
		}
		var lost []catalog.SegmentDescriptor
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(-2, 10).Draw(t, "tick")) * time.Second)
				c := commit.Change{Operation: "test", Base: uint64(max(0, len(m.snapshots)-rapid.SampledFrom([]int{0, 0,
					0, 1, 3}).Draw(t, "behind")))}
				for range rapid.IntRange(0, 4).Draw(t, "adds") {
					d, err := fakeSegment(ctx, handles[0], drawPartition(), rapid.Uint64Range(0, 1000).Draw(t, "rows"))
					if err != nil {
						t.Fatal(err)
					}
					c.Set(append(commit.Op[commit.AddSegments](&c), d))
				}
				list := map[string]bool{}
				for range rapid.IntRange(0, 3).Draw(t, "features") {
					name := fmt.Sprint("f", rapid.IntRange(0, 40).Draw(t, "feature"))
					if !list[name] {
						list[name] = true
						c.Set(append(commit.Op[commit.AddFeatures](&c), feature(name,
							rapid.SampledFrom(types).Draw(t, "type"))))
					}
				}
				l := m.latest()
				switch rapid.SampledFrom([]string{"", "", "", "overwrite", "remove", "both", "gone", "again"}).Draw(t,
					"kind") {
				case "overwrite":
					c.Set(commit.OverwritePartitions{drawPartition(), drawPartition()})
				case "remove":
					if len(l.segments) > 0 {
						for range rapid.IntRange(1, 3).Draw(t, "removes") {
							c.Set(append(commit.Op[commit.RemoveSegments](&c), rapid.SampledFrom(l.segments).Draw(t,
								"segment").id))
						}
					}
				case "both":
					c.Set(commit.OverwritePartitions{drawPartition()})
					if len(l.segments) > 0 {
						c.Set(commit.RemoveSegments{rapid.SampledFrom(l.segments).Draw(t, "segment").id})
					}
				case "gone":
					c.Set(commit.RemoveSegments{names.RandomID().String()})
				case "again":
					if len(lost) > 0 {
						c.Set(append(commit.Op[commit.AddSegments](&c), rapid.SampledFrom(lost).Draw(t, "lost")))
					}
				}
				for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, 11), 0, 2, rapid.ID).Draw(t, "sources") {
					c.Set(append(commit.Op[commit.AddSources](&c), catalog.Source{Fingerprint: fmt.Sprint("p", k),
						Name: "name"}))
				}
				want := m.commit(c, now)
				s, err := handle().Commit(ctx, c)
				switch {
				case want == nil:
					if err != nil {
						t.Fatalf("commit %+v: %v", c, err)
					}
					if int(s.Info().Number) != len(m.snapshots) {
						t.Fatalf("snapshot %d, want %d", s.Info().Number, len(m.snapshots))
					}
					checkSnapshot(t, s, m.latest())
				case err == nil:
					t.Fatalf("commit %+v: no error, want %v", c, want)
				case errors.Is(want, ErrConflict) != errors.Is(err, ErrConflict) ||
					errors.Is(want, ErrDuplicateSource) != errors.Is(err, ErrDuplicateSource):
					t.Fatalf("commit %+v: %v, want %v", c, err, want)
				default:
					lost = append(lost, commit.Op[commit.AddSegments](&c)...)
				}
			},
			"latest": func(t *rapid.T) {
				s, err := handle().Latest(ctx)
				if len(m.snapshots) == 0 {
					if !errors.Is(err, ErrNotFound) {
						t.Fatal(err)
					}
					return
				}
				if err != nil || int(s.Info().Number) != len(m.snapshots) {
					t.Fatal(s, err)
				}
				checkSnapshot(t, s, m.latest())
			},
			"travel": func(t *rapid.T) {
				n := rapid.IntRange(0, len(m.snapshots)+1).Draw(t, "number")
				s, err := handle().At(ctx, uint64(n))
				if n == 0 || n > len(m.snapshots) {
					if !errors.Is(err, ErrNotFound) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				checkSnapshot(t, s, m.snapshots[n-1])
				at := m.snapshots[n-1].time
				last := n
				for last < len(m.snapshots) && !m.snapshots[last].time.After(at) {
					last++
				}
				if s, err = handle().AsOf(ctx, at); err != nil || int(s.Info().Number) != last {
					t.Fatalf("as of %v: %v %v, want %d", at, s, err, last)
				}
			},
			"history": func(t *rapid.T) {
				if len(m.snapshots) == 0 {
					return
				}
				infos, err := handle().Snapshots(ctx)
				if err != nil || len(infos) != len(m.snapshots) {
					t.Fatal(len(infos), err)
				}
			},
			"gc": func(t *rapid.T) {
				if _, err := handle().Store().GC(ctx, gc.Options{}); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// TestConcurrentCommits: commits that commute all succeed, also when made at once.
func TestConcurrentCommits(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	const writers, each = 4, 8
	var wg sync.WaitGroup
	for w := range writers {
		tab := newTable(t, l)
		wg.Go(func() {
			for k := range each {
				d, err := fakeSegment(ctx, tab, partition("w", fmt.Sprint(k%3)), 1)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
					Ops: []commit.Operation{commit.AddSegments{d}, commit.AddFeatures(features(fmt.Sprint("f", w, "-",
						k))), commit.AddSources{{Fingerprint: fmt.Sprint(w, k), Name: "x"}}}}); err != nil {
					t.Error(err)
				}
				s, err := tab.Latest(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				segs, err := s.Segments(ctx, nil)
				if err != nil || uint64(len(segs)) != s.Info().Number {
					t.Error(len(segs), s.Info().Number, err)
				}
			}
		})
	}
	// One source by two at once: exactly one gets it.
	outcome := make([]error, 2)
	for i := range outcome {
		tab := newTable(t, l)
		wg.Go(func() {
			d, err := fakeSegment(ctx, tab, partition("w", "same"), 0)
			if err != nil {
				t.Error(err)
				return
			}
			_, outcome[i] = tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddSegments{d}, commit.AddSources{{Fingerprint: "same", Name: "x"}}}})
		})
	}
	wg.Wait()
	if (outcome[0] == nil) == (outcome[1] == nil) || !errors.Is(errors.Join(outcome...), ErrDuplicateSource) {
		t.Fatal(outcome)
	}
	s, err := newTable(t, l).Latest(ctx)
	if err != nil || s.Info().Number != writers*each+1 || s.Info().Features != writers*each ||
		s.Info().Rows != writers*each {
		t.Fatalf("%+v %v", s.Info(), err)
	}
}
