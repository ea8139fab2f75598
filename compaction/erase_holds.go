package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
)

// heldBranches returns the names of the branches, as of snapshot as, that keep a snapshot which may have the rows.
func (e *eraser) heldBranches(ctx context.Context, as *storage.Snapshot) (out []string, err error) {
	all, err := as.Branches(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		may := false
		for _, n := range b.Pins() { // all of them: mayHaveLayers asks for their segments
			d, err := e.mayHaveRows(ctx, n)
			if err != nil {
				return nil, fmt.Errorf("branch %s: %w", b.Name, err)
			}
			may = may || d
		}
		if may {
			out = append(out, b.Name)
		}
	}
	return out, nil
}

// heldBy returns the error about leases, and about branches that are not to be dropped; nil if there are none.
func heldBy(leases, branches []string) error {
	var by []string
	if len(leases) > 0 {
		by = append(by, "by "+strings.Join(leases, ", by ")+endLeases)
	}
	if len(branches) > 0 {
		by = append(by, fmt.Sprintf("by branches %s: drop them and erase again, or let the erasure drop them "+
			"(--drop-branches)", strings.Join(branches, ", ")))
	}
	if by == nil {
		return nil
	}
	return fmt.Errorf("snapshots that may have the rows are %w %s", ErrHeld, strings.Join(by, "; and "))
}

// holds returns the branches that keep a snapshot which may have the rows. It returns ErrHeld, which names all of them,
// if leases keep one, or if there are such branches and DropBranches is not set. A dry run also notes them.
func (e *eraser) holds(ctx context.Context) (branches []string, err error) {
	if branches, err = e.heldBranches(ctx, e.snap); err != nil {
		return nil, err
	}
	// The snapshots of these branches may have expired. Once the branches are dropped, their data must go.
	e.uncollected = e.uncollected || len(branches) > 0
	all, err := e.table.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var leases []string
	for _, l := range all {
		d, err := e.mayHaveRows(ctx, l.Snapshot)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d {
			leases = append(leases, fmt.Sprintf("%v (snapshot %d)", l, l.Snapshot))
		}
	}
	held := branches
	if e.what.DropBranches {
		held = nil
	}
	if e.what.DryRun {
		e.out.Held, e.out.HeldLeases = held, leases
		if e.what.DropBranches {
			e.out.Branches = append(e.out.Branches, branches...)
		}
	}
	return branches, heldBy(leases, held)
}

// endNewHolds handles branches of snapshots which may have the rows that others made during Erase: it drops them if
// DropBranches is set, else it returns ErrHeld. Those snapshots have expired in newest, so no new branch of one can be
// made, except from another branch.
func (e *eraser) endNewHolds(ctx context.Context, newest *storage.Snapshot) error {
	for range maxRewrites {
		segments, err := newest.Segments(ctx, nil)
		if err != nil {
			return err
		}
		e.noteContents(segments) // segments that are new since were written without the rows
		branches, err := e.heldBranches(ctx, newest)
		if err != nil || len(branches) == 0 {
			return err
		}
		if !e.what.DropBranches {
			return heldBy(nil, branches)
		}
		s, err := e.table.Commit(ctx, commit.Change{Operation: dropOperation, Base: newest.Info().Number,
			Ops: []commit.Operation{commit.DropBranches(branches)}})
		switch {
		case err == nil:
			newest = s
			e.out.Snapshot = s.Info().Number
			e.out.Branches = append(e.out.Branches, branches...)
		case !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound):
			return err
		default: // another commit changed or dropped a branch
			if newest, err = e.table.Latest(ctx); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("new branches of snapshots that may have the rows appeared %d times in a row: "+
		"stop what makes them, and erase again: %w", maxRewrites, ErrHeld)
}

// endNewLeases returns ErrHeld if a lease was taken during Erase on a snapshot which may have the rows. holds are those
// on expired snapshots, as Purge found them. over: one of those snapshots is gone, and its data, which Purge has left,
// may be there.
func (e *eraser) endNewLeases(ctx context.Context, holds []gc.Hold) (over bool, err error) {
	for _, h := range holds {
		if !strings.HasPrefix(h.By, "lease ") {
			continue
		}
		has, err := e.mayHaveRows(ctx, h.Snapshot)
		if errors.Is(err, storage.ErrNotFound) {
			over = true
			continue
		}
		if err != nil {
			return false, err
		}
		if has {
			return false, fmt.Errorf("snapshot %d, which may have the rows, is %w by %s: erase again when it is over%s",
				h.Snapshot, ErrHeld, h.By, endLeases)
		}
	}
	return over, nil
}
