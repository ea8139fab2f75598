package execution

import (
	"fmt"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A merge makes the stripe of features whose rows come from several parts: layers of overlays, the segment itself, or
// null.
//
//	rows        0 1 2 3 4 5 6 7
//	which       b b o o b - - b           b: the segment, o: a layer, -: null
//
//	dense       b b o o b 0 0 b           copied row by row
//	lists       slots of o, then of b, then one that is null; the inverse has the slot of each row,
//	                                      so that a distinct value of a part is there once
//
// If one part has all rows of a stripe, it is decoded as if there were no other. Parts without a row of a stripe are
// not fetched for it. If a part has few rows of a stripe, only those are decoded. A merge is scratch memory.
type merge struct {
	parts []mergePart
	files []ioplan.File // of the segment
	which []uint16      // by row: its part
	rows  int
	whole bool // all rows of the stripe are wanted

	// By part:
	bases []int32   // first slot
	invs  [][]int32 // inverse
	next  []int32   // next row of its column, if only its rows are decoded; else -1
}

// A mergePart is a part in one stripe.
type mergePart struct {
	of    *ioplan.ItemPart
	count int     // rows that it has of those wanted
	rows  []int32 // rows of the stripe to decode; nil: decode it whole
	list  []int32 // memory of rows

	selection format.Selection // of rows in its group
	inverse   *ioplan.Decoded  // of its group; nil: it has none, or only rows are decoded
	lent      bool             // the stripe owns the inverse
	decoded   *ioplan.Decoded
	column    *vector.Column // nil: null
	borrows   bool           // decoded's values are in the merge's memory (see lend), and own has its own memory
	own       vector.Column
}

// decodeMerged decodes the features of an item that has parts: the whole stripe, or only rows, which ascend. It returns
// how many slots the features have.
func (x *Executor) decodeMerged(w *scratch, st *ioplan.Stripe, it *ioplan.Item, rows []int32) (slots uint64,
	err error) {
	b, d := &w.merge, w.decoder
	defer b.release(x)
	b.find(x, st, it, rows)
	for p := range b.parts {
		if err := b.decodeGroup(d, st, p, x); err != nil {
			return 0, err
		}
	}
	var shared *ioplan.Decoded // the inverse that all features of the item share, if it is grouped
	for i, f := range it.Features {
		c, err := b.decode(d, st, it, i, x, &shared)
		if err != nil {
			return 0, err
		}
		if x.Sessions && f == x.src.SessionKey {
			var key *vector.Column
			if c != nil {
				key = c.Column
			}
			st.FindSessions(key)
		}
		switch t := x.src.Transforms[f]; {
		case c != nil:
			slots += uint64(min(c.Column.Slots, b.rows)) // some slots of parts may have no row
			if t != nil {
				err = c.Transform(t)
			}
		case t != nil && t.Fills:
			c = x.column(f)
			st.Columns[f] = c
			err = c.Missing(t, x.zeros.Get(b.rows))
		}
		if err != nil {
			return 0, fmt.Errorf("feature %q: %w", x.src.Features[f].Name, err)
		}
	}
	return slots, nil
}

// find sets the parts and which, for the wanted rows; nil: all.
func (b *merge) find(x *Executor, st *ioplan.Stripe, it *ioplan.Item, rows []int32) {
	g, k := st.Segment, st.Index
	first, stored := g.First[k], g.StoredRows(k)
	b.files, b.whole, b.rows, b.parts = g.Files, rows == nil, len(rows), b.parts[:0]
	if b.whole {
		b.rows = stored
	}
	for p := range it.Parts {
		if it.Parts[p].Stripes.Get(k) {
			b.addPart(&it.Parts[p])
		}
	}
	last := len(b.parts) - 1
	if last == 0 {
		b.parts[0].count, b.parts[0].rows = b.rows, rows
		return
	}
	b.which = vector.Resize(b.which, b.rows)
	for r := range b.which {
		b.which[r] = uint16(last)
	}
	left := b.rows
	for p := range b.parts[:last] {
		part := &b.parts[p]
		its := part.of.Rows.Iterator()
		its.AdvanceIfNeeded(uint32(first))
		if b.whole {
			end := uint32(g.First[k+1] - 1) // the last
			for its.HasNext() && its.PeekNext() <= end {
				b.which[its.Next()-uint32(first)] = uint16(p)
				part.count++
			}
		} else {
			for r, row := range rows {
				at := uint32(first) + uint32(row)
				if its.AdvanceIfNeeded(at); !its.HasNext() {
					break
				}
				if its.PeekNext() == at {
					b.which[r] = uint16(p)
					part.count++
				}
			}
		}
		left -= part.count
	}
	b.parts[last].count = left
	for p := range b.parts {
		part := &b.parts[p]
		if b.whole && (!x.decodesRows(part.count, part.count, stored) || part.of.Shares(g, k, part.count)) {
			continue
		}
		part.rows = part.list[:0]
		for r, of := range b.which {
			if int(of) == p {
				row := int32(r)
				if !b.whole {
					row = rows[r]
				}
				part.rows = append(part.rows, row)
			}
		}
		part.list = part.rows
	}
	for p := range b.parts {
		if b.parts[p].count == b.rows { // it has all rows
			b.parts[0], b.parts[p] = b.parts[p], b.parts[0]
			b.parts = b.parts[:1]
			return
		}
	}
}

func (b *merge) addPart(of *ioplan.ItemPart) {
	if n := len(b.parts); n < cap(b.parts) {
		b.parts = b.parts[:n+1]
	} else {
		b.parts = append(b.parts, mergePart{})
	}
	p := &b.parts[len(b.parts)-1]
	p.of, p.count, p.rows, p.inverse, p.lent, p.decoded, p.column = of, 0, nil, nil, false, nil, nil
}

// decodeGroup decodes the inverse of a part's group or, if only rows are decoded, selects them in it.
func (b *merge) decodeGroup(d *format.StripeDecoder, st *ioplan.Stripe, p int, x *Executor) error {
	part := &b.parts[p]
	file := part.of.Inverse
	if file < 0 || part.count == 0 {
		return nil
	}
	if part.rows != nil {
		f := &st.Segment.Files[file]
		src, at := st.Task.Bytes(file, st.Index)
		if err := d.SelectRows(&part.selection, f.Entry.Meta, st.Index, src, part.rows); err != nil {
			return f.Locate(err, at)
		}
		return nil
	}
	part.inverse = x.inverse()
	if part.lent = len(b.parts) == 1; part.lent {
		st.KeepInverse(part.inverse)
	}
	return x.decodeFile(d, st, file, part.inverse, nil, nil, nil)
}

// decode sets and returns st's column of the i-th feature of the item; nil: every row is null.
func (b *merge) decode(d *format.StripeDecoder, st *ioplan.Stripe, it *ioplan.Item, i int, x *Executor,
	shared **ioplan.Decoded) (*ioplan.Decoded, error) {
	f := it.Features[i]
	var c *ioplan.Decoded
	if len(b.parts) > 1 {
		c = x.column(f)
		st.Columns[f] = c
	}
	some, at := false, 0
	for p := range b.parts {
		part := &b.parts[p]
		part.column = nil
		file := part.of.Files[i]
		if file < 0 || part.count == 0 {
			continue
		}
		some = true
		part.decoded = x.column(f)
		if c != nil && x.src.Features[f].Type.IsList() {
			b.lend(&c.Stored, p, &b.files[file], st.Index, i, at)
		}
		var inverse *vector.Column
		if part.inverse != nil {
			inverse = part.inverse.Column
		}
		if err := x.decodeFile(d, st, file, part.decoded, part.rows, inverse, &part.selection); err != nil {
			return nil, err
		}
		part.column = part.decoded.Column
		at += part.column.Elements()
	}
	if !some {
		if c != nil {
			st.Columns[f] = nil
			x.columns[f].Put(c)
		}
		return nil, nil
	}
	if c == nil {
		only := &b.parts[0]
		c, only.decoded = only.decoded, nil
		st.Columns[f] = c
		return c, nil
	}
	if it.Grouped && *shared == nil {
		*shared = x.inverse()
		st.KeepInverse(*shared)
	}
	if err := b.make(&c.Stored, x.src.Features[f].Type, *shared, i == 0); err != nil {
		return nil, fmt.Errorf("feature %q: %w", x.src.Features[f].Name, err)
	}
	c.Column = &c.Stored
	for p := range b.parts {
		part := &b.parts[p]
		if part.decoded != nil {
			part.takeBack()
			x.columns[f].Put(part.decoded)
			part.decoded = nil
		}
	}
	return c, nil
}

// release returns memory to the pools, also after an error, and removes the references to the item.
func (b *merge) release(x *Executor) {
	all := b.parts[:cap(b.parts)]
	for p := range all {
		part := &all[p]
		if part.inverse != nil && !part.lent {
			x.inverses.Put(part.inverse)
		}
		part.of, part.inverse, part.decoded, part.column = nil, nil, nil, nil
		part.own, part.borrows = vector.Column{}, false
	}
	b.files = nil
	clear(b.invs[:cap(b.invs)])
}

// make sets to, whose memory is reused, from the parts' columns. shared is the inverse of a grouped item, which is set
// with its first feature; nil: to has its own, or none.
func (b *merge) make(to *vector.Column, t vector.Type, shared *ioplan.Decoded, first bool) error {
	if to.InverseBorrowed {
		to.Inverse, to.InverseBorrowed = nil, false
	}
	to.Type, to.Rows, to.Monotone = t, b.rows, false
	to.Offsets, to.Ints, to.Floats, to.Doubles = to.Offsets[:0], to.Ints[:0], to.Floats[:0], to.Doubles[:0]
	to.Data, to.ScoreFloats, to.ScoreDoubles = to.Data[:0], to.ScoreFloats[:0], to.ScoreDoubles[:0]
	if shared == nil && !t.IsList() && b.plain() {
		b.copyRows(to)
		return nil
	}
	if err := b.joinSlots(to); err != nil {
		return err
	}
	if shared == nil {
		to.Inverse = vector.Resize(to.Inverse, b.rows)
		b.invert(to.Inverse)
		return nil
	}
	if first {
		shared.Stored.Inverse = vector.Resize(shared.Stored.Inverse, b.rows)
		b.invert(shared.Stored.Inverse)
	}
	to.Inverse, to.InverseBorrowed = shared.Stored.Inverse, true
	return nil
}

// plain reports whether no part has an inverse.
func (b *merge) plain() bool {
	for p := range b.parts {
		if c := b.parts[p].column; c != nil && c.Inverse != nil {
			return false
		}
	}
	return true
}

// start sets next and invs, before a pass over the rows.
func (b *merge) start() {
	b.next, b.invs = b.next[:0], b.invs[:0]
	for p := range b.parts {
		part := &b.parts[p]
		next, inverse := int32(-1), []int32(nil)
		if part.rows != nil {
			next = 0
		}
		if part.column != nil {
			inverse = part.column.Inverse
		}
		b.next, b.invs = append(b.next, next), append(b.invs, inverse)
	}
}

// row returns the row in the column of part p of row r of the merge. Rows are asked for in order.
func (b *merge) row(p uint16, r int) int {
	if next := b.next[p]; next >= 0 {
		b.next[p]++
		return int(next)
	}
	return r
}

// copyRows sets to from values of fixed width, row by row.
func (b *merge) copyRows(to *vector.Column) {
	to.Slots, to.Inverse, to.Lengths = b.rows, nil, nil
	b.start()
	nulls := false
	for p := range b.parts {
		part := &b.parts[p]
		nulls = nulls || part.count > 0 && (part.column == nil || part.column.Present != nil)
	}
	if !nulls {
		to.Present = nil
	} else {
		to.Present = vector.Resize(to.Present, vector.BitmapWords(b.rows))
		clear(to.Present)
		for r, p := range b.which {
			at := b.row(p, r)
			if c := b.parts[p].column; c != nil && (c.Present == nil || c.Present.Get(at)) {
				to.Present.Set(r)
			}
		}
		b.start()
	}
	n, width := b.rows*to.Type.Width(), to.Type.Width()
	switch to.Type.Physical() {
	case vector.Int64Values:
		to.Ints = vector.Resize(to.Ints, n)
		mergeRows(b, to.Ints, width, func(c *vector.Column) []int64 { return c.Ints })
	case vector.Float32Values:
		to.Floats = vector.Resize(to.Floats, n)
		mergeRows(b, to.Floats, width, func(c *vector.Column) []float32 { return c.Floats })
	case vector.Float64Values:
		to.Doubles = vector.Resize(to.Doubles, n)
		mergeRows(b, to.Doubles, width, func(c *vector.Column) []float64 { return c.Doubles })
	}
}

// mergeRows copies the value of each row, zeros for null. values returns the slice of a column's values.
func mergeRows[T any](b *merge, dst []T, width int, values func(*vector.Column) []T) {
	var few [4][]T
	from := few[:0]
	for p := range b.parts {
		var v []T
		if c := b.parts[p].column; c != nil {
			v = values(c)
		}
		from = append(from, v)
	}
	for r, p := range b.which {
		at := b.row(p, r)
		switch v := from[p]; {
		case v == nil:
			clear(dst[r*width : (r+1)*width])
		case width == 1:
			dst[r] = v[at]
		default:
			copy(dst[r*width:(r+1)*width], v[at*width:])
		}
	}
}

// invert sets dst to the slot of each row.
func (b *merge) invert(dst []int32) {
	b.start()
	for r, p := range b.which {
		slot := 0
		if b.parts[p].column != nil {
			slot = b.row(p, r)
			if inverse := b.invs[p]; inverse != nil {
				slot = int(inverse[slot])
			}
		}
		dst[r] = b.bases[p] + int32(slot)
	}
}

// joinSlots sets to's slots to those of all parts, one part after the other. A part that is null has one slot.
func (b *merge) joinSlots(to *vector.Column) error {
	width := to.Type.Width()
	slots, values := 0, 0
	nulls, partial := false, false
	b.bases = b.bases[:0]
	for p := range b.parts {
		part := &b.parts[p]
		b.bases = append(b.bases, int32(slots))
		switch c := part.column; {
		case part.count == 0:
		case c == nil:
			nulls = true
			slots++
			values += width
		default:
			nulls, partial = nulls || c.Present != nil, partial || c.Lengths != nil
			slots += c.Slots
			values += c.Elements()
		}
		if slots > vector.MaxElements || values > vector.MaxElements {
			return fmt.Errorf("the parts of a stripe have more than %d values together", vector.MaxElements)
		}
	}
	to.Slots = slots
	if nulls {
		to.Present = vector.Resize(to.Present, vector.BitmapWords(slots))
		clear(to.Present)
	} else {
		to.Present = nil
	}
	if !partial {
		to.Lengths = nil
	} else {
		to.Lengths = vector.Resize(to.Lengths, slots)
	}
	if to.Type.IsList() {
		n := slots
		if !partial {
			n++
		}
		to.Offsets = vector.Resize(to.Offsets, n)
		to.Offsets[0] = 0
	}
	at := int32(0) // values so far
	for p := range b.parts {
		part := &b.parts[p]
		if part.count == 0 {
			continue
		}
		c := part.column
		if c != nil && nulls {
			expand.PutSlotPresence(to.Present, int(b.bases[p]), c, 0, c.Slots)
		}
		if to.Type.IsList() {
			joinRanges(to, c, b.bases[p], at)
		}
		if c != nil {
			at += int32(c.Elements())
		}
	}
	switch to.Type.Physical() {
	case vector.Int64Values:
		to.Ints = joinValues(b, vector.Resize(to.Ints, values), width, func(c *vector.Column) []int64 { return c.Ints })
	case vector.Float32Values:
		to.Floats = joinValues(b, vector.Resize(to.Floats, values), width,
			func(c *vector.Column) []float32 { return c.Floats })
	case vector.Float64Values:
		to.Doubles = joinValues(b, vector.Resize(to.Doubles, values), width,
			func(c *vector.Column) []float64 { return c.Doubles })
	case vector.ByteValues:
		to.Data = joinValues(b, vector.Resize(to.Data, values), width, func(c *vector.Column) []byte { return c.Data })
	}
	switch to.Type.Score {
	case vector.Float32:
		to.ScoreFloats = joinValues(b, vector.Resize(to.ScoreFloats, values), width,
			func(c *vector.Column) []float32 { return c.ScoreFloats })
	case vector.Float64:
		to.ScoreDoubles = joinValues(b, vector.Resize(to.ScoreDoubles, values), width,
			func(c *vector.Column) []float64 { return c.ScoreDoubles })
	}
	return nil
}

// joinRanges writes the ranges of c's slots to the slots of to from base on; c nil: of one null slot. Their values
// start at position at.
func joinRanges(to, c *vector.Column, base, at int32) {
	if to.Lengths == nil {
		ends := to.Offsets[base+1:]
		if c == nil {
			ends[0] = at
			return
		}
		for i, o := range c.Offsets[1 : c.Slots+1] {
			ends[i] = at + o
		}
		return
	}
	if c == nil {
		to.Offsets[base], to.Lengths[base] = at, 0
		return
	}
	starts, lengths := to.Offsets[base:], to.Lengths[base:]
	for i := range c.Slots {
		lo, hi := c.SlotRange(i)
		starts[i], lengths[i] = at+int32(lo), int32(hi-lo)
	}
}

// joinValues copies the values of all parts to dst, except those that lend put there; zeros for a null slot.
func joinValues[T any](b *merge, dst []T, width int, values func(*vector.Column) []T) []T {
	at := 0
	for p := range b.parts {
		part := &b.parts[p]
		switch {
		case part.count == 0:
		case part.column == nil:
			clear(dst[at : at+width])
			at += width
		default:
			v := values(part.column)
			if len(v) > 0 && &v[0] != &dst[at] {
				copy(dst[at:], v)
			}
			at += len(v)
		}
	}
	return dst
}
