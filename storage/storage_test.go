package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var int64Type = vector.Type{Kind: vector.Dense, Elem: vector.Int64}

func feature(name string, t vector.Type) catalog.Feature {
	return catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name, Type: t}
}

func partition(kv ...string) catalog.Partition {
	var p catalog.Partition
	for i := 0; i < len(kv); i += 2 {
		p = append(p, catalog.PartitionValue{Key: kv[i], Value: kv[i+1]})
	}
	return p
}

// segment writes a segment of one dense int64 feature each name, whose rows hold seed, seed+1, ...
func writeSegment(t testing.TB, tab *Table, p catalog.Partition, stripes []uint32, seed int64, opts segment.Options,
	names ...string) catalog.SegmentDescriptor {
	t.Helper()
	return segmentWith(t, tab, p, stripes, seed, opts, features(names...)...)
}

// segmentWith is segment with features that may have roles.
func segmentWith(t testing.TB, tab *Table, p catalog.Partition, stripes []uint32, seed int64, opts segment.Options,
	features ...catalog.Feature) catalog.SegmentDescriptor {
	t.Helper()
	ctx := context.Background()
	w, err := tab.NewSegment(ctx, p, stripes, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range features {
		if err := w.AddFeature(ctx, i, f, denseRows(stripes, seed)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := w.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func denseRows(stripes []uint32, seed int64) func(*format.Writer) error {
	return func(w *format.Writer) error {
		for _, n := range stripes {
			c := vector.NewColumn(int64Type)
			for range n {
				c.Ints = append(c.Ints, seed)
				seed = seed*3 + 1
				c.AddSlot()
			}
			if err := w.WriteStripe(c); err != nil {
				return err
			}
		}
		return nil
	}
}

func newTable(t testing.TB, blobs object.Store) *Table {
	t.Helper()
	s, err := Create(context.Background(), blobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.NewTable(context.Background(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func localStore(t testing.TB) *object.Local {
	t.Helper()
	l, err := object.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func features(names ...string) []catalog.Feature {
	var out []catalog.Feature
	for _, n := range names {
		out = append(out, feature(n, int64Type))
	}
	return out
}

func TestCommitAndRead(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := newTable(t, l)
	if _, err := tab.Latest(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatalf("latest of no table: %v", err)
	}
	p := partition("ds", "2026-11-01")
	stripes := []uint32{100, 50}
	d := writeSegment(t, tab, p, stripes, 7, segment.Options{StandAloneBytes: 100}, "a", "b", "c")
	s, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features("a", "b", "c")), commit.AddSegments{d},
			commit.AddSources{{Fingerprint: "f1", Name: "x.parquet"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Number != 1 || i.Rows != 150 || i.Segments != 1 || i.Features != 3 || i.AddedRows != 150 {
		t.Fatalf("%+v", i)
	}
	tab = newTable(t, l)
	s, err = tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := s.Lookup(ctx, "c", "a")
	if err != nil || fs[0] != feature("c", int64Type) || fs[1] != feature("a", int64Type) {
		t.Fatal(fs, err)
	}
	if _, err := s.Lookup(ctx, "aa"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	} else {
		t.Log(err)
	}
	found, err := s.Find(ctx, "aa", "b")
	if err != nil || found[0] != nil || *found[1] != feature("b", int64Type) {
		t.Fatal(found, err)
	}
	segs, err := s.Segments(ctx, nil)
	if err != nil || len(segs) != 1 || segs[0].ID != d.ID {
		t.Fatal(segs, err)
	}
	g, err := s.OpenSegment(ctx, segs[0])
	if err != nil {
		t.Fatal(err)
	}
	es, err := g.Lookup(ctx, fs[0].ID, 12345)
	if err != nil || es[0] == nil || es[1] != nil {
		t.Fatal(es, err)
	}
	e := es[0]
	b := make([]byte, e.Meta.Stripes[1].Length)
	if err := l.ReadAt(ctx, e.Object, b, int64(e.Offset+e.Meta.Stripes[1].Offset)); err != nil {
		t.Fatal(err)
	}
	col := vector.NewColumn(e.Meta.Type)
	if err := format.NewStripeDecoder(format.Limits{}).DecodeStripe(col, e.Meta, 1, b, nil); err != nil ||
		col.Rows != 50 {
		t.Fatal(err)
	}
	all, err := g.Entries(ctx)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	objects, err := g.Objects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(objects)
	_, err = tab.Commit(ctx, commit.Change{Operation: "ingest", Base: 1,
		Ops: []commit.Operation{commit.AddSources{{Fingerprint: "f1", Name: "y"}}}})
	if !errors.Is(err, ErrDuplicateSource) {
		t.Fatal(err)
	}
	tables, err := tab.Store().Tables(ctx)
	if err != nil || fmt.Sprint(tables) != "[ads]" {
		t.Fatal(tables, err)
	}
}

func TestManyCommits(t *testing.T) {
	ctx := t.Context()
	m := object.NewMemory()
	tab := newTable(t, m)
	const n = 400
	for i := range n {
		p := partition("ds", fmt.Sprint(i%7))
		d := writeSegment(t, tab, p, []uint32{uint32(i + 1)}, 1, segment.Options{})
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddSegments{d},
			commit.AddFeatures(features(fmt.Sprint("f", i)))}}); err != nil {
			t.Fatal(err)
		}
	}
	tab = newTable(t, m)
	s, err := tab.Latest(ctx)
	if err != nil || s.Info().Number != n {
		t.Fatal(s, err)
	}
	t.Log(len(s.Manifest.Listing.Runs), len(s.Manifest.Listing.Memtable), len(s.Manifest.Schema.Runs),
		len(s.Manifest.Schema.Memtable))
	segs, err := s.Segments(ctx, nil)
	if err != nil || len(segs) != n {
		t.Fatal(len(segs), err)
	}
	k := 0
	for ds := range 7 {
		part, err := s.Partition(ctx, partition("ds", fmt.Sprint(ds)))
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for _, d := range part {
			if segs[k].ID != d.ID || d.Rows <= last {
				t.Fatalf("segment %d: %+v after %d", k, d, last)
			}
			last = d.Rows
			k++
		}
	}
	parts, err := s.Partitions(ctx)
	if err != nil || len(parts) != 7 || k != n {
		t.Fatal(parts, k, err)
	}
	fs, err := s.Features(ctx)
	if err != nil || len(fs) != n {
		t.Fatal(len(fs), err)
	}
	for i := uint64(1); i <= n; i += 37 {
		s, err := tab.At(ctx, i)
		if err != nil || s.Info().Segments != i {
			t.Fatal(err)
		}
		segs, err := s.Segments(ctx, nil)
		if err != nil || uint64(len(segs)) != i {
			t.Fatal(len(segs), err)
		}
		if s, err = tab.AsOf(ctx, s.Info().Time); err != nil || s.Info().Number < i {
			t.Fatal(err)
		}
	}
}

// The partition keys are read off the first partition, whose cost does not grow with the listing.
func TestPartitionKeysCost(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	for _, n := range []int{1, 2000} {
		c := commit.Change{Operation: "ingest"}
		for i := range n {
			d, err := fakeSegment(ctx, tab, partition("ds", fmt.Sprintf("2026-%04d", i), "hr", fmt.Sprint(n)), 10)
			if err != nil {
				t.Fatal(err)
			}
			c.Set(append(commit.Op[commit.AddSegments](&c), d))
		}
		if _, err := tab.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		counted := object.NewCounted(mem)
		s, err := newTable(t, counted).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		before := counted.Counts()
		keys, err := s.PartitionKeys(ctx)
		if err != nil || !slices.Equal(keys, []string{"ds", "hr"}) {
			t.Fatal(keys, err)
		}
		if r := counted.Counts().Sub(before).Requests(); r > 3 {
			t.Errorf("%d partitions: %d requests", n, r)
		}
	}
	s, err := newTable(t, mem).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := s.t.log.Empty().PartitionKeys(ctx); err != nil || keys != nil {
		t.Errorf("no partition: %v, %v", keys, err)
	}
}
