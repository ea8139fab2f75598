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
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// people returns the ids of the rows of a session.
func (x *tester) people(session string) (ids []int64) {
	for id, r := range x.rows {
		if r.Session == session {
			ids = append(ids, id)
		}
	}
	return ids
}

// stored returns the segments that have rows, deleted ones too: of those that any snapshot which has not expired names,
// as they are stored.
func (x *tester) stored(ids []int64) (out []catalog.SegmentDescriptor) {
	x.Helper()
	ctx := context.Background()
	infos, err := x.table.Snapshots(ctx)
	x.check(err)
	done := map[string]bool{}
	for _, i := range infos {
		s, err := x.table.At(ctx, i.Number)
		x.check(err)
		for _, d := range x.segments(s) {
			if !done[d.ID] && slices.ContainsFunc(x.decode(d),
				func(r decodedRow) bool { return slices.Contains(ids, r.id) }) {
				out = append(out, d)
			}
			done[d.ID] = true
		}
	}
	return out
}

// left returns the objects of segments that there are.
func (x *tester) left(ds []catalog.SegmentDescriptor) (out []string) {
	x.Helper()
	for _, d := range ds {
		for info, err := range x.blobs.List(context.Background(), strings.TrimSuffix(d.Index, "index.sst"), "") {
			x.check(err)
			out = append(out, info.Name)
		}
	}
	return out
}

// TestEraseHistory: rows that the newest snapshot has no more, because they were deleted and compacted away, are erased
// from the snapshots before and from what only expired ones name.
func TestEraseHistory(t *testing.T) {
	const gone = "person-0002"
	for _, where := range []bool{false, true} {
		for _, expired := range []bool{false, true} {
			t.Run(fmt.Sprintf("where %v, expired %v", where, expired), func(t *testing.T) {
				ctx := t.Context()
				x := erasable(t, object.NewMemory(), 2)
				ids := x.people(gone)
				x.delete(ids)
				opts := x.options()
				opts.DeletedShare = 1e-9
				x.compact(opts)
				if n := x.latest().Info().DeletedRows; n > 0 {
					t.Fatalf("%d deleted rows are left", n)
				}
				had := x.stored(ids)
				if expired {
					_, err := x.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
					x.check(err)
				}
				if len(x.left(had)) == 0 {
					t.Fatal("no segment has the rows: the test would see nothing")
				}
				what := Erasure{Keys: sessionKeys(x, gone), Compact: x.options()}
				if where {
					what = Erasure{Where: "session = '" + gone + "'", Compact: x.options()}
				}
				r, err := Erase(ctx, x.table, what)
				if left := x.left(had); err != nil || len(left) > 0 {
					t.Fatalf("%v; %d objects are left, as %s", err, len(left), append(left, "")[0])
				}
				if r.Rows != 0 || r.Segments != 0 || len(r.Expired) == 0 != expired || r.Removed == 0 {
					t.Fatalf("%+v", r)
				}
				x.verify("erased")
				// Again there is nothing to do.
				if r, err = Erase(ctx, x.table, what); err != nil || len(r.Expired) > 0 || r.Removed > 0 {
					t.Fatalf("again: %v %+v", err, r)
				}
			})
		}
	}
}

// pin holds the newest snapshot, which has rows of a person, until gc has left only a copy of it. It returns the
// segments that have the rows, and the lease where the hold is one. commits: so many are made before the snapshot
// expires. keep: the newest snapshot has the rows too, in other segments.
func (x *tester) pin(person, hold string, commits int, keep bool) (had []catalog.SegmentDescriptor, l *lease.Lease) {
	x.Helper()
	ctx := context.Background()
	ids, s := x.people(person), x.latest()
	had = x.stored(ids)
	if hold == "lease" {
		var err error
		l, err = s.Lease(ctx, "somebody", time.Hour)
		x.check(err)
	} else {
		x.commit(s, commit.Change{Ops: []commit.Operation{
			commit.SetBranches{{Name: "b", Snapshot: s.Info().Number}},
		}})
	}
	if !keep {
		x.delete(ids)
	}
	opts := x.options()
	opts.Repack = true
	x.compact(opts)
	for range commits {
		x.commit(x.latest(), commit.Change{})
	}
	_, err := x.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
	x.check(err)
	_, err = x.store.GC(ctx, gc.Options{NoWait: true})
	x.check(err)
	info, err := x.blobs.Stat(ctx, names.SnapshotName("ads", s.Info().Number))
	x.check(err)
	_, err = x.blobs.Stat(ctx, names.PinnedName("ads", s.Info().Number))
	x.check(err)
	if info.Size > 0 || len(x.left(had)) == 0 {
		x.Fatal("there is no copy, or no segment has the rows: the test would see nothing")
	}
	return had, l
}

// TestEraseHeldBefore: a branch or a lease kept a snapshot that has the rows, so that gc left a copy of it. The hold is
// gone when the erasure begins, or the erasure drops it: what only the copy names is erased.
func TestEraseHeldBefore(t *testing.T) {
	const gone = "person-0002"
	for _, hold := range []string{"branch", "branch dropped before", "lease"} {
		for _, keep := range []bool{false, true} {
			for _, where := range []bool{false, true} {
				if race.Enabled && keep == where {
					continue
				}
				t.Run(fmt.Sprintf("%s, keep %v, where %v", hold, keep, where), func(t *testing.T) {
					x := erasable(t, object.NewMemory(), 2)
					had, l := x.pin(gone, hold, 0, keep)
					switch hold {
					case "lease":
						x.check(l.Release(t.Context()))
					case "branch dropped before":
						x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropBranches{"b"}}})
					}
					what := Erasure{Keys: sessionKeys(x, gone), DropBranches: true, Compact: x.options()}
					if where {
						what.Keys, what.Where = nil, "session = '"+gone+"'"
					}
					r, err := Erase(t.Context(), x.table, what)
					if left := x.left(had); err != nil || len(left) > 0 || r.Removed == 0 {
						t.Fatalf("%v; %d objects are left, as %s: %+v", err, len(left), append(left, "")[0], r)
					}
					x.forget(func(r testRow) bool { return r.Session == gone })
					x.verify("erased")
				})
			}
		}
	}
}

// TestEraseManySnapshots: the copy of a snapshot that has the rows is found though more snapshots after it were
// truncated than gc truncates at once.
func TestEraseManySnapshots(t *testing.T) {
	const gone = "person-0002"
	for _, dropped := range []bool{false, true} {
		t.Run(fmt.Sprintf("branch dropped before %v", dropped), func(t *testing.T) {
			x := erasable(t, object.NewMemory(), 2)
			had, _ := x.pin(gone, "branch", 80, false)
			if dropped {
				x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropBranches{"b"}}})
			}
			what := Erasure{Keys: sessionKeys(x, gone), DropBranches: true, Compact: x.options()}
			r, err := Erase(t.Context(), x.table, what)
			if left := x.left(had); err != nil || len(left) > 0 || r.Removed == 0 || len(r.Branches) > 0 == dropped {
				t.Fatalf("%v; %d objects are left, as %s: %+v", err, len(left), append(left, "")[0], r)
			}
		})
	}
}

// TestEraseAbsentAfterBranches: an erasure that only drops branches leaves nothing to continue. After it, where no
// snapshot has a key, nothing is rewritten and nothing expires.
func TestEraseAbsentAfterBranches(t *testing.T) {
	const gone = "person-0002"
	ctx := t.Context()
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprintf("branch made meanwhile %v", meanwhile), func(t *testing.T) {
			w := &watched{Store: object.NewMemory()}
			x := erasable(t, w, 2)
			if meanwhile {
				s := x.latest()
				w.put = func() {
					w.put = nil
					x.branch(s)
				}
			} else {
				x.pin(gone, "branch", 0, false)
			}
			what := Erasure{Keys: sessionKeys(x, gone), DropBranches: true, Compact: x.options()}
			r, err := Erase(ctx, x.table, what)
			if err != nil || len(r.Branches) != 1 {
				t.Fatalf("%v: %+v", err, r)
			}
			x.forget(func(r testRow) bool { return r.Session == gone })
			x.delete(x.some(9)) // rows that a continued erasure would take for its own
			before := x.latest().Info().Number
			what.Keys = sessionKeys(x, "person-9999")
			r, err = Erase(ctx, x.table, what)
			x.check(err)
			if n := x.latest().Info().Number; n != before || r.Segments > 0 || len(r.Expired) > 0 || r.Removed > 0 {
				t.Fatalf("snapshot %d after %d: %+v", n, before, r)
			}
		})
	}
}

// branchWithLayers returns a table whose branch b has rows that the newest snapshot has not: ids, of the session gone,
// in the segments under. Layers have values of overlay p for them, and the newest snapshot names the layers.
func branchWithLayers(t *testing.T, gone string) (x *tester, ids []int64, under, layers []catalog.SegmentDescriptor) {
	x = erasable(t, object.NewMemory(), 2)
	ids, s := x.people(gone), x.latest()
	x.commit(s, commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: s.Info().Number}}}})
	x.delete(ids)
	opts := x.options()
	opts.DeletedShare = 1e-9
	x.compact(opts)
	has := map[string]bool{}
	for _, d := range x.stored(ids) {
		has[d.ID] = true
	}
	under = x.segments(s)
	layers = x.overlayOn("b", s, "p", catalog.Null, catalog.FallThrough, func(i int) bool { return has[under[i].ID] })
	delete(x.overlays, "p")
	delete(x.layered, "p")
	return x, ids, under, layers
}

// TestEraseLayersOfDroppedBranch: an overlay of a branch has values for a person's rows. The branch is dropped, and the
// segments under the layers are gone: a snapshot that has not expired names the layers still. The erasure removes them.
// While the branch is there, one of an absent key changes nothing.
func TestEraseLayersOfDroppedBranch(t *testing.T) {
	const gone = "person-0002"
	ctx := t.Context()
	x, ids, under, layers := branchWithLayers(t, gone)
	named := x.latest().Info().Number
	_, err := x.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
	x.check(err)
	before := x.latest().Info().Number
	r, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "person-9999"), Compact: x.options()})
	if n := x.latest().Info().Number; err != nil || n != before || len(r.Expired) > 0 || r.Removed > 0 {
		t.Fatalf("absent: %v: snapshot %d after %d: %+v", err, n, before, r)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropBranches{"b"}}})
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.ExpireBelow(named)}})
	_, err = x.store.GC(ctx, gc.Options{NoWait: true})
	x.check(err)
	if len(layers) == 0 || len(x.left(layers)) == 0 || len(x.left(under)) > 0 && len(x.left(x.stored(ids))) > 0 {
		t.Fatalf("%d layers, of which %v are there, over segments of which %v are: the test proves nothing",
			len(layers), x.left(layers), x.left(under))
	}
	_, err = Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, gone), Compact: x.options()})
	x.check(err)
	if left := x.left(layers); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	x.verify("erased")
}

// TestEraseAbsentAfterMerged: an erasure that drops an overlay, merged and without layers, has ended: the next one, of
// a key that no row has, changes nothing.
func TestEraseAbsentAfterMerged(t *testing.T) {
	const gone = "person-0002"
	x := erasable(t, object.NewMemory(), 2)
	x.merge("o")
	x.compact(Options{Full: true, Write: x.options().Write}) // the layers become part of segments
	x.overlay("p", catalog.Null, catalog.FallThrough, func(int) bool { return false })
	x.merge("p")
	_, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, gone), Compact: x.options()})
	x.check(err)
	overlays, err := x.latest().Overlays(t.Context())
	x.check(err)
	if len(overlays) > 0 {
		t.Fatalf("the erasure has dropped no overlay: the test proves nothing: %+v", overlays)
	}
	x.forget(func(r testRow) bool { return r.Session == gone })
	x.delete(x.some(9)) // rows that a continued erasure would take for its own
	before := x.latest().Info().Number
	r, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, "person-9999"), Compact: x.options()})
	x.check(err)
	if n := x.latest().Info().Number; n != before || r.Segments > 0 || len(r.Expired) > 0 || r.Removed > 0 {
		t.Fatalf("snapshot %d after %d: %+v", n, before, r)
	}
	if r.Keys == nil || r.Keys.Keys != 1 || r.Keys.Missing != 1 || r.Keys.Examples[0] != "person-9999" {
		t.Fatalf("%+v", r.Keys)
	}
}

// TestEraseAbsentInOtherTable: another table of the store has the bytes of a key, in a run and in a snapshot. The
// search says so, and the erasure changes nothing of a table that has it not.
func TestEraseAbsentInOtherTable(t *testing.T) {
	ctx := t.Context()
	x := erasable(t, object.NewMemory(), 5)
	other, err := x.store.NewTable(ctx, "other")
	x.check(err)
	s, err := other.Commit(ctx, commit.Change{Operation: "test",
		Ops: []commit.Operation{commit.SetProperties{"a": "b"}}})
	x.check(err)
	for i := range 40 {
		list := catalog.SampleList{Name: fmt.Sprint("list ", i), Definition: "who = 'person-9999' " +
			strings.Repeat("a long definition, as people write them, fills the memtable ", 60)}
		s, err = other.Commit(ctx, commit.Change{Operation: "test", Base: s.Info().Number,
			Ops: []commit.Operation{commit.DefineLists{list}}})
		x.check(err)
	}
	before := x.latest().Info().Number
	r, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, "person-9999"), Compact: x.options()})
	if !errors.Is(err, ErrFound) || !strings.Contains(fmt.Sprint(r.Search.Found), "listing") {
		t.Fatalf("%v: %+v", err, r.Search)
	}
	if n := x.latest().Info().Number; n != before || len(r.Expired) > 0 || r.Removed > 0 {
		t.Fatalf("snapshot %d after %d: %+v", n, before, r)
	}
	x.verify("erased")
}

// TestEraseForgetsNames: a sample list had a person's name. It is dropped, and the newest snapshot of a table without
// runs still says so. An erasure takes it out: expiry and gc then remove what has it.
func TestEraseForgetsNames(t *testing.T) {
	ctx := t.Context()
	for _, key := range []string{"person-0003", "person-9999"} { // one has rows
		x := erasable(t, object.NewMemory(), 5)
		x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DefineLists{{Name: "of " + key}}}})
		x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.DropLists{"of " + key}}})
		what := Erasure{Keys: sessionKeys(x, key), Compact: x.options()}
		if r, err := Erase(ctx, x.table, what); !errors.Is(err, ErrFound) { // in older snapshots at least
			t.Fatalf("%s: %v: %+v", key, err, r.Search)
		}
		x.forget(func(r testRow) bool { return r.Session == key })
		_, err := x.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1})
		x.check(err)
		_, err = x.store.GC(ctx, gc.Options{NoWait: true})
		x.check(err)
		before := x.latest().Info().Number
		r, err := Erase(ctx, x.table, what)
		if n := x.latest().Info().Number; err != nil || n != before || len(r.Search.Found) > 0 {
			t.Fatalf("%s: %v: snapshot %d after %d: %+v", key, err, n, before, r.Search)
		}
		x.verify("erased")
	}
}

// TestEraseDropsBranchWithLayers: a branch has rows that the newest snapshot has not, and values for them in layers,
// which the newest snapshot names. An erasure that drops the branch removes them.
func TestEraseDropsBranchWithLayers(t *testing.T) {
	const gone = "person-0002"
	ctx := t.Context()
	x, _, _, layers := branchWithLayers(t, gone)
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.ExpireBelow(x.latest().Info().Number)}})
	if len(layers) == 0 || len(x.left(layers)) == 0 {
		t.Fatal("there are no layers: the test proves nothing")
	}
	what := Erasure{Keys: sessionKeys(x, gone), Compact: x.options(), DropBranches: true, DryRun: true}
	r, err := Erase(ctx, x.table, what)
	if err != nil || !r.Expires {
		t.Fatalf("dry run: %v %+v", err, r)
	}
	what.DryRun = false
	if r, err = Erase(ctx, x.table, what); err != nil || len(r.Branches) != 1 {
		t.Fatalf("%v %+v", err, r)
	}
	if left := x.left(layers); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	x.verify("erased")
}

// TestEraseAbsent: where no snapshot has a key, nothing is done, though the history has segments that the newest
// snapshot lacks.
func TestEraseAbsent(t *testing.T) {
	x := erasable(t, object.NewMemory(), 2)
	x.compact(Options{Full: true, Write: x.options().Write})
	s := x.latest()
	x.commit(s, commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 1}}}})
	before := x.latest().Info().Number
	r, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, "person-9999"), Compact: x.options()})
	x.check(err)
	if n := x.latest().Info().Number; n != before || len(r.Expired) > 0 || r.Removed > 0 {
		t.Fatalf("snapshot %d after %d: %+v", n, before, r)
	}
}

// A watched store calls a function before each snapshot is put, and one before an object is asked for.
type watched struct {
	object.Store
	put  func()
	stat func(name string)
}

func (w *watched) Stat(ctx context.Context, name string) (object.Info, error) {
	if w.stat != nil {
		w.stat(name)
	}
	return w.Store.Stat(ctx, name)
}

func (w *watched) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, "/snapshots/") && w.put != nil {
		w.put()
	}
	return w.Store.PutIfAbsent(ctx, name, data)
}

// TestEraseHeldMeanwhile: a branch, or a lease, that comes while the rows are erased, on a snapshot that has them,
// refuses it in the end by name. Run again without it, or dropping it, the erasure succeeds.
func TestEraseHeldMeanwhile(t *testing.T) {
	const gone = "person-0001"
	for _, where := range []bool{false, true} {
		for _, held := range []string{"branch", "lease"} {
			t.Run(fmt.Sprintf("where %v, %s", where, held), func(t *testing.T) {
				ctx := t.Context()
				w := &watched{Store: object.NewMemory()}
				x := erasable(t, w, 3)
				what := Erasure{Keys: sessionKeys(x, gone), Compact: x.options()}
				if where {
					what = Erasure{Where: "session = '" + gone + "'", Compact: x.options()}
				}
				s, had := x.latest(), x.stored(x.people(gone))
				var taken *lease.Lease
				w.put = func() {
					w.put = nil
					if held == "lease" {
						var err error
						taken, err = s.Lease(ctx, "somebody", time.Hour)
						x.check(err)
						return
					}
					x.branch(s)
				}
				if _, err := Erase(ctx, x.table, what); !errors.Is(err, ErrHeld) ||
					!strings.Contains(err.Error(), map[string]string{"branch": "branches b",
						"lease": "somebody"}[held]) {
					t.Fatal(err)
				}
				x.forget(func(r testRow) bool { return r.Session == gone })
				x.verify("held")
				if held == "lease" {
					x.check(taken.Release(ctx))
				}
				what.DropBranches = true
				_, err := Erase(ctx, x.table, what)
				if left := x.left(had); err != nil || len(left) > 0 {
					t.Fatalf("again: %v; %d objects are left, as %s", err, len(left), append(left, "")[0])
				}
				x.verify("erased")
			})
		}
	}
}

// TestEraseLetGoMeanwhile: the lease on a snapshot that has the rows ends after the purge has left what it held, and a
// gc takes the snapshot and stops. The erasure does not end before the data is gone.
func TestEraseLetGoMeanwhile(t *testing.T) {
	const gone = "person-0001"
	ctx := t.Context()
	w := &watched{Store: object.NewMemory()}
	x := erasable(t, w, 3)
	s, had := x.latest(), x.stored(x.people(gone))
	name := names.SnapshotName("ads", s.Info().Number)
	w.put = func() {
		w.put = nil
		taken, err := s.Lease(ctx, "somebody", time.Hour)
		x.check(err)
		w.stat = func(of string) {
			if of == name {
				w.stat = nil
				x.check(taken.Release(ctx))
				for n := range x.latest().Info().Oldest {
					if n > 0 {
						x.check(w.Truncate(ctx, object.Info{Name: names.SnapshotName("ads", n)}))
					}
				}
			}
		}
	}
	r, err := Erase(ctx, x.table, Erasure{Keys: sessionKeys(x, gone), Compact: x.options()})
	if w.put != nil || w.stat != nil {
		t.Fatal("nothing happened meanwhile")
	}
	if left := x.left(had); err != nil || len(left) > 0 || r.Removed == 0 {
		t.Fatalf("%v; %d objects are left, as %s: %+v", err, len(left), append(left, "")[0], r)
	}
	x.forget(func(r testRow) bool { return r.Session == gone })
	x.verify("erased")
}
