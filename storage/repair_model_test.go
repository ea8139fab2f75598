package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// The model of a table to be repaired: what its segments hold, by plain values.
type (
	brokenTable struct {
		segments []*brokenSegment           // in the canonical order
		overlays map[string]catalog.Overlay // as defined
		lists    map[string]bool
		branches map[string]bool
	}
	brokenSegment struct {
		id, partition string
		rows          int
		values        map[string][]int64 // by feature
		deleted       map[uint32]bool
		bitmap        string // id of the object with the deleted rows
		layers        map[string]*brokenLayer
		listed        map[string]map[uint32]bool
		listedIn      map[string]string // ids of the objects
	}
	brokenLayer struct {
		id, covered string
		cover       map[uint32]bool // nil: all rows
		values      map[string][]int64
	}
)

func (t *brokenTable) clone() *brokenTable {
	out := &brokenTable{overlays: maps.Clone(t.overlays), lists: maps.Clone(t.lists), branches: maps.Clone(t.branches)}
	for _, s := range t.segments {
		c := *s
		c.layers, c.listed, c.listedIn = maps.Clone(s.layers), maps.Clone(s.listed), maps.Clone(s.listedIn)
		out.segments = append(out.segments, &c)
	}
	return out
}

func (t *brokenTable) find(id string) *brokenSegment {
	for _, s := range t.segments {
		if s.id == id {
			return s
		}
	}
	return nil
}

// broken is a store that is to be damaged, and what it holds, snapshot by snapshot.
type broken struct {
	t         *testing.T
	mem       *object.Memory
	tab       *Table
	snapshots map[uint64]*brokenTable
	now       *brokenTable
	descs     map[string]catalog.SegmentDescriptor
	stripes   []uint32
}

var (
	brokenKey   = withRole(feature("key", int64Type), catalog.RoleSessionKey)
	brokenNames = []string{"x", "y", "g", "h"} // g and h are a dedup group
)

// brokenStore opens a store that gives key tables, runs, and row bitmaps that are objects, to small tables.
func brokenStore(t *testing.T, blobs object.Store) *Store {
	t.Helper()
	s, err := Create(t.Context(), blobs, Options{MinKeyTableRows: 1, MemtableBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	s.core.Bitmaps.InlineBytes = 0
	return s
}

// newBroken makes a store with all that can be damaged.
func newBroken(t *testing.T) *broken {
	b := &broken{t: t, mem: object.NewMemory(), snapshots: map[uint64]*brokenTable{}, stripes: []uint32{40, 24},
		now: &brokenTable{overlays: map[string]catalog.Overlay{}, lists: map[string]bool{},
			branches: map[string]bool{}},
		descs: map[string]catalog.SegmentDescriptor{}}
	var err error
	if b.tab, err = brokenStore(t, b.mem).NewTable(t.Context(), "ads"); err != nil {
		t.Fatal(err)
	}
	a1, b1 := b.segment("a", 1), b.segment("b", 2)
	b.add("ingest", a1, b1)
	a2, a3 := b.segment("a", 3), b.segment("a", 4)
	b.add("ingest", a2, a3)
	b.remove(a1, 1, 2, 3, 50)
	b.remove(a2, 0, 63)
	b.define("o", []string{"x", "z"}, map[*brokenSegment][]uint32{a1: nil, b1: {4, 5, 6, 60}})
	b.define("m", []string{"y"}, map[*brokenSegment][]uint32{a2: {0, 1, 7, 33}, b1: nil})
	b.commit("merge", commit.MergeOverlays{"m"})
	b.list("l", map[*brokenSegment][]uint32{a1: {5, 6}, b1: {1, 2}})
	b.list("k", map[*brokenSegment][]uint32{a2: {8, 9}})
	b.now.branches["b"] = true
	b.commit("branch", commit.SetBranches{{Name: "b", Snapshot: 2}})
	b.remove(b1, 9, 10)
	a4 := b.segment("a", 5)
	b.now.segments = slices.DeleteFunc(b.now.segments, func(s *brokenSegment) bool { return s == b.now.find(a3.id) })
	b.add("compact", a4, commit.RemoveSegments{a3.id})
	b2 := b.segment("b", 6)
	b.add("ingest", b2)
	if r := verifyClean(t, b.tab.s); r.Segments == 0 {
		t.Fatal(r)
	}
	return b
}

// commit commits operations against the newest snapshot, and remembers what the table is then.
func (b *broken) commit(operation string, ops ...commit.Operation) {
	b.t.Helper()
	base := uint64(len(b.snapshots))
	s := mustCommit(b.t, b.tab, commit.Change{Operation: operation, Base: base, Ops: ops})
	b.snapshots[s.Info().Number] = b.now.clone()
}

// segment writes a segment.
func (b *broken) segment(part string, seed int64) *brokenSegment {
	b.t.Helper()
	w, err := b.tab.NewSegment(b.t.Context(), partition("p", part), b.stripes,
		segment.Options{StandAloneBytes: 700, PackBytes: 900})
	if err != nil {
		b.t.Fatal(err)
	}
	s := &brokenSegment{partition: "p=" + part, rows: 64, values: map[string][]int64{}, deleted: map[uint32]bool{},
		layers: map[string]*brokenLayer{}, listed: map[string]map[uint32]bool{}, listedIn: map[string]string{}}
	for i, f := range []catalog.Feature{brokenKey, feature("x", int64Type), feature("y", int64Type)} {
		err = errors.Join(err, w.AddFeature(b.t.Context(), i, f, denseRows(b.stripes, 1000*seed+int64(i))))
		s.values[f.Name] = denseValues(64, 1000*seed+int64(i))
	}
	err = errors.Join(err, w.AddGroup(b.t.Context(), 3, features("g", "h"), groupRows(b.stripes)))
	for i, name := range []string{"g", "h"} {
		for _, rows := range b.stripes {
			for row := range rows {
				s.values[name] = append(s.values[name], int64(row/2)*int64(i+3))
			}
		}
	}
	d, ferr := w.Finish(b.t.Context())
	if err := errors.Join(err, ferr); err != nil {
		b.t.Fatal(err)
	}
	if d.KeysSize == 0 || d.Objects < 2 {
		b.t.Fatalf("%+v", d)
	}
	s.id, b.descs[d.ID] = d.ID, d
	return s
}

// denseValues are the values that denseRows writes.
func denseValues(n int, seed int64) (out []int64) {
	for range n {
		out = append(out, seed)
		seed = seed*3 + 1
	}
	return out
}

func (b *broken) add(operation string, parts ...any) {
	b.t.Helper()
	var add commit.AddSegments
	ops := []commit.Operation{commit.AddFeatures(append(features(brokenNames...), brokenKey))}
	for _, p := range parts {
		switch p := p.(type) {
		case *brokenSegment:
			add = append(add, b.descs[p.id])
			b.now.segments = append(b.now.segments, p)
		case commit.Operation:
			ops = append(ops, p)
		}
	}
	slices.SortStableFunc(b.now.segments, func(x, y *brokenSegment) int {
		return strings.Compare(x.partition, y.partition)
	})
	b.commit(operation, append(ops, add)...)
}

// bitmap writes a row bitmap, and returns it, the rows, and the id of its object.
func (b *broken) bitmap(id string, rows []uint32) (bitmap.Ref, map[uint32]bool, string) {
	b.t.Helper()
	set, err := b.tab.s.core.Bitmaps.Put(b.t.Context(), id, b.descs[id].Rows, roaring.BitmapOf(rows...))
	object, _, ok := set.Object()
	if err != nil || !ok {
		b.t.Fatal(err, ok)
	}
	out := map[uint32]bool{}
	for _, r := range rows {
		out[r] = true
	}
	return set, out, object.String()
}

// remove deletes rows, all that ever were for the segment.
func (b *broken) remove(s *brokenSegment, rows ...uint32) {
	b.t.Helper()
	set, deleted, id := b.bitmap(s.id, rows)
	now := b.now.find(s.id)
	now.deleted, now.bitmap = deleted, id
	b.commit("delete", commit.DeleteRows{{Segment: s.id, Rows: set}})
}

func (b *broken) define(name string, names []string, over map[*brokenSegment][]uint32) {
	b.t.Helper()
	o := overlay(name, names...)
	b.now.overlays[name] = o
	var set commit.SetOverlaySegments
	for s, rows := range over {
		x := layer(b.t, b.tab, name, b.descs[s.id], 70, names...)
		l := &brokenLayer{id: x.Data.ID, values: map[string][]int64{}}
		for _, n := range names {
			l.values[n] = denseValues(64, 70)
		}
		if rows != nil {
			x.All = false
			x.Covered, l.cover, l.covered = b.bitmap(s.id, rows)
		}
		b.now.find(s.id).layers[name] = l
		set = append(set, x)
	}
	b.commit("overlay", commit.DefineOverlays{o}, set)
}

func (b *broken) list(name string, rows map[*brokenSegment][]uint32) {
	b.t.Helper()
	b.now.lists[name] = true
	var set commit.SetListRows
	for s, rows := range rows {
		r, in, id := b.bitmap(s.id, rows)
		now := b.now.find(s.id)
		now.listed[name], now.listedIn[name] = in, id
		set = append(set, commit.ListRows{List: name, Segment: s.id, Rows: r})
	}
	b.commit("samples", commit.DefineLists{{Name: name}}, set)
}

// copyOf copies a store.
func copyOf(t *testing.T, mem object.Store) *object.Memory {
	t.Helper()
	out := object.NewMemory()
	for name, data := range objectsOf(t, mem) {
		if err := out.PutIfAbsent(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func objectsOf(t *testing.T, mem object.Store) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for info, err := range mem.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size)
		if err := mem.ReadAt(t.Context(), info.Name, b, 0); err != nil && info.Size > 0 {
			t.Fatal(err)
		}
		out[info.Name] = b
	}
	return out
}

// ruin replaces an object; nil: it goes.
func ruin(t *testing.T, blobs object.Store, name string, data []byte) {
	t.Helper()
	err := blobs.Delete(t.Context(), name)
	if err == nil && data != nil {
		err = blobs.PutIfAbsent(t.Context(), name, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damage returns one of the ways in which an object is damaged.
func damage(r *rand.Rand, data []byte) ([]byte, string) {
	switch r.IntN(8) {
	case 0:
		return nil, "removed"
	case 1:
		n := r.IntN(len(data))
		return bytes.Clone(data[:n]), fmt.Sprintf("cut to %d of %d", n, len(data))
	case 2:
		return make([]byte, len(data)), "zeros"
	case 3:
		return []byte{}, "empty"
	case 4:
		return append(bytes.Clone(data), make([]byte, 1+r.IntN(5000))...), "longer"
	}
	out := bytes.Clone(data)
	at := r.IntN(len(out))
	out[at] ^= 1 << r.IntN(8)
	return out, fmt.Sprintf("byte %d of %d", at, len(data))
}

// columns returns the values of features of a segment, or of a layer's: nil where it has none of the name.
func columns(ctx context.Context, s *Store, d catalog.SegmentDescriptor, names ...string) (map[string][]int64, error) {
	g, err := s.core.Segments.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	out := map[string][]int64{}
	for _, name := range names {
		found, err := g.Lookup(ctx, catalog.NewFeatureID(name, 0))
		if err != nil {
			return nil, err
		}
		if found[0] == nil {
			continue
		}
		var group *segment.Entry
		if id := found[0].Meta.Group; id != 0 {
			in, err := g.Lookup(ctx, catalog.FeatureID(id))
			if err != nil {
				return nil, err
			}
			group = in[0]
		}
		dec := format.NewStripeDecoder(format.Limits{})
		decode := func(e *segment.Entry, i int, inverse *vector.Column) (*vector.Column, error) {
			st := e.Meta.Stripes[i]
			raw := make([]byte, st.Length)
			if err := s.core.Blobs.ReadAt(ctx, e.Object, raw, int64(e.Offset+st.Offset)); err != nil {
				return nil, err
			}
			c := &vector.Column{Type: e.Meta.Type}
			return c, dec.DecodeStripe(c, e.Meta, i, raw, inverse)
		}
		for i := range found[0].Meta.Stripes {
			var inverse *vector.Column
			if group != nil {
				if inverse, err = decode(group, i, nil); err != nil {
					return nil, err
				}
			}
			c, err := decode(found[0], i, inverse)
			if err != nil {
				return nil, err
			}
			for row := range c.Rows {
				slot := row
				if c.Inverse != nil {
					slot = int(c.Inverse[row])
				}
				out[name] = append(out[name], c.Ints[slot])
			}
		}
	}
	return out, nil
}
