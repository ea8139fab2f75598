package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/selection"
)

// forget takes the rows of a model that were erased.
func (x *tester) forget(gone func(testRow) bool) (ids []int64) {
	for id, r := range x.rows {
		if gone(r) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		delete(x.rows, id)
		delete(x.labels, id)
		for _, l := range x.lists {
			delete(l, id)
		}
		for _, o := range x.overlays {
			delete(o, id)
		}
	}
	return ids
}

// erasable returns a table whose sessions have long names, with lists, overlays, deletes and a snapshot of each.
func erasable(t *testing.T, blobs object.Store, seed uint64) *tester {
	x := newTester(t, blobs, seed)
	for range 4 {
		rows := x.newRows(25, 2)
		for i := range rows {
			rows[i].Session = fmt.Sprintf("person-%04d", i%12)
		}
		x.ingest(rows)
	}
	x.overlay("o", catalog.Null, catalog.FallThrough, func(i int) bool { return i%2 == 0 })
	x.list("l", x.some(2))
	x.delete(x.some(9))
	return x
}

func sessionKeys(x *tester, names ...string) *Keys {
	x.Helper()
	f, err := KeyFeature(context.Background(), x.latest(), "session")
	x.check(err)
	return x.keysOf(f, names...)
}

func (x *tester) keysOf(f catalog.Feature, texts ...string) *Keys {
	x.Helper()
	k, err := NewKeys(f)
	x.check(err)
	x.check((&selection.KeySource{Given: texts}).Each(context.Background(), f, k.Add))
	return k
}

// holdsBytes returns the objects that have the text.
func (x *tester) holdsBytes(text string) (out []string) {
	x.Helper()
	ctx := context.Background()
	for info, err := range x.blobs.List(ctx, "", "") {
		x.check(err)
		b := make([]byte, info.Size)
		x.check(x.blobs.ReadAt(ctx, info.Name, b, 0))
		if strings.Contains(string(b), text) {
			out = append(out, info.Name)
		}
	}
	return out
}

// TestEraseKeys: people are gone from every object, all else is as it was, and the report says what was touched.
func TestEraseKeys(t *testing.T) {
	x := erasable(t, object.NewMemory(), 1)
	before := x.latest().Info()
	if len(x.holdsBytes("person-0003")) == 0 {
		t.Fatal("no object has the key as bytes: the test would see nothing")
	}
	keys := sessionKeys(x, "person-0003", "person-0007", "person-9999")
	dry, err := Erase(t.Context(), x.table, Erasure{Keys: keys, DryRun: true, Compact: x.options()})
	x.check(err)
	if n := x.latest().Info().Number; n != before.Number || dry.Rows == 0 || dry.Segments == 0 {
		t.Fatalf("a dry run made snapshot %d: %+v", n, dry)
	}
	r, err := Erase(t.Context(), x.table, Erasure{Keys: keys, Compact: x.options()})
	x.check(err)
	gone := x.forget(func(r testRow) bool { return r.Session == "person-0003" || r.Session == "person-0007" })
	if r.Rows != uint64(len(gone)) || r.Rows != dry.Rows || r.Segments != dry.Segments ||
		r.TableBytes != before.Bytes || r.Deleted == 0 {
		t.Fatalf("%d rows: %+v", len(gone), r)
	}
	s := r.Search
	if s == nil || s.Keys != 3 || s.ByteKeys != 3 || len(s.Found) > 0 || s.Slots == 0 || s.Bytes == 0 ||
		!strings.Contains(s.Proves(), "session in any segment that the table's newest snapshot or a branch names") ||
		!strings.Contains(s.Proves(), "of one of the 3 of 3 keys") ||
		!strings.Contains(s.Unproved(), "no other table") || strings.Contains(s.Unproved(), "short") {
		t.Fatalf("%+v", s)
	}
	x.verify("erased")
	if left := slices.Concat(x.holdsBytes("person-0003"), x.holdsBytes("person-0007")); len(left) > 0 {
		t.Fatalf("left in %v", left)
	}
	infos, err := x.table.Snapshots(t.Context())
	x.check(err)
	// The one before the expiry, the expiry, and the one that the purge made.
	if infos[0].Number != r.Snapshot-2 || infos[len(infos)-1].Number != r.Snapshot {
		t.Fatalf("snapshots %d to %d are left; the report says that %d is the newest", infos[0].Number,
			infos[len(infos)-1].Number, r.Snapshot)
	}
	// Again there is nothing to do.
	again, err := Erase(t.Context(), x.table, Erasure{Keys: keys, Compact: x.options()})
	x.check(err)
	if again.Rows != 0 || again.Segments != 0 || len(again.Expired) > 0 {
		t.Fatalf("%+v", again)
	}
	x.verify("erased again")
}

// TestEraseWhere: rows by a filter; of keys that other rows keep nothing is said to be gone.
func TestEraseWhere(t *testing.T) {
	x := erasable(t, object.NewMemory(), 2)
	r, err := Erase(t.Context(), x.table, Erasure{Where: "session = 'person-0002' OR time < 200", Compact: x.options()})
	x.check(err)
	gone := x.forget(func(r testRow) bool { return r.Session == "person-0002" || r.Time < 200 })
	left := map[string]bool{}
	for _, r := range x.rows {
		left[r.Session] = true
	}
	want := 0
	for i := range 12 {
		if !left[fmt.Sprintf("person-%04d", i)] {
			want++
		}
	}
	if r.Rows != uint64(len(gone)) || r.Search == nil || r.Search.Keys != want {
		t.Fatalf("%d rows, %d keys: %+v %+v", len(gone), want, r, r.Search)
	}
	x.verify("erased")
	if left := x.holdsBytes("person-0002"); len(left) > 0 {
		t.Fatalf("left in %v", left)
	}
}

// TestEraseDeleted: rows that were deleted are erased by the predicate that they were deleted by, though no reader sees
// them any more.
func TestEraseDeleted(t *testing.T) {
	x := erasable(t, object.NewMemory(), 2)
	var ids []int64
	for id, r := range x.rows {
		if r.Session == "person-0002" {
			ids = append(ids, id)
		}
	}
	x.delete(ids)
	where := Erasure{Where: "session = 'person-0002'", Compact: x.options(), DryRun: true}
	before := x.latest().Info()
	dry, err := Erase(t.Context(), x.table, where)
	x.check(err)
	where.DryRun = false
	r, err := Erase(t.Context(), x.table, where)
	x.check(err)
	if r.Rows != 0 || r.Deleted != before.DeletedRows || dry.Deleted != r.Deleted || r.Segments == 0 ||
		r.Search == nil || r.Search.Keys != 1 {
		t.Fatalf("%+v %+v", r, r.Search)
	}
	x.verify("erased")
	for _, d := range x.segments(x.latest()) {
		for _, row := range x.decode(d) {
			if _, ok := x.rows[row.id]; !ok {
				t.Fatalf("segment %s has row %d: %s", d.ID, row.id, row.text)
			}
		}
	}
	if left := x.holdsBytes("person-0002"); len(left) > 0 {
		t.Fatalf("left in %v", left)
	}
}

// TestEraseBesideDamage: another table that is damaged is told, and in nobody's way: what was erased is searched for
// all the same.
func TestEraseBesideDamage(t *testing.T) {
	blobs, err := object.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := erasable(t, blobs, 1)
	x.check(blobs.PutIfAbsent(t.Context(), "tables/a/snapshots/99999999/9999999998.1", []byte("no snapshot")))
	r, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, "person-0003"), Compact: x.options()})
	x.check(err)
	x.forget(func(r testRow) bool { return r.Session == "person-0003" })
	if r.Search == nil || len(r.Search.Found) > 0 || !strings.Contains(r.UnnamedError, "tables/a/") {
		t.Fatalf("%+v", r)
	}
	if left := x.holdsBytes("person-0003"); len(left) > 0 {
		t.Fatalf("left in %v", left)
	}
}

// TestEraseSaysWhatIsLeft: what no snapshot names, and the definition of a sample list, may name people: both are told.
func TestEraseSaysWhatIsLeft(t *testing.T) {
	ctx := t.Context()
	x := erasable(t, object.NewMemory(), 2)
	// nobody commits it
	w, err := x.table.NewSegment(ctx, x.segments(x.latest())[0].Partition, []uint32{1}, segment.Options{})
	x.check(err)
	_, err = w.Finish(ctx)
	x.check(err)
	id, err := KeyFeature(ctx, x.latest(), "id")
	x.check(err)
	keys := x.keysOf(id, "17", "18")
	r, err := Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()})
	x.check(err)
	if r.Unnamed == 0 || r.UnnamedBytes == 0 {
		t.Fatalf("%+v", r)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
		commit.DefineLists{{Name: "other", Definition: "time = 17"},
			{Name: "people", Definition: "id IN (16,17)"}},
	}})
	r, err = Erase(ctx, x.table, Erasure{Keys: keys, DryRun: true, Compact: x.options()})
	if !errors.Is(err, ErrFound) || !strings.Contains(err.Error(), "sample list people") || r.Search != nil {
		t.Fatalf("a dry run: %v %+v", err, r)
	}
	r, err = Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()})
	if !errors.Is(err, ErrFound) || !strings.Contains(err.Error(), "sample list people") || len(r.Search.Found) != 1 {
		t.Fatalf("%v %+v", err, r.Search)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropLists{"people"}}})
	_, err = Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()})
	x.check(err)
	// Nor has a snapshot it that has not expired.
	for n := x.latest().Info().Oldest; n <= x.latest().Info().Number; n++ {
		s, err := x.table.At(ctx, n)
		x.check(err)
		lists, err := s.SampleLists(ctx)
		x.check(err)
		if slices.ContainsFunc(lists, func(l catalog.SampleList) bool { return l.Name == "people" }) {
			t.Errorf("snapshot %d has the sample list", n)
		}
	}
	if _, err = x.store.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if r, err = Erase(ctx, x.table, Erasure{Keys: keys, Compact: x.options()}); err != nil || r.Unnamed != 0 {
		t.Fatalf("%v %+v", err, r)
	}
}

// TestEraseForgetsDefinitions: a list whose definition names a person, by a name that the key no longer has, is dropped
// and its snapshots expire. The runs of the listing say it still: the next erasure merges them.
func TestEraseForgetsDefinitions(t *testing.T) {
	ctx := t.Context()
	x := erasable(t, object.NewMemory(), 5)
	erase := func() error {
		_, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "person-0003"), Compact: x.options()})
		return err
	}
	x.check(erase())
	long := strings.Repeat("a long definition, as people write them, fills the memtable ", 60)
	for i := range 40 {
		list := catalog.SampleList{Name: fmt.Sprint("list ", i), Definition: long}
		if i == 20 {
			list.Definition = "who = 'person-0003' " + long
		}
		x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DefineLists{list}}})
	}
	if err := erase(); !errors.Is(err, ErrFound) || !strings.Contains(err.Error(), "sample list list 20") {
		t.Fatalf("a list names the person: %v", err)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropLists{"list 20"}}})
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.ExpireBelow(x.latest().Info().Number)}})
	if _, err := x.store.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if len(x.holdsBytes("person-0003")) == 0 {
		t.Fatal("no run has the definition: the test proves nothing")
	}
	// The snapshot that the erasure makes names other runs. Those before it stay until somebody lets them expire.
	oldest := x.latest().Info().Oldest
	if err := erase(); !errors.Is(err, ErrFound) || !strings.Contains(err.Error(), "dsi snapshots expire") {
		t.Fatal(err)
	}
	if i := x.latest().Info(); i.Oldest != oldest || i.Operation != ForgetOperation {
		t.Fatalf("%+v after one whose oldest was %d", i, oldest)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.ExpireBelow(x.latest().Info().Number)}})
	_, err := x.store.GC(ctx, gc.Options{NoWait: true})
	x.check(err)
	x.check(erase())
	if left := x.holdsBytes("person-0003"); len(left) > 0 {
		t.Fatalf("left in %v", left)
	}
	x.forget(func(r testRow) bool { return r.Session == "person-0003" })
	x.verify("erased")
}

// TestEraseHeld: a branch, or a lease, on a snapshot that has the rows is named, and nothing is done; one that has none
// of them stays.
func TestEraseHeld(t *testing.T) {
	ctx := t.Context()
	x := erasable(t, object.NewMemory(), 3)
	s := x.latest()
	x.commit(s, commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: s.Info().Number}}}})
	before := x.latest().Info().Number
	erase := func(what Erasure) (*EraseReport, error) {
		what.Keys, what.Compact = sessionKeys(x, "person-0001"), x.options()
		return Erase(ctx, x.table, what)
	}
	if _, err := erase(Erasure{}); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "branches b") {
		t.Fatal(err)
	}
	lease, err := s.Lease(ctx, "somebody", time.Hour)
	x.check(err)
	other, err := s.Lease(ctx, "another", time.Hour)
	x.check(err)
	for _, drop := range []bool{false, true} { // all that hold the rows are named at once
		_, err := erase(Erasure{DropBranches: drop})
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "somebody") ||
			!strings.Contains(err.Error(), "another") || strings.Contains(err.Error(), "branches b") == drop {
			t.Fatal(err)
		}
		r, dry := erase(Erasure{DropBranches: drop, DryRun: true})
		if dry == nil || dry.Error() != err.Error() {
			t.Fatalf("a dry run: %v, want %v", dry, err)
		}
		if len(r.HeldLeases) != 2 || len(r.Held) == len(r.Branches) || (len(r.Held) > 0) == drop {
			t.Fatalf("%+v", r)
		}
	}
	x.check(other.Release(ctx))
	if _, err := erase(Erasure{DropBranches: true}); !errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
	if n := x.latest().Info().Number; n != before {
		t.Fatalf("snapshot %d after %d", n, before)
	}
	x.check(lease.Release(ctx))
	r, err := erase(Erasure{DropBranches: true})
	x.check(err)
	if !slices.Equal(r.Branches, []string{"b"}) {
		t.Fatalf("%+v", r)
	}
	x.forget(func(r testRow) bool { return r.Session == "person-0001" })
	x.verify("erased")
	// A branch of the newest snapshot, and rows of one partition only.
	day := ""
	for _, r := range x.rows {
		day = max(day, r.Day)
	}
	clean := testRow{Day: "other", Session: "somebody else", Time: 1, ID: 5000}
	x.ingest([]testRow{clean})
	x.ingest([]testRow{{Day: "d0", Session: "person-0099", Time: 1, ID: 5001}})
	s = x.latest()
	x.commit(s, commit.Change{Ops: []commit.Operation{
		commit.SetBranches{{Name: "c", Snapshot: s.Info().Number - 1}}}})
	r, err = Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "person-0099"), Compact: x.options()})
	x.check(err)
	if r.Segments != 1 || len(r.Branches) > 0 {
		t.Fatalf("%+v", r)
	}
	x.forget(func(r testRow) bool { return r.Session == "person-0099" })
	x.verify("erased beside a branch")
	if _, err := x.table.OpenBranch(ctx, "c"); err != nil {
		t.Fatal(err)
	}
}

// TestEraseResumes: an erasure that fails at any operation leaves the rows as they were or deleted, and run again, it
// ends with nothing left.
func TestEraseResumes(t *testing.T) {
	kinds, grow := []bool{false, true}, int64(3)
	if race.Enabled {
		kinds, grow = kinds[1:], 1
	}
	for _, where := range kinds {
		for at := int64(1); at < 2000; at += 1 + at/grow {
			memory := object.NewMemory()
			fault := object.NewFault(memory)
			x := erasable(t, fault, 4)
			what := func() Erasure {
				if where {
					return Erasure{Where: "session = 'person-0005'", Compact: x.options()}
				}
				return Erasure{Keys: sessionKeys(x, "person-0005"), Compact: x.options()}
			}
			w := what()
			fault.DieAt(at, object.FailAfter)
			_, err := Erase(t.Context(), x.table, w)
			fault.FailAt(0, object.FailBefore)
			done := err == nil
			if err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			// What a killed process leaves: a lease that runs out.
			for info, err := range memory.List(t.Context(), "tables/ads/leases/", "") {
				x.check(err)
				x.check(memory.Delete(t.Context(), info.Name))
			}
			x.open()
			if _, err := Erase(t.Context(), x.table, what()); err != nil {
				t.Fatalf("operation %d, again: %v", at, err)
			}
			x.forget(func(r testRow) bool { return r.Session == "person-0005" })
			x.verify(fmt.Sprint("operation ", at))
			_, err = x.store.GC(t.Context(), gc.Options{NoWait: true})
			x.check(err)
			if left := x.holdsBytes("person-0005"); len(left) > 0 {
				t.Fatalf("operation %d: left in %v", at, left)
			}
			if done {
				break
			}
		}
	}
}

// TestEraseGoesOnAfterExpiry: an erasure that stopped is gone on with by the next one, of other rows, though everything
// before it has expired meanwhile; one that ended is not.
func TestEraseGoesOnAfterExpiry(t *testing.T) {
	ctx := t.Context()
	x := erasable(t, object.NewMemory(), 1)
	x.deleteBy(eraseOperation, x.people("person-0003")) // and it is killed
	if len(x.holdsBytes("person-0003")) == 0 {
		t.Fatal("no object has the key as bytes: the test would see nothing")
	}
	_, err := x.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
	x.check(err)
	_, err = Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "nobody"), Compact: x.options()})
	x.check(err)
	_, err = x.store.GC(ctx, gc.Options{NoWait: true})
	x.check(err)
	if left := x.holdsBytes("person-0003"); len(left) > 0 {
		t.Errorf("left in %v", left)
	}
	x.verify("gone on with")
	r, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "nobody"), Compact: x.options()})
	if err != nil || r.Segments > 0 || len(r.Expired) > 0 {
		t.Errorf("it goes on with what has ended: %+v, %v", r, err)
	}
}

// TestSearchFinds: what is planted is found, by value and by bytes.
func TestSearchFinds(t *testing.T) {
	x := erasable(t, object.NewMemory(), 5)
	e := &eraser{table: x.table, store: x.store, out: &EraseReport{}, keys: sessionKeys(x, "person-0001")}
	if err := e.search(t.Context()); !errors.Is(err, ErrFound) {
		t.Fatal(err)
	}
	values := slices.ContainsFunc(e.out.Search.Found, func(s string) bool { return strings.HasPrefix(s, "segment ") })
	if !values {
		t.Fatalf("%v", e.out.Search.Found)
	}
	x.check(x.blobs.PutIfAbsent(t.Context(), "ab/planted", append(make([]byte, searchBlock-5), "person-0777"...)))
	e.keys, e.bytes = sessionKeys(x, "person-0777", "short"), nil
	if err := e.search(t.Context()); !errors.Is(err, ErrFound) || len(e.out.Search.Found) != 1 ||
		e.out.Search.ByteKeys != 1 || !strings.Contains(e.out.Search.Unproved(), "1 of 2 keys are short") {
		t.Fatalf("%v %+v", err, e.out.Search)
	}
	id, err := KeyFeature(t.Context(), x.latest(), "id")
	x.check(err)
	e.keys, e.bytes = x.keysOf(id, "1234567890123456789", "12"), nil
	delete(x.rows, 0)
	x.check(x.blobs.PutIfAbsent(t.Context(), "ab/number",
		[]byte{9, 9, 0x15, 0x81, 0xe9, 0x7d, 0xf4, 0x10, 0x22, 0x11, 9}))
	err = e.search(t.Context())
	s := e.out.Search
	if !errors.Is(err, ErrFound) || s.ByteKeys != 1 || !slices.ContainsFunc(s.Found,
		func(f string) bool { return strings.Contains(f, "ab/number, byte 2") }) {
		t.Fatalf("%v %+v", err, s)
	}
	x.check(x.blobs.PutIfAbsent(t.Context(), "ab/text", []byte("id = 1234567890123456789")))
	err = e.search(t.Context())
	if !errors.Is(err, ErrFound) || !slices.ContainsFunc(e.out.Search.Found,
		func(f string) bool { return strings.Contains(f, "ab/text, byte 5") }) {
		t.Fatalf("%v %+v", err, e.out.Search)
	}
}

// A putHook calls before ahead of every put.
type putHook struct {
	object.Store
	before func(name string)
}

func (h *putHook) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if h.before != nil {
		h.before(name)
	}
	return h.Store.PutIfAbsent(ctx, name, data)
}

// TestEraseBesideNewBranch: a branch that somebody makes of a snapshot that has the rows, while they are erased, keeps
// them: the erasure says so, or drops it.
func TestEraseBesideNewBranch(t *testing.T) {
	ctx := t.Context()
	for _, drop := range []bool{false, true} {
		// of the erasure, that the branch comes before: deletes, rewrite, expiry
		for commitTo := 1; commitTo <= 3; commitTo++ {
			mem := object.NewMemory()
			h := &putHook{Store: mem}
			x := erasable(t, h, 3)
			pinned := x.latest().Info().Number
			keys := sessionKeys(x, "person-0001")
			n := 0
			h.before = func(name string) {
				if !strings.Contains(name, "/snapshots/") {
					return
				}
				if n++; n != commitTo {
					return
				}
				h.before = nil
				s, err := storage.Open(ctx, mem, storage.Options{})
				x.check(err)
				other, err := s.Table(ctx, "ads")
				x.check(err)
				_, err = other.Commit(ctx, commit.Change{Operation: "branch", Base: pinned,
					Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: pinned}}}})
				x.check(err)
			}
			erase := func() (*EraseReport, error) {
				return Erase(ctx, x.table, Erasure{Keys: keys, DropBranches: drop, Compact: x.options()})
			}
			r, err := erase()
			if h.before != nil {
				t.Fatal("no branch was made")
			}
			_, open := x.table.OpenBranch(ctx, "b")
			if drop && (err != nil || open == nil || !slices.Equal(r.Branches, []string{"b"})) {
				t.Errorf("before commit %d: branch dropped: %v, %v; %+v", commitTo, open, err, r.Branches)
			}
			if !drop && (!errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "branches b") || open != nil) {
				t.Errorf("before commit %d: the rows are in branch b (%v), and erase says %v", commitTo, open, err)
			}
			if !drop && errors.Is(err, ErrHeld) {
				x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropBranches{"b"}}})
				if r, err = erase(); err != nil {
					t.Errorf("before commit %d, again: %v", commitTo, err)
				}
			}
			if n := x.latest().Info().Number; err == nil && r.Snapshot != n {
				t.Errorf("the report says that snapshot %d is the newest: it is %d", r.Snapshot, n)
			}
			_, err = x.store.GC(ctx, gc.Options{NoWait: true})
			x.check(err)
			if left := x.holdsBytes("person-0001"); len(left) > 0 {
				t.Errorf("before commit %d: left in %v", commitTo, left)
			}
		}
	}
}
