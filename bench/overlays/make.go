package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/segment"
)

func overlayName(half bool, i int) string {
	if half {
		return fmt.Sprint("half", i)
	}
	return fmt.Sprint("all", i)
}

// makeOverlays gives the table n overlays over all rows and n over a random half of them, which have a dense feature
// and an id list among names, as far as there are such, with the table's values. It returns the features' names.
func makeOverlays(ctx context.Context, table *storage.Table, names []string,
	n int) (*storage.Snapshot, []string, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, nil, err
	}
	features, err := snap.Lookup(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	var chosen []catalog.Feature
	var overlaid []string
	has := map[vector.Kind]bool{}
	for _, f := range features {
		if k := f.Type.Kind; (k == vector.Dense || k == vector.Sparse) && !has[k] {
			has[k] = true
			chosen = append(chosen, f)
			overlaid = append(overlaid, f.Name)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, errors.New("no dense feature and no id list is projected")
	}
	columns, err := versus.ReadColumns(ctx, snap, reader.PlanOptions{Features: overlaid})
	if err != nil {
		return nil, nil, err
	}
	byID := append([]catalog.Feature(nil), chosen...)
	if len(byID) == 2 && byID[0].ID > byID[1].ID {
		byID[0], byID[1] = byID[1], byID[0]
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	change := commit.Change{Operation: "overlay", Base: snap.Info().Number}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, half := range []bool{false, true} {
		for i := range n {
			o := catalog.Overlay{Name: overlayName(half, i), Features: byID}
			change.Set(append(commit.Op[commit.DefineOverlays](&change), o))
			first := 0
			for _, d := range segments {
				l := catalog.OverlaySegment{Overlay: o.Name, Segment: d.ID, All: !half}
				if l.Data, err = writeLayer(ctx, snap, d, chosen, columns, first); err != nil {
					return nil, nil, err
				}
				if half {
					rows := roaring.New()
					for r := range uint32(d.Rows) {
						if rng.IntN(2) == 0 {
							rows.Add(r)
						}
					}
					if l.Covered, err = table.Store().Bitmaps().Put(ctx, d.ID, d.Rows, rows); err != nil {
						return nil, nil, err
					}
				}
				change.Set(append(commit.Op[commit.SetOverlaySegments](&change), l))
				first += int(d.Rows)
			}
		}
	}
	snap, err = table.Commit(ctx, change)
	return snap, overlaid, err
}

// writeLayer writes a layer over a segment, whose rows begin at first in the columns. Rows that have the value of the
// row before share it.
func writeLayer(ctx context.Context, snap *storage.Snapshot, d catalog.SegmentDescriptor, features []catalog.Feature,
	columns []*vector.Column,
	first int) (catalog.SegmentDescriptor, error) {
	g, err := snap.OpenSegment(ctx, d)
	if err != nil {
		return d, err
	}
	stripes := g.StripeRows()
	w, err := snap.Table().NewOverlaySegment(ctx, d, segment.Options{})
	if err != nil {
		return d, err
	}
	for i, f := range features {
		err := w.AddFeature(ctx, i, f, func(to *format.Writer) error {
			row := first
			for _, n := range stripes {
				if err := to.WriteStripe(runsOf(columns[i], row, row+int(n))); err != nil {
					return err
				}
				row += int(n)
			}
			return nil
		})
		if err != nil {
			return d, err
		}
	}
	return w.Finish(ctx)
}

// runsOf returns rows [lo, hi) of a column with one slot for each run of equal ones.
func runsOf(c *vector.Column, lo, hi int) *vector.Column {
	out := vector.NewColumn(c.Type)
	var inverse []int32
	for r := lo; r < hi; r++ {
		if r == lo || !vector.RowsEqual(c, r-1, c, r) {
			out.AppendRow(c, r)
		}
		inverse = append(inverse, int32(out.Slots-1))
	}
	if out.Slots < hi-lo {
		out.Rows, out.Inverse, out.Monotone = hi-lo, inverse, true
	}
	return out
}
