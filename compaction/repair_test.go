package compaction

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
)

// spoil changes a byte of a feature's values in a segment.
func (x *tester) spoil(d catalog.SegmentDescriptor, feature string) {
	x.Helper()
	ctx := context.Background()
	s := x.latest()
	f, err := s.Lookup(ctx, feature)
	x.check(err)
	g, err := s.OpenSegment(ctx, d)
	x.check(err)
	e, err := g.Lookup(ctx, f[0].ID)
	x.check(err)
	b := make([]byte, e[0].ObjectSize)
	x.check(x.blobs.ReadAt(ctx, e[0].Object, b, 0))
	b[e[0].Offset+e[0].Meta.Stripes[0].Offset] ^= 1
	x.check(x.blobs.Delete(ctx, e[0].Object))
	x.check(x.blobs.PutIfAbsent(ctx, e[0].Object, bytes.Clone(b)))
	x.open() // nothing of it is in memory
}

func (x *tester) repair(opts repair.Options) *repair.Report {
	x.Helper()
	opts.Apply = true
	r, err := x.store.Repair(context.Background(), "ads", opts)
	x.check(err)
	if !r.Applied || r.Left() > 0 {
		x.Fatalf("%+v", r)
	}
	return r
}

// in returns the rows of a segment.
func (x *tester) in(d catalog.SegmentDescriptor) map[int64]bool {
	x.Helper()
	out := map[int64]bool{}
	for id, p := range x.where(x.latest()) {
		out[id] = p.segment.ID == d.ID
	}
	return out
}

// TestRepairedTable: what a repair leaves reads as the model of it, is compacted like any other, and an erasure finds
// what was put aside.
func TestRepairedTable(t *testing.T) {
	x := erasable(t, object.NewMemory(), 5)
	x.overlay("p", catalog.FallThrough, catalog.FallThrough, func(i int) bool { return i%3 == 0 })
	x.merge("p")
	x.verify("before")

	d := x.segments(x.latest())[0]
	in := x.in(d)
	x.spoil(d, "name")
	if r := x.repair(repair.Options{NullFeatures: true}); r.LostRows != 0 || len(r.Items) != 1 ||
		strings.Join(r.Items[0].Features, " ") != "name" {
		t.Fatalf("%+v", r.Items[0])
	}
	for id, r := range x.rows {
		if in[id] {
			r.Name = nil
			x.rows[id] = r
		}
	}
	x.verify("names are null")

	d = x.segments(x.latest())[1]
	in = x.in(d)
	session := ""
	for id, r := range x.rows {
		if in[id] {
			session = r.Session
		}
	}
	x.spoil(d, "session")
	if r := x.repair(repair.Options{NullFeatures: true}); r.Items[0].Action != repair.DropRows ||
		!strings.Contains(r.Items[0].Hint, "without a key") {
		t.Fatalf("%+v", r.Items[0])
	}
	lost := x.forget(func(r testRow) bool { return in[r.ID] })
	if len(lost) == 0 {
		t.Fatal("the segment had no rows")
	}
	x.verify("rows are lost")

	opts := x.options()
	opts.Repack = true
	if _, r := x.compact(opts); r.Snapshot == 0 {
		t.Fatal("nothing was compacted")
	}
	x.verify("compacted")

	_, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, session), Compact: x.options()})
	x.check(err)
	x.forget(func(r testRow) bool { return r.Session == session })
	x.verify("erased")
	if left := x.holdsBytes(session); len(left) > 0 {
		t.Fatalf("%s is left in %v", session, left)
	}
	for info, err := range x.blobs.List(t.Context(), strings.TrimSuffix(d.Index, "index.sst"), "") {
		t.Errorf("%s of the lost segment is left: %v", info.Name, err)
	}
	_, err = x.store.GC(t.Context(), gc.Options{NoWait: true})
	x.check(err)
	x.verify("collected")
}

// TestEraseAside: an erasure is complete in what a repair has put aside too, however it was damaged.
func TestEraseAside(t *testing.T) {
	ctx := t.Context()
	const person = "only-here-0001"
	for what, damage := range map[string]func(x *tester, d catalog.SegmentDescriptor){
		"its key":       func(x *tester, d catalog.SegmentDescriptor) { x.spoil(d, "session") },
		"another value": func(x *tester, d catalog.SegmentDescriptor) { x.spoil(d, "name") },
		"its index": func(x *tester, d catalog.SegmentDescriptor) {
			x.spoil(d, "name")
			x.check(x.blobs.Delete(ctx, d.Index))
			x.open()
		},
		"nothing lost": func(x *tester, d catalog.SegmentDescriptor) {
			x.check(x.blobs.Delete(ctx, d.Index))
			x.open()
		},
	} {
		for _, null := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, null %v", what, null), func(t *testing.T) {
				x := erasable(t, object.NewMemory(), 6)
				rows := x.newRows(20, 1) // of one segment
				for i := range rows {
					rows[i].Session = person
				}
				x.ingest(rows)
				var d catalog.SegmentDescriptor
				for id, p := range x.where(x.latest()) {
					if x.rows[id].Session == person {
						d = p.segment
					}
				}
				damage(x, d)
				x.repair(repair.Options{NullFeatures: null})
				// With a key table, which the copy has anew, the erasure finds the rows by that.
				if len(x.holdsBytes(person)) == 0 || d.KeysSize == 0 {
					t.Fatal("nothing was put aside", d)
				}
				_, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, person), Compact: x.options()})
				x.check(err)
				if left := x.holdsBytes(person); len(left) > 0 {
					t.Errorf("%s is left in %v", person, left)
				}
			})
		}
	}
}

// TestEraseLost: what only a lost snapshot named an erasure reaches, or it fails, or it says that there are objects
// that it knows nothing of. gc takes them.
func TestEraseLost(t *testing.T) {
	ctx := t.Context()
	const person = "only-here-0001"
	for what, damaged := range map[string]func(b []byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"no byte": func([]byte) []byte { return nil },
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rows before %v", what, before), func(t *testing.T) {
				x := erasable(t, object.NewMemory(), 6)
				rows := x.newRows(20, 1)
				for i := range rows {
					rows[i].Session = person
				}
				if before {
					x.ingest(rows[:10])
				}
				x.ingest(rows[10:])
				n := x.latest().Info().Number
				name := names.SnapshotName("ads", n)
				info, err := x.blobs.Stat(ctx, name)
				x.check(err)
				b := make([]byte, info.Size)
				x.check(x.blobs.ReadAt(ctx, name, b, 0))
				x.check(x.blobs.Delete(ctx, name))
				x.check(x.blobs.PutIfAbsent(ctx, name, damaged(b)))
				x.open()
				x.repair(repair.Options{From: n - 1, Undelete: true})
				x.open()
				keys := sessionKeys(x, person)
				r, err := Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()})
				left := x.holdsBytes(person)
				if len(left) > 0 && err == nil && r.Unnamed == 0 {
					t.Errorf("%s is left in %v, and the erasure says that it is done: %+v", person, left, r)
				}
				t.Log(err, len(left))
				_, err = x.store.GC(ctx, gc.Options{NoWait: true})
				x.check(err)
				_, err = Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()})
				x.check(err)
				if left := x.holdsBytes(person); len(left) > 0 {
					t.Errorf("after gc %s is left in %v", person, left)
				}
			})
		}
	}
}
