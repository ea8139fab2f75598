package reader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
)

// testOverlays are overlays over a testTable, whose model has what they make of it: each is put over the rows when it
// is drawn, from the lowest up, row by row.
type testOverlays struct {
	defined   []catalog.Overlay // the lowest first; nil: none
	positions [][]int           // their features, in the table
	only      map[int]bool      // features that no segment has
	layers    [][]*catalog.OverlaySegment
	covers    map[*catalog.OverlaySegment]*roaring.Bitmap
}

// apply puts the overlays over a layout.
func (o *testOverlays) apply(l *Layout) {
	l.applyOverlays(o.defined, o.layers, func(ctx context.Context, x *catalog.OverlaySegment) (*roaring.Bitmap,
		error) {
		return o.covers[x], ctx.Err()
	})
}

func (o *testOverlays) draw(t *rapid.T, features []catalog.Feature) {
	var may []int
	o.only, o.covers = map[int]bool{}, map[*catalog.OverlaySegment]*roaring.Bitmap{}
	for i, f := range features {
		if IsPartitionKey(f) || f.Role == catalog.RoleRequestKey {
			continue
		}
		may = append(may, i)
		o.only[i] = rapid.IntRange(0, 4).Draw(t, "added") == 0
	}
	if len(may) == 0 {
		return
	}
	policies := []catalog.MissingPolicy{catalog.FallThrough, catalog.FallThrough, catalog.Null}
	for k := range rapid.SampledFrom([]int{1, 1, 2, 3, 10}).Draw(t, "overlays") {
		x := catalog.Overlay{
			Name: fmt.Sprint("o", k), Number: uint32(k), MissingRows: rapid.SampledFrom(policies).Draw(t,
				"missing rows"),
			MissingLayers: rapid.SampledFrom(policies).Draw(t, "missing layers"),
		}
		positions := rapid.Permutation(may).Draw(t, "overlay's features")
		positions = slices.Clone(positions[:rapid.IntRange(1, min(4, len(positions))).Draw(t,
			"features of the overlay")])
		if rapid.IntRange(0, 3).Draw(t, "hot") > 0 { // stacks are to be over the same features
			positions = append(positions, may[:min(2, len(may))]...)
		}
		slices.Sort(positions) // which is the order of ids
		positions = slices.Compact(positions)
		for _, f := range positions {
			x.Features = append(x.Features, features[f])
		}
		o.defined, o.positions = append(o.defined, x), append(o.positions, positions)
	}
}

// drawLayers draws what the overlays have over the last segment, and puts it over the model.
func (o *testOverlays) drawLayers(t *rapid.T, table *testTable) {
	if o.defined == nil {
		return
	}
	d := table.segments[len(table.segments)-1]
	stripeRows := table.indexes[d.ID].stripeRows
	base := len(table.rows) - int(d.Rows)
	stripeOf := make([]int, 0, d.Rows)
	for i, n := range stripeRows {
		stripeOf = append(stripeOf, slices.Repeat([]int{i}, int(n))...)
	}
	layers := make([]*catalog.OverlaySegment, len(o.defined))
	for k, x := range o.defined {
		null := func(row, f int, segment string) {
			table.rows[row][f] = value{null: true}
			table.slots[row][f] = storedSlot{segment: segment, stripe: stripeOf[row-base], inverse: missingInverse,
				stripeInverse: true}
		}
		if rapid.IntRange(0, 3).Draw(t, "no layer") == 0 {
			for r := range stripeOf {
				for _, f := range o.positions[k] {
					if x.MissingLayers == catalog.Null {
						null(base+r, f, d.Index+" null")
					}
				}
			}
			continue
		}
		data := catalog.SegmentDescriptor{ID: fmt.Sprint(d.ID, " ", k), Rows: d.Rows,
			Index: fmt.Sprint(d.Index, " ", k)}
		var stored []int
		for _, f := range o.positions[k] {
			if rapid.IntRange(0, 5).Draw(t, "in the layer") > 0 {
				stored = append(stored, f)
			}
		}
		type cell struct {
			v value
			x storedSlot
		}
		cells := map[[2]int]cell{}
		data = table.drawFiles(t, data, stripeRows, stored, base,
			func(row, f int, v value, x storedSlot) { cells[[2]int{row, f}] = cell{v, x} })
		share := rapid.SampledFrom([]int{0, 1, 5, 5, 9, 10, 11}).Draw(t, "coverage")
		covered := roaring.New()
		stripe, whole := -1, false
		for r, i := range stripeOf {
			if i != stripe { // now and then a stripe is covered as a whole, or not at all
				stripe, whole = i, rapid.IntRange(0, 3).Draw(t, "whole stripe") == 0
			}
			switch {
			case share >= 10, whole && i%2 == 0, !whole && rapid.IntRange(0, 9).Draw(t, "covered") < share:
				covered.Add(uint32(r))
			}
		}
		for r := range stripeOf {
			for _, f := range o.positions[k] {
				c, ok := cells[[2]int{base + r, f}]
				switch {
				case !covered.Contains(uint32(r)):
					if x.MissingRows == catalog.Null {
						null(base+r, f, d.Index+" null")
					}
				case !ok:
					null(base+r, f, data.Index)
				default:
					table.rows[base+r][f], table.slots[base+r][f] = c.v, c.x
				}
			}
		}
		layers[k] = &catalog.OverlaySegment{Overlay: x.Name, Segment: d.ID, Data: data, All: share == 10, Since: 1}
		if share != 10 { // of 11 it says so row by row
			layers[k].Covered = bitmap.Ref{Count: covered.GetCardinality()}
			o.covers[layers[k]] = covered
		}
	}
	o.layers = append(o.layers, layers)
	for f := range table.features {
		shareSlots(table, f, base, stripeOf)
	}
}

// shareSlots says which slots the rows from base on, of one segment, have of a feature after all layers are put over
// it. Where it has parts of several origins, so has its inverse; features share one where all parts of both are of the
// same groups. What is merged of numbers without an inverse has none.
func shareSlots(table *testTable, f, base int, stripeOf []int) {
	var origins, parts []string
	all, grouped := true, true // missing; of groups
	for r := range stripeOf {
		x := table.slots[base+r][f]
		parts = append(parts, x.segment+"/"+x.group)
		if !slices.Contains(origins, x.segment) {
			origins = append(origins, x.segment)
		}
		if x.inverse != missingInverse {
			all = false
			grouped = grouped && x.group != ""
		}
	}
	if all { // as if no layer nor the segment had it
		for r := range stripeOf {
			table.slots[base+r][f].segment = fmt.Sprint("missing in ", base)
		}
	}
	if all || len(origins) == 1 {
		return
	}
	inverse := fmt.Sprint("merge of ", f)
	if grouped {
		inverse = "merge of groups " + strings.Join(parts, " ")
	}
	width := table.features[f].Type.Kind == vector.Dense || table.features[f].Type.Kind == vector.Embedding
	for from := 0; from < len(stripeOf); {
		to := from
		var here []string
		some, null := false, true
		for ; to < len(stripeOf) && stripeOf[to] == stripeOf[from]; to++ {
			x := table.slots[base+to][f]
			if !slices.Contains(here, x.segment) {
				here = append(here, x.segment)
			}
			some = some || x.inverse != missingInverse && x.stripeInverse
			null = null && x.inverse == missingInverse
		}
		for r := from; r < to; r++ {
			x := &table.slots[base+r][f]
			x.inverse = inverse
			switch {
			case null: // as if there were nothing
				x.segment, x.nothing = fmt.Sprint("missing in ", base), true
			case len(here) == 1:
			case width && !grouped && !some:
				*x = storedSlot{segment: fmt.Sprint("merge in ", base), stripe: x.stripe, inverse: inverse, slot: r}
			default:
				x.stripeInverse = true
			}
		}
		from = to
	}
}
