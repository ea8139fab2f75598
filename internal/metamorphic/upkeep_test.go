package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/tools/selection"
)

func createBranch(w *world) error {
	next := w.latest().clone()
	name := pick(w, "exp", "exp 2")
	if _, ok := next.branches[name]; ok {
		return errSkip
	}
	at := w.newest
	if w.chance(0.5) {
		at = w.oldest + w.rnd.Uint64N(w.newest-w.oldest+1)
	}
	b := branchState{snapshot: at}
	made := catalog.Branch{Name: name, Snapshot: at, Owner: "metamorphic"}
	if lists := w.states[at].lists; len(lists) > 0 && w.chance(0.5) {
		b.list = w.draw(slices.Sorted(maps.Keys(lists)))
		made.List = catalog.Pin{Name: b.list, Snapshot: at}
	}
	for _, o := range shuffled(w, w.states[at].overlays) {
		if w.chance(0.5) {
			b.overlays = append(b.overlays, o.name)
			made.Overlays = append(made.Overlays, catalog.Pin{Name: o.name, Snapshot: at})
		}
	}
	w.note("%s: %+v", name, b)
	snap, err := w.table().Commit(w.ctx, commit.Change{Operation: "branch", Base: w.newest,
		Ops: []commit.Operation{commit.SetBranches{made}}})
	if err != nil {
		return err
	}
	next.branches[name] = b
	return w.commit(snap.Info().Number, next)
}

func dropBranch(w *world) error {
	next := w.latest().clone()
	if len(next.branches) == 0 {
		return errSkip
	}
	name := w.draw(slices.Sorted(maps.Keys(next.branches)))
	w.note("%s", name)
	snap, err := w.table().Commit(w.ctx, commit.Change{Operation: "branch", Base: w.newest,
		Ops: []commit.Operation{commit.DropBranches{name}}})
	if err != nil {
		return err
	}
	delete(next.branches, name)
	return w.commit(snap.Info().Number, next)
}

// expire lets old snapshots go, but for those that branches keep.
func expire(w *world) error {
	report, err := w.table().Expire(w.ctx, gc.ExpireOptions{KeepLast: uint64(1 + w.rnd.IntN(6))})
	if err != nil {
		return err
	}
	w.note("the oldest is %d", report.Oldest)
	if report.Oldest > w.newest || report.Oldest < w.oldest {
		return fmt.Errorf("the oldest is %d, after %d, of %d", report.Oldest, w.oldest, w.newest)
	}
	if report.Snapshot == 0 {
		return nil
	}
	w.oldest = report.Oldest
	return w.commit(report.Snapshot, w.latest().clone())
}

// collect removes what nobody needs. Expired snapshots are gone then, but for those that branches keep.
func collect(w *world) error {
	report, err := w.store().GC(w.ctx, gc.Options{NoWait: true, DryRun: w.chance(0.2)})
	if err != nil {
		return err
	}
	if report.DryRun {
		return nil
	}
	w.note("%d objects, %d snapshots", len(report.Removed), report.Expired)
	i := w.rnd.IntN(len(w.stores))
	if err := w.reopen(i); err != nil { // what it knows it need not look for
		return err
	}
	t := w.tables[i]
	// It makes a snapshot, of what the one before has, where there is something to remove.
	if snap, err := t.Latest(w.ctx); err != nil {
		return err
	} else if n := snap.Info(); n.Number == w.newest+1 && n.Operation == "gc" {
		if err := w.commit(n.Number, w.latest().clone()); err != nil {
			return err
		}
	}
	for n := uint64(1); n < w.oldest; n++ {
		_, err := t.At(w.ctx, n)
		if held := w.pinned(n); held != (err == nil) {
			return fmt.Errorf("snapshot %d, held: %v: %v", n, held, err)
		}
	}
	return nil
}

func verify(w *world) error {
	report, err := w.store().Verify(w.ctx, tableName, true, nil)
	if err != nil {
		return err
	}
	if report.DamageCount > 0 {
		return fmt.Errorf("damage: %w", errors.Join(report.Damage...))
	}
	return nil
}

func reopenOne(w *world) error { return w.reopen(w.rnd.IntN(len(w.stores))) }

// otherProcess deletes in another process.
func otherProcess(w *world) error {
	if w.opts.Other == nil {
		return errSkip
	}
	p := w.drawPredicate(w.latest(), 1)
	next := w.latest().clone()
	gone := 0
	maps.DeleteFunc(next.rows, func(_ int64, r *row) bool {
		if p.of(r) == yes {
			gone++
			return true
		}
		return false
	})
	if gone > len(next.rows)/2 {
		return errSkip
	}
	w.note("%s", p.text)
	if err := w.opts.Other("delete", w.dir, p.text); err != nil || gone == 0 {
		return err
	}
	return w.commit(w.newest+1, next)
}

// Other is what Options.Other runs in another process.
func Other(args []string) error {
	if len(args) != 3 || args[0] != "delete" {
		return fmt.Errorf("arguments %q", args)
	}
	w := &world{dir: args[1], stores: make([]*storage.Store, 1), tables: make([]*storage.Table, 1)}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w.open = w.openLocal
	if err := w.reopen(0); err != nil {
		return err
	}
	_, err := selection.Delete(w.ctx, w.tables[0], &selection.Query{Where: args[2]}, selection.Options{})
	return errors.Join(err, w.stores[0].Close())
}
