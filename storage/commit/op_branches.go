package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// DropBranches drops branches, and the overlays made on them.
type DropBranches []string

func (DropBranches) phase() phase { return phaseDropOverlays }

func (d DropBranches) validate(c *Change) error {
	for _, b := range Op[SetBranches](c) {
		if slices.Contains(d, b.Name) {
			return fmt.Errorf("branch %.150q is dropped and set", b.Name)
		}
	}
	return cmp.Or(c.needBase(len(d), "branches"), checkNames("branch", "branch", d))
}

func (d DropBranches) apply(ctx context.Context, e *edit) error {
	c := e.change
	if len(d) == 0 {
		return nil
	}
	overlays, err := e.base.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if slices.Contains(d, o.Branch) && !slices.Contains(Op[DropOverlays](c), o.Name) {
			if err := e.dropOverlay(ctx, o.Name); err != nil {
				return err
			}
		}
	}
	for _, name := range d {
		b, err := e.base.Branch(ctx, name)
		if err != nil {
			return err
		}
		if b.Added > c.Base {
			return later("branch", name, b.Added, c.Base)
		}
		e.setListing(catalog.BranchKey(name), nil)
		e.m.Branches--
	}
	return nil
}

// SetBranches sets branches: a new one if Added is 0, else in place of the one that was set in snapshot Added. Snapshot
// 0, of the branch or of a pin, is the snapshot that the commit makes. A branch with overlays made on it keeps its
// snapshot, unless the change drops those.
type SetBranches []catalog.Branch

func (SetBranches) phase() phase { return phaseBranches }

func (s SetBranches) validate(c *Change) error {
	var once checkOnce
	for _, b := range s {
		once.check(resolved(b, 1).Validate(), "branch", b.Name)
	}
	return cmp.Or(c.needBase(len(s), "branches"), once.err)
}

func (s SetBranches) apply(ctx context.Context, e *edit) error {
	c := e.change
	if len(s) == 0 {
		return nil
	}
	all, err := e.base.Branches(ctx)
	if err != nil {
		return err
	}
	pinned := map[uint64]bool{} // also when they have expired
	for _, b := range all {
		for _, n := range b.Pins() {
			pinned[n] = true
		}
	}
	for _, b := range s {
		there, err := e.base.FindBranch(ctx, b.Name)
		if err != nil {
			return err
		}
		switch {
		case there != nil && b.Added == 0:
			return taken("branch", b.Name, there.Added, c.Base)
		case there == nil && b.Added != 0:
			return fmt.Errorf("branch %s is gone: %w", b.Name, catalog.ErrConflict)
		case there != nil && there.Added != b.Added:
			return later("branch", b.Name, there.Added, b.Added)
		case there == nil:
			e.m.Branches++
		}
		b = resolved(b, e.info.Number)
		b.Added = e.info.Number
		switch {
		case there != nil:
			b.Created = there.Created
		case b.Created.IsZero():
			b.Created = e.info.Time
		}
		if there != nil {
			if err := e.checkMove(ctx, *there, b); err != nil {
				return fmt.Errorf("branch %s: %w", b.Name, err)
			}
		}
		if err := e.checkPins(ctx, b, pinned); err != nil {
			return fmt.Errorf("branch %s: %w", b.Name, err)
		}
		e.setListing(catalog.BranchKey(b.Name), catalog.AppendBranch(nil, b))
	}
	return nil
}

// branch returns a branch as the change leaves it, nil if there is none. Snapshot 0 is the one that the commit makes.
func (e *edit) branch(ctx context.Context, name string) (*catalog.Branch, error) {
	for _, b := range Op[SetBranches](e.change) {
		if b.Name == name {
			return &b, nil
		}
	}
	if slices.Contains(Op[DropBranches](e.change), name) {
		return nil, nil
	}
	return e.base.FindBranch(ctx, name)
}

// checkMove returns an error when a branch that is set goes to another snapshot, and overlays that were made on it
// stay: their layers lie over the segments of the one that it had.
func (e *edit) checkMove(ctx context.Context, there, b catalog.Branch) error {
	if there.Snapshot == b.Snapshot {
		return nil
	}
	overlays, err := e.base.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		// What the change has defined is of the new snapshot.
		if _, changed := e.defined[o.Name]; o.Branch == b.Name && !changed {
			return fmt.Errorf("overlay %s was made on its snapshot %d: drop it in the change that sets another", o.Name,
				there.Snapshot)
		}
	}
	return nil
}

// checkPins makes sure that a branch pins what is there, and stays.
func (e *edit) checkPins(ctx context.Context, b catalog.Branch, pinned map[uint64]bool) error {
	at := func(n uint64) (*snapshot.Snapshot, error) {
		if n < e.base.Manifest.Info.Oldest && !pinned[n] {
			return nil, fmt.Errorf("snapshot %d has expired, and gc may be about to take it: %w", n,
				catalog.ErrNotFound)
		}
		return e.base.Log.At(ctx, n)
	}
	if b.Snapshot != e.info.Number {
		if _, err := at(b.Snapshot); err != nil {
			return err
		}
	}
	for _, p := range b.Overlays {
		o, err := e.pinned(ctx, p, at)
		if err != nil {
			return err
		}
		if o.Branch != "" && o.Branch != b.Name {
			return fmt.Errorf("overlay %s was made on branch %s: its layers are over segments of that",
				p.Name, o.Branch)
		}
		// Its layers say nothing of rows that were deleted in between, which the branch reads.
		if o.Branch == "" && o.Added > b.Snapshot {
			return fmt.Errorf(
				"overlay %s was made in snapshot %d, after snapshot %d that the branch reads: make the branch of a "+
					"later one, or the overlay on the branch",
				p.Name, o.Added, b.Snapshot)
		}
	}
	switch p := b.List; {
	case p.Name == "":
	case p.Snapshot != e.info.Number:
		s, err := at(p.Snapshot)
		if err == nil {
			_, err = s.SampleList(ctx, p.Name)
		}
		return err
	default:
		l, err := e.list(ctx, p.Name)
		if err != nil {
			return err
		}
		if l == nil {
			_, err := e.base.SampleList(ctx, p.Name)
			return cmp.Or(err, fmt.Errorf("sample list %s is gone: %w", p.Name, catalog.ErrConflict))
		}
	}
	return nil
}

// pinned returns an overlay as a branch pins it, in the snapshot that the commit makes or in one of at.
func (e *edit) pinned(ctx context.Context, p catalog.Pin,
	at func(uint64) (*snapshot.Snapshot, error)) (catalog.Overlay, error) {
	if p.Snapshot != e.info.Number {
		s, err := at(p.Snapshot)
		if err != nil {
			return catalog.Overlay{}, err
		}
		return s.Overlay(ctx, p.Name)
	}
	o, err := e.overlay(ctx, p.Name)
	if err == nil && o == nil {
		_, err = e.base.Overlay(ctx, p.Name)
		err = cmp.Or(err, fmt.Errorf("overlay %s is gone: %w", p.Name, catalog.ErrConflict))
	}
	if o == nil {
		return catalog.Overlay{}, err
	}
	return *o, nil
}

// resolved returns b with the given snapshot where it has 0.
func resolved(b catalog.Branch, number uint64) catalog.Branch {
	b.Snapshot = cmp.Or(b.Snapshot, number)
	b.Overlays = slices.Clone(b.Overlays)
	for i := range b.Overlays {
		b.Overlays[i].Snapshot = cmp.Or(b.Overlays[i].Snapshot, number)
	}
	if b.List.Name != "" {
		b.List.Snapshot = cmp.Or(b.List.Snapshot, number)
	}
	return b
}
