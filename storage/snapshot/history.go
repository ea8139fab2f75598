package snapshot

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// A History walks everything that the snapshots of a table name. verify and gc use it; readers
// never do.
type History struct {
	Log *Log
	// Snapshot, when set, is called for each snapshot before its entries. An error that it returns ends the walk.
	Snapshot func(m Manifest) error
	// Entry, when set, is called for each entry of the trees' memtables and runs: for those of a memtable once for
	// every snapshot that repeats it. value is nil when the entry removes. key and value are borrowed for the call.
	Entry func(object string, kind lsm.Kind, key, value []byte) error
	// Shown, when set, is called for each entry that a snapshot of the walk shows, at least once for all of them
	// together, and never for one that an earlier run holds and every one of them hides. It never removes.
	Shown func(object string, kind lsm.Kind, key, value []byte) error
	// Damaged, when set, takes the errors of what cannot be read or is wrong, and the walk goes on; else they end it.
	Damaged func(error)
	// Expired: snapshots below it may be gone, and are passed over then.
	Expired uint64
	// There, when set, are snapshots that were listed, in order: their objects are read without asking for their sizes.
	There []Object

	runs    map[names.ID]bool // walked
	checked map[names.ID]bool // whose tables are right
	broken  map[names.ID]bool // those of runs that could not be read, or not all of them
	hiding  []names.ID        // those of broken that the snapshot before has
	Before  uint64            // the snapshot that was walked last

	beforeCommit names.ID
}

// Walk visits the snapshots from to to, both included, and reads many of them at a time. Runs that an earlier walk
// visited it passes over.
func (h *History) Walk(ctx context.Context, from, to uint64) error {
	if h.runs == nil {
		h.runs, h.checked, h.broken = map[names.ID]bool{}, map[names.ID]bool{}, map[names.ID]bool{}
	}
	for low := from; low <= to; low += object.RequestsAtOnce {
		some := make([]*Snapshot, min(to-low+1, object.RequestsAtOnce))
		errs := make([]error, len(some))
		err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) error {
			some[i], errs[i] = h.read(ctx, low+uint64(i))
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		for i, s := range some {
			if err := h.visit(ctx, low+uint64(i), s, errs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a snapshot.
func (h *History) read(ctx context.Context, n uint64) (*Snapshot, error) {
	i, ok := slices.BinarySearchFunc(h.There, n, func(s Object, n uint64) int { return cmp.Compare(s.Number, n) })
	if !ok {
		return h.Log.Read(ctx, n)
	}
	s, err := h.Log.readObject(ctx, h.There[i].Name, n, h.There[i].Size)
	// it was truncated since, or it is damaged
	if errors.Is(err, object.ErrNotFound) || errors.Is(err, io.ErrUnexpectedEOF) {
		return h.Log.Read(ctx, n)
	}
	return s, err
}

// visit visits snapshot n, which was read with an error or not.
func (h *History) visit(ctx context.Context, n uint64, s *Snapshot, err error) error {
	if err != nil {
		if n < h.Expired && errors.Is(err, object.ErrNotFound) {
			return nil
		}
		return h.failed(ctx, wire.Missing(names.SnapshotName(h.Log.Table, n), err))
	}
	if h.Snapshot != nil {
		if err := h.Snapshot(s.Manifest); err != nil {
			return err
		}
	}
	// What a snapshot shows and the one before does not, its commit has set: it is in the memtable, or in the run that
	// the commit made of the memtable. So only the first of a row of snapshots is gone through as a whole, and one that
	// no longer has a run that hid what the snapshot before shows.
	trees := [...]lsm.Tree{s.Manifest.Listing, s.Manifest.Schema}
	has := func(id names.ID) bool {
		return slices.ContainsFunc(trees[:], func(t lsm.Tree) bool {
			return slices.ContainsFunc(t.Runs, func(r lsm.Run) bool { return r.ID == id })
		})
	}
	whole := h.Before == 0 || h.Before+1 != n || s.Manifest.Parent != h.beforeCommit || // a repair may go back
		slices.ContainsFunc(h.hiding, func(id names.ID) bool { return !has(id) })
	for _, t := range trees {
		if err := h.tree(ctx, s, t, !whole); err != nil {
			return err
		}
		if whole && h.Shown != nil {
			if err := h.all(ctx, s, t); err != nil {
				return err
			}
		}
	}
	h.Before, h.beforeCommit, h.hiding = n, s.Manifest.Commit, h.hiding[:0]
	for id := range h.broken {
		if has(id) {
			h.hiding = append(h.hiding, id)
		}
	}
	return nil
}

// all calls shown for everything that a tree of a snapshot shows.
func (h *History) all(ctx context.Context, s *Snapshot, t lsm.Tree) error {
	if h.Entry == nil { // else run has checked all that can be read
		for _, ref := range t.Runs {
			if h.checked[ref.ID] {
				continue
			}
			if err := h.Log.Store.Trees.Check(ctx, t.Kind, ref); err != nil {
				return h.failed(ctx, err)
			}
			h.checked[ref.ID] = true
		}
	}
	it := h.Log.Store.Trees.Iter(ctx, t, nil)
	for ok := it.Seek(ctx, nil); ok; ok = it.Next(ctx) {
		if err := h.Shown(s.TreeName(t), t.Kind, it.Key, it.Value); err != nil {
			if err := h.failed(ctx, err); err != nil {
				return err
			}
		}
	}
	if it.Err != nil {
		return h.failed(ctx, it.Err)
	}
	return nil
}

// failed hands err to damaged, unless there is none or the context ended.
func (h *History) failed(ctx context.Context, err error) error {
	if h.Damaged == nil || ctx.Err() != nil {
		return err
	}
	h.Damaged(err)
	return nil
}

// tree visits what of a tree no snapshot before has. shows: what it sets there, the snapshot shows.
func (h *History) tree(ctx context.Context, s *Snapshot, t lsm.Tree, shows bool) error {
	visit := func(object string, key, value []byte) error {
		var err error
		if h.Entry != nil {
			err = h.Entry(object, t.Kind, key, value)
		}
		if err == nil && shows && h.Shown != nil && value != nil {
			err = h.Shown(object, t.Kind, key, value)
		}
		if err == nil {
			return nil
		}
		return h.failed(ctx, err)
	}
	for _, ref := range t.Runs {
		if h.runs[ref.ID] {
			continue
		}
		h.runs[ref.ID] = true
		if h.Entry == nil && !shows {
			continue // all goes through it
		}
		if err := h.run(ctx, t.Kind, ref, visit); err != nil {
			return err
		}
	}
	for _, e := range t.Memtable {
		if err := visit(s.ObjectName(), e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) run(ctx context.Context, kind lsm.Kind, ref lsm.Run, visit func(object string, key,
	value []byte) error) error {
	name := kind.ObjectName(ref.ID)
	r, err := h.Log.Store.Trees.OpenRunChecked(ctx, kind, ref)
	if err != nil {
		h.broken[ref.ID] = true
		return h.failed(ctx, err)
	}
	h.checked[ref.ID] = true
	it := r.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		value, reason := lsm.ParseValue(it.Value())
		if reason != "" {
			err = h.failed(ctx, wire.Corrupt(name, reason))
		} else {
			err = visit(name, it.Key(), value)
		}
		if err != nil {
			return err
		}
	}
	if it.Err() != nil {
		h.broken[ref.ID] = true
		return h.failed(ctx, it.Err())
	}
	return nil
}
