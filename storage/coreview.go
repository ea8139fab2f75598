package storage

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
)

import ()

// A coreView is what a branch reads: snapshots by what they are read for.
type coreView struct {
	Branch   catalog.Branch
	Snapshot *coreSnapshot
	Overlays []overlayIn
	ListIn   *coreSnapshot // nil: the branch has no sample list
}

// An overlayIn is an overlay, and the snapshot that has its overlay segments.
type overlayIn struct {
	catalog.Overlay
	In *coreSnapshot
}

// View opens what a branch pins.
func (t *tableLog) View(ctx context.Context, b catalog.Branch) (*coreView, error) {
	opened := map[uint64]*coreSnapshot{}
	at := func(n uint64) (*coreSnapshot, error) {
		if s := opened[n]; s != nil {
			return s, nil
		}
		s, err := t.At(ctx, n)
		if err == nil {
			opened[n] = s
		}
		return s, err
	}
	v := &coreView{Branch: b}
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
		v.Overlays = append(v.Overlays, overlayIn{o, in})
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
