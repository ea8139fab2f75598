package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/plan"
)

// fillColumns makes the exact columns of b, those of a group with its slots and inverse.
func (x *groupMaker) fillColumns(b *Batch, l *batchLayout) error {
	partial := l.plan.Dedup == plan.DedupPartial
	x.filler.b, x.filler.l, x.filler.partial = b, l, partial
	for i := range x.groups {
		for _, f := range x.groups[i].Features {
			if err := b.exact[l.exactOf[f]].fillSlots(&x.groups[i], &x.filler); err != nil {
				return err
			}
		}
	}
	alone := x.pickAlone(b)
	for _, f := range x.alone {
		e := &b.exact[l.exactOf[f]]
		var err error
		if partial && e.column.Type.IsList() && !l.plan.Expands(f) {
			err = e.fillSlots(&alone, &x.filler)
		} else {
			err = e.fill(b, l)
		}
		if err != nil {
			return err
		}
	}
	for i := range b.exact {
		if b.exact[i].alone {
			if err := b.exact[i].fill(b, l); err != nil {
				return err
			}
		}
	}
	clear(x.filler.copies)
	return nil
}

// fillSlots makes the column of a group's slots.
func (e *exactColumn) fillSlots(g *Group, x *listFiller) error {
	c, a := &e.column, x.l.allocator
	c.Rows, c.Slots, c.Inverse = x.b.Rows, g.Slots, g.Inverse
	c.InverseBorrowed, c.Monotone = g.Inverse != nil, g.Inverse != nil && g.Monotone
	c.Lengths = nil
	e.fillSlotPresence(g, x)
	n := g.Slots * c.Type.Width()
	if c.Type.IsList() {
		var err error
		if n, err = e.fillSlotRanges(g, x); err != nil {
			return err
		}
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = e.ints.Resize(a, n)
		fillSlotValues(c.Ints, e, g, x, func(s *vector.Column) []int64 { return s.Ints })
	case vector.Float32Values:
		c.Floats = e.floats.Resize(a, n)
		fillSlotValues(c.Floats, e, g, x, func(s *vector.Column) []float32 { return s.Floats })
	case vector.Float64Values:
		c.Doubles = e.doubles.Resize(a, n)
		fillSlotValues(c.Doubles, e, g, x, func(s *vector.Column) []float64 { return s.Doubles })
	case vector.ByteValues:
		c.Data = e.data.Resize(a, n)
		fillSlotValues(c.Data, e, g, x, func(s *vector.Column) []byte { return s.Data })
	}
	switch c.Type.Score {
	case vector.Float32:
		c.ScoreFloats = e.scoreFloats.Resize(a, n)
		fillSlotValues(c.ScoreFloats, e, g, x, func(s *vector.Column) []float32 { return s.ScoreFloats })
	case vector.Float64:
		c.ScoreDoubles = e.scoreDoubles.Resize(a, n)
		fillSlotValues(c.ScoreDoubles, e, g, x, func(s *vector.Column) []float64 { return s.ScoreDoubles })
	}
	return nil
}

// fillSlotPresence sets the column's Present, nil when no slot is null.
func (e *exactColumn) fillSlotPresence(g *Group, x *listFiller) {
	e.column.Present = nil
	for _, s := range x.spans(g) {
		if c := x.column(s, e.feature); c == nil || c.Present != nil {
			p := vector.Bitmap(e.present.Resize(x.l.allocator, vector.BitmapWords(g.Slots)))
			clear(p)
			x.putPresence(p, g, e.feature)
			if !expand.AllSet(p, g.Slots) {
				e.column.Present = p
			}
			return
		}
	}
}

// fillSlotRanges sets the column's Offsets, and its Lengths where it has partial duplicates, and returns the number of values.
func (e *exactColumn) fillSlotRanges(g *Group, x *listFiller) (n int, err error) {
	c := &e.column
	x.copies = x.copies[:0]
	ok := true
	if x.partial && x.hasPartial(g, e.feature) {
		c.Offsets = e.offsets.Resize(x.l.allocator, g.Slots)
		c.Lengths = e.lengths.Resize(x.l.allocator, g.Slots)
		n, ok = x.placeFeature(c.Offsets, c.Lengths, g, e.feature, 0)
	} else {
		c.Offsets = e.offsets.Resize(x.l.allocator, g.Slots+1)
		c.Offsets[0] = 0
		x.putLengths(c.Offsets[1:], g, e.feature)
		n, ok = expand.Accumulate(c.Offsets[1:], 0)
	}
	if !ok {
		return 0, tooLarge(x.b, x.l, e.feature)
	}
	return n, nil
}

// hasPartial reports whether a feature has partial duplicates in a stripe of the batch.
func (x *listFiller) hasPartial(g *Group, feature int32) bool {
	for _, s := range x.spans(g) {
		if c := x.column(s, feature); c != nil && c.Lengths != nil {
			return true
		}
	}
	return false
}

// fillSlotValues copies the values of every span; values says which slice of a column they are.
func fillSlotValues[T any](dst []T, e *exactColumn, g *Group, x *listFiller, values func(*vector.Column) []T) {
	if e.column.Lengths != nil {
		for i := range x.copies {
			v := &x.copies[i]
			copy(dst[v.at:], values(v.column)[v.from:v.to])
		}
		return
	}
	width := e.column.Type.Width()
	at := 0
	for _, s := range x.spans(g) {
		c := x.column(s, e.feature)
		n := int(s.hi-s.lo) * width
		switch {
		case width > 0 && c == nil:
			clear(dst[at : at+n])
		case width > 0 && s.listed:
			v := x.listed(s, c)
			expand.PutFixed(dst[at:at+n], values(c), &v, width, 0, v.Rows)
		case c != nil && s.listed:
			v := x.listed(s, c)
			n = expand.PutLists(dst[at:], values(c), &v, 0, v.Rows, false)
		case width > 0:
			n = copy(dst[at:at+n], values(c)[int(s.lo)*width:int(s.hi)*width])
		case c != nil:
			n = expand.PutSlotLists(dst[at:], values(c), c, int(s.lo), int(s.hi))
		}
		at += n
	}
}
