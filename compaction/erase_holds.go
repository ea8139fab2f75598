package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
)

// A holding tells snapshots that may have the rows of an erasure from those that have none.
type holding struct {
	table *storage.Table
	clean map[string]bool // segments that have none of the rows
	known map[uint64]bool // by snapshot: whether it may have some
}

func (h *holding) dirty(ctx context.Context, n uint64) (bool, error) {
	if dirty, ok := h.known[n]; ok {
		return dirty, nil
	}
	s, err := h.table.At(ctx, n)
	if err != nil {
		return false, err
	}
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return false, err
	}
	// Of a segment that the newest snapshot has no more, nobody knows.
	h.known[n] = slices.ContainsFunc(segments, func(d storage.SegmentDescriptor) bool { return !h.clean[d.ID] })
	return h.known[n], nil
}

// branches returns the branches, as of a snapshot, that keep one which may have the rows.
func (h *holding) branches(ctx context.Context, as *storage.Snapshot) (out []string, err error) {
	all, err := as.Branches(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		for _, n := range b.Pins() {
			d, err := h.dirty(ctx, n)
			if err != nil {
				return nil, fmt.Errorf("branch %s: %w", b.Name, err)
			}
			if d {
				out = append(out, b.Name)
				break
			}
		}
	}
	return out, nil
}

// holding returns one of the segments that the erasure found.
func (e *eraser) holding() *holding {
	h := &holding{table: e.table, clean: map[string]bool{}, known: map[uint64]bool{}}
	for _, d := range e.all {
		h.clean[d.ID] = !e.had[d.ID]
	}
	return h
}

// heldBy refuses branches that are not to be dropped.
func heldBy(branches []string) error {
	return fmt.Errorf("snapshots that may have the rows are %w by branches %s: drop them, and erase again", ErrHeld, strings.Join(branches, ", "))
}

// holds returns the branches that keep a snapshot which may have the rows, and refuses leases, and branches unless they are dropped.
func (e *eraser) holds(ctx context.Context) (branches []string, err error) {
	if len(e.had) == 0 && !e.unfinished {
		return nil, nil
	}
	h := e.holding()
	if branches, err = h.branches(ctx, e.snap); err != nil {
		return nil, err
	}
	leases, err := e.table.Leases(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		d, err := h.dirty(ctx, l.Snapshot)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d {
			return nil, fmt.Errorf("snapshot %d, which may have the rows, is %w by %v%s", l.Snapshot, ErrHeld, l, endLeases)
		}
	}
	if len(branches) > 0 && !e.what.DropBranches {
		return nil, heldBy(branches)
	}
	if e.what.DryRun {
		e.out.Branches = append(e.out.Branches, branches...)
	}
	return branches, nil
}

// endNewHolds drops, or refuses, the branches that others made of snapshots which may have the rows while these were erased. All those snapshots have
// expired in newest: a branch of one can be made no more, unless another branch has it.
func (e *eraser) endNewHolds(ctx context.Context, newest *storage.Snapshot) error {
	for range maxRewrites {
		segments, err := newest.Segments(ctx, nil)
		if err != nil {
			return err
		}
		h := e.holding()
		for _, d := range segments {
			h.clean[d.ID] = true
		}
		branches, err := h.branches(ctx, newest)
		if err != nil || len(branches) == 0 {
			return err
		}
		if !e.what.DropBranches {
			return heldBy(branches)
		}
		s, err := e.table.Commit(ctx, storage.Change{Operation: eraseOperation, Base: newest.Info().Number, DropBranches: branches})
		switch {
		case err == nil:
			newest = s
			e.out.Snapshot = s.Info().Number
			e.out.Branches = append(e.out.Branches, branches...)
		case !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound):
			return err
		default: // somebody set one, or dropped it
			if newest, err = e.table.Latest(ctx); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("branches of snapshots that may have the rows are made again and again: %w", ErrHeld)
}
