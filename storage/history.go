package storage

import (
	"context"
)

// A history walks everything that the snapshots of a table name. verify, gc and the index database use it; readers
// never do.
type history struct {
	t *Table
	// snapshot, when set, is called for each snapshot before its entries. An error that it returns ends the walk.
	snapshot func(m manifest) error
	// entry, when set, is called for each entry of the trees' tails and runs: for those of a tail once for every snapshot
	// that repeats it. value is nil when the entry removes. key and value are borrowed for the call.
	entry func(object string, kind treeKind, key, value []byte) error
	// damaged, when set, takes the errors of what cannot be read or is wrong, and the walk goes on; else they end it.
	damaged func(error)

	runs map[id]bool // walked
}

// walk visits the snapshots from to to, both included. Runs that an earlier walk visited it passes over.
func (h *history) walk(ctx context.Context, from, to uint64) error {
	if h.runs == nil {
		h.runs = map[id]bool{}
	}
	for n := from; n <= to; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := h.t.read(ctx, n)
		if err != nil {
			if err := h.failed(ctx, missing(snapshotName(h.t.name, n), err)); err != nil {
				return err
			}
			continue
		}
		if h.snapshot != nil {
			if err := h.snapshot(s.m); err != nil {
				return err
			}
		}
		for _, t := range [...]tree{s.m.listing, s.m.schema} {
			if err := h.tree(ctx, s, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed hands err to damaged, unless there is none or the context ended.
func (h *history) failed(ctx context.Context, err error) error {
	if h.damaged == nil || ctx.Err() != nil {
		return err
	}
	h.damaged(err)
	return nil
}

func (h *history) tree(ctx context.Context, s *Snapshot, t tree) error {
	if h.entry == nil {
		return nil
	}
	for _, ref := range t.runs {
		if h.runs[ref.id] {
			continue
		}
		h.runs[ref.id] = true
		if err := h.run(ctx, t.kind, ref); err != nil {
			return err
		}
	}
	for _, e := range t.tail {
		if err := h.entry(s.name(), t.kind, e.key, e.value); err != nil {
			if err := h.failed(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *history) run(ctx context.Context, kind treeKind, ref runRef) error {
	name := ref.id.runName(kind)
	r, err := h.t.s.openTable(ctx, name, ref.size, 0)
	if err != nil {
		return h.failed(ctx, err)
	}
	it := r.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		value, reason := parseValue(it.Value())
		if reason != "" {
			err = corrupt(name, reason)
		} else {
			err = h.entry(name, kind, it.Key(), value)
		}
		if err != nil {
			if err := h.failed(ctx, err); err != nil {
				return err
			}
		}
	}
	if it.Err() != nil {
		return h.failed(ctx, it.Err())
	}
	return nil
}
