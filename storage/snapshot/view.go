package snapshot

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A View is what a branch reads: snapshots by what they are read for.
type View struct {
	Branch   catalog.Branch
	Snapshot *Snapshot
	Overlays []ViewOverlay
	ListIn   *Snapshot // nil: the branch has no sample list
}

// A ViewOverlay is an overlay, and the snapshot that has its layers.
type ViewOverlay struct {
	catalog.Overlay
	In *Snapshot
}

// View opens what a branch pins.
func (t *Log) View(ctx context.Context, b catalog.Branch) (*View, error) {
	opened := map[uint64]*Snapshot{}
	at := func(n uint64) (*Snapshot, error) {
		if s := opened[n]; s != nil {
			return s, nil
		}
		s, err := t.At(ctx, n)
		if err == nil {
			opened[n] = s
		}
		return s, err
	}
	v := &View{Branch: b}
	var err error
	if v.Snapshot, err = at(b.Snapshot); err != nil {
		return nil, err
	}
	for _, p := range b.Overlays {
		in, err := at(p.Snapshot)
		if err != nil {
			return nil, err
		}
		o, err := in.Overlay(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		v.Overlays = append(v.Overlays, ViewOverlay{o, in})
	}
	if b.List.Name != "" {
		if v.ListIn, err = at(b.List.Snapshot); err != nil {
			return nil, err
		}
		if _, err := v.ListIn.SampleList(ctx, b.List.Name); err != nil {
			return nil, err
		}
	}
	return v, nil
}
