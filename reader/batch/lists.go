package batch

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/plan"
)

// A listKind says which Jagged of Tensors holds a feature.
type listKind uint8

const (
	sparseLists   listKind = 0
	weightedLists listKind = 1
	floatLists    listKind = 2
	listKinds              = 3
)

// A valueCopy copies values [from, to) of a column, which partial duplicates share, to position at of the batch's
// values.
type valueCopy struct {
	column   *vector.Column
	from, to int32
	at       int
}

// A listFiller fills the lists and exact columns of one batch, in three steps:
//
//	measure     adds the arrays whose sizes depend only on slots and rows
//	place       fills lengths and offsets, and adds the arrays of values
//	copyValues  fills the values
//
// It is scratch memory of the batch.
type listFiller struct {
	b       *Batch
	l       *batchLayout
	partial bool
	groups  []Group
	groupOf []int32 // by position in the plan: its position in groups; nil: no feature is in a group
	alone   Group   // if partial: of the features in no group, see selectAlone
	copies  []valueCopy
	kinds   [listKinds]copyRange // the copies of each kind of lists

	slotRows []int32 // memory of Group.slotRows

	view   vector.Column  // returned by source
	viewOf *vector.Column // the column whose slots are view's rows; nil: view cannot be reused
}

// copyRange is copies [from, to).
type copyRange struct{ from, to int }

// begin starts a batch, after its groups were found.
func (x *listFiller) begin(b *Batch, l *batchLayout) {
	x.b, x.l, x.partial, x.viewOf, x.copies = b, l, l.dedup == plan.DedupPartial, nil, x.copies[:0]
	x.groups, x.groupOf = nil, nil
	if l.dedup != plan.DedupKJT {
		x.groups, x.groupOf = b.maker.groups, b.maker.groupOf
	}
	if x.partial {
		x.alone = b.maker.selectAlone(b)
	}
}

// measure adds the arrays whose sizes depend only on rows and slots.
func (x *listFiller) measure() error {
	k, s := &x.b.block, x.l.schema
	x.measureGroups()
	for i := range x.b.exact {
		x.b.exact[i].measure(x)
	}
	t := x.b.Tensors
	if t == nil {
		return nil
	}
	t.measureMatrices(x.b, x.l)
	for kind := range listKind(listKinds) {
		j, a := t.list(kind), &s.lists[kind]
		if len(j.Features) == 0 {
			continue
		}
		lists, words := 0, 0
		for _, f := range j.Features {
			n := x.listsOf(f)
			lists += n
			words += vector.BitmapWords(n)
		}
		if lists >= vector.MaxElements {
			return fmt.Errorf("%d list features of %d rows have more than %d lists: the batch size, %d, is too large",
				len(j.Features), x.b.Rows, vector.MaxElements, x.l.plan.BatchSize)
		}
		add[int32](k, a.firstList, len(j.Features)+1)
		add[int32](k, a.firstValue, len(j.Features)+1)
		if x.groupOf != nil {
			add[int32](k, a.groups, len(j.Features))
		}
		add[int32](k, a.lengths, lists)
		if x.partial {
			add[int32](k, a.starts, lists)
		} else {
			add[int32](k, a.offsets, lists+1)
		}
		if x.l.presence {
			add[uint64](k, a.present, words)
		}
		if x.l.rowValues {
			add[int64](k, a.rowValues, len(j.Features))
		}
	}
	return nil
}

// measureGroups adds the arrays that describe the groups.
func (x *listFiller) measureGroups() {
	if len(x.groups) == 0 {
		return
	}
	k, a, features := &x.b.block, &x.l.schema.groups, 0
	for i := range x.groups {
		features += len(x.groups[i].Features)
	}
	add[int32](k, a.first, len(x.groups)+1)
	add[int32](k, a.features, features)
	add[int32](k, a.slots, len(x.groups))
	if x.b.Tensors == nil {
		add[int32](k, a.ofColumns, len(x.b.exact))
	}
}

// placeGroups fills the arrays that measureGroups added.
func (x *listFiller) placeGroups() {
	if len(x.groups) == 0 {
		return
	}
	k, a := &x.b.block, &x.l.schema.groups
	first, features, slots := arrayOf[int32](k, a.first), arrayOf[int32](k, a.features), arrayOf[int32](k, a.slots)
	n := 0
	for i := range x.groups {
		n += copy(features[n:], x.groups[i].Features)
		first[i+1], slots[i] = int32(n), int32(x.groups[i].Slots)
	}
	first[0] = 0
	ofColumns := arrayOf[int32](k, a.ofColumns)
	for i := range ofColumns {
		ofColumns[i] = x.groupOf[x.b.exact[i].feature]
	}
}

// place fills lengths and offsets, and adds the arrays of values.
func (x *listFiller) place() error {
	x.useInverses()
	x.placeGroups()
	if x.l.rowValues {
		x.countSlotRows()
	}
	for i := range x.b.exact {
		if err := x.b.exact[i].place(x); err != nil {
			return err
		}
	}
	t, k := x.b.Tensors, &x.b.block
	if t == nil {
		return nil
	}
	for kind := range listKind(listKinds) {
		j, a := t.list(kind), &x.l.schema.lists[kind]
		if len(j.Features) == 0 {
			continue
		}
		j.use(k, a)
		from := len(x.copies)
		n, err := x.placeLists(j)
		if err != nil {
			return err
		}
		x.kinds[kind] = copyRange{from, len(x.copies)}
		if kind == floatLists {
			add[float32](k, a.values, n)
		} else {
			add[int64](k, a.values, n)
		}
		if kind == weightedLists {
			add[float32](k, a.weights, n)
		}
	}
	return nil
}

// copyValues fills all values, and sets the slices of columns and tensors to those of the block, which does not move
// any more.
func (x *listFiller) copyValues() {
	k := &x.b.block
	x.useInverses()
	for i := range x.b.exact {
		x.b.exact[i].copyValues(x)
	}
	t := x.b.Tensors
	if t == nil {
		return
	}
	t.use(k, x.l.schema)
	t.Groups, t.Inverses = x.groups, arrayOf[int32](k, x.l.schema.groups.inverses)
	for kind := range listKind(listKinds) {
		if j := t.list(kind); len(j.Features) > 0 {
			x.copyLists(j, kind)
		}
	}
}

// useInverses sets the groups' inverses to the block's memory.
func (x *listFiller) useInverses() {
	left := arrayOf[int32](&x.b.block, x.l.schema.groups.inverses)
	for i := range x.groups {
		x.groups[i].Inverse, left = cut(left, x.b.Rows)
	}
}

// listsOf returns how many lists a feature has in the batch.
func (x *listFiller) listsOf(feature int32) int {
	if g := x.group(feature); g != nil {
		return g.Slots
	}
	return x.b.Rows
}

// group returns the group whose slots a feature has; nil: it has a list for each row.
func (x *listFiller) group(feature int32) *Group {
	if x.groupOf == nil {
		return nil
	}
	if g := int(x.groupOf[feature]); g < len(x.groups) {
		return &x.groups[g]
	}
	if x.partial && !x.l.plan.Expands(feature) {
		return &x.alone
	}
	return nil
}

// fillPresence fills the bitmaps of j's features.
func (x *listFiller) fillPresence(j *Jagged) {
	clear(j.Present)
	left := j.Present
	for _, f := range j.Features {
		var bits []uint64
		bits, left = cut(left, vector.BitmapWords(x.listsOf(f)))
		x.putPresence(bits, x.group(f), f)
	}
}

// cut splits s after n elements.
func cut[T any](s []T, n int) (head, tail []T) { return s[:n:n], s[n:] }

// spans returns the spans of slots of a group.
func (x *listFiller) spans(g *Group) []slotSpan { return x.b.maker.selector.spans[g.from:g.to] }

// column returns the column of a feature in the stripe of a span.
func (x *listFiller) column(s slotSpan, feature int32) *vector.Column {
	return x.b.pieces[s.piece].Column(feature)
}

// placeLists fills the lengths, the offsets or starts, First and FirstValue of j. It appends the copies of values that
// partial duplicates need, and returns the number of values.
func (x *listFiller) placeLists(j *Jagged) (n int, err error) {
	j.First[0], j.FirstValue[0] = 0, 0
	for k, f := range j.Features {
		if x.groupOf != nil {
			j.Groups[k] = x.groupOf[f]
		}
		j.First[k+1] = j.First[k] + int32(x.listsOf(f))
	}
	if !x.partial {
		j.Offsets[0] = 0
	}
	for k, f := range j.Features {
		from, to := j.First[k], j.First[k+1]
		lengths := j.Lengths[from:to]
		var ok bool
		switch g := x.group(f); {
		case !x.partial:
			n, ok = x.placeFeatureLists(j.Offsets[1+from:1+to], lengths, g, f, n)
		case g != nil:
			n, ok = x.placeFeature(j.Starts[from:to], lengths, g, f, n)
		default:
			starts := j.Starts[from:to]
			n, ok = fillRanges(lengths, starts, x.b, f, n)
			for i, length := range lengths {
				starts[i] -= length
			}
		}
		if !ok && k > 0 { // they count together
			return 0, fmt.Errorf("the lists of %d features of %d rows, up to %q, have more than %d values: the batch "+
				"size, %d, is too large", k+1, x.b.Rows, x.l.plan.Features[f].Name, vector.MaxElements,
				x.l.plan.BatchSize)
		}
		if !ok {
			return 0, tooLarge(x.b, x.l, f)
		}
		j.FirstValue[k+1] = int32(n)
	}
	if x.l.presence {
		x.fillPresence(j)
	}
	if x.l.rowValues {
		x.countRowValues(j)
	}
	return n, nil
}

// countRowValues fills j's RowValues, after countSlotRows.
func (x *listFiller) countRowValues(j *Jagged) {
	for k, f := range j.Features {
		g := x.group(f)
		if g == nil {
			j.RowValues[k] = int64(j.FirstValue[k+1] - j.FirstValue[k])
			continue
		}
		n := int64(0)
		for i, length := range j.Lengths[j.First[k]:j.First[k+1]] {
			n += int64(length) * int64(g.slotRows[i])
		}
		j.RowValues[k] = n
	}
}

// countSlotRows sets Group.slotRows.
func (x *listFiller) countSlotRows() {
	slots := 0
	for i := range x.groups {
		slots += x.groups[i].Slots
	}
	x.slotRows = vector.Resize(x.slotRows, slots)
	clear(x.slotRows)
	left := x.slotRows
	for i := range x.groups {
		g := &x.groups[i]
		g.slotRows, left = cut(left, g.Slots)
		for _, s := range g.Inverse {
			g.slotRows[s]++
		}
	}
}

// placeFeatureLists fills the lengths and ends of a feature's lists, whose values start at n. g nil: a list for each
// row. It returns the last end, and false if that does not fit an int32.
func (x *listFiller) placeFeatureLists(ends, lengths []int32, g *Group, feature int32, n int) (int, bool) {
	if g == nil {
		return fillRanges(lengths, ends, x.b, feature, n)
	}
	x.putLengths(lengths, g, feature)
	copy(ends, lengths)
	return expand.Accumulate(ends, n)
}

// sources returns the number of sources of a group's slots or, without a group, of all rows: see source.
func (x *listFiller) sources(g *Group) int {
	if g == nil {
		return len(x.b.pieces)
	}
	return g.to - g.from
}

// source returns the i-th source of a feature's values: rows [lo, hi) of a column, nil if they are null. The sources
// together have one row for each slot of the group or, without a group, for each row of the batch. Borrowed until the
// next call.
func (x *listFiller) source(g *Group, i int, feature int32) (c *vector.Column, lo, hi int) {
	if g == nil {
		p := &x.b.pieces[i]
		return p.Column(feature), p.Lo, p.Hi
	}
	s := x.spans(g)[i]
	c, lo, hi = x.column(s, feature), int(s.lo), int(s.hi)
	switch {
	case c == nil:
	case s.listed: // a view whose rows are the listed slots
		x.view, x.viewOf = *c, nil
		x.view.Inverse = x.b.maker.selector.listed[lo:hi]
		x.view.Rows, x.view.Monotone, x.view.InverseBorrowed = hi-lo, false, true
		return &x.view, 0, hi - lo
	case c.Inverse != nil: // a view whose rows are the slots
		if x.viewOf != c {
			x.view, x.viewOf = *c, c
			x.view.Rows, x.view.Inverse = c.Slots, nil
		}
		return &x.view, lo, hi
	}
	return c, lo, hi
}

// some reports whether is returns true for a feature's column, nil if it is missing, in any source.
func (x *listFiller) some(g *Group, feature int32, is func(*vector.Column) bool) bool {
	for i := range x.sources(g) {
		if c, _, _ := x.source(g, i, feature); is(c) {
			return true
		}
	}
	return false
}

// putLengths writes the lengths of a feature's slots or, without a group, rows.
func (x *listFiller) putLengths(dst []int32, g *Group, feature int32) {
	for i := range x.sources(g) {
		c, lo, hi := x.source(g, i, feature)
		if c != nil {
			expand.PutLengths(dst, c, lo, hi)
		} else {
			clear(dst[:hi-lo])
		}
		dst = dst[hi-lo:]
	}
}

// putPresence sets the bits of a feature's slots or, without a group, rows that are not null. dst was cleared.
func (x *listFiller) putPresence(dst vector.Bitmap, g *Group, feature int32) {
	at := 0
	for i := range x.sources(g) {
		c, lo, hi := x.source(g, i, feature)
		if c != nil {
			expand.PutPresence(dst, at, c, lo, hi)
		}
		at += hi - lo
	}
}

// placeFeature fills the starts and lengths of a feature's slots, whose values start at n, and appends the copies of
// values that they need. It returns the end of the values, and false if that does not fit an int32.
func (x *listFiller) placeFeature(starts, lengths []int32, g *Group, feature int32, n int) (int, bool) {
	for _, s := range x.spans(g) {
		c := x.column(s, feature)
		if !s.listed {
			slots := int(s.hi - s.lo)
			if n = x.placeSlots(starts[:slots], lengths[:slots], c, int(s.lo), n); n > vector.MaxElements {
				return 0, false
			}
			starts, lengths = starts[slots:], lengths[slots:]
			continue
		}
		for left := x.b.maker.selector.listed[s.lo:s.hi]; len(left) > 0; {
			slots := 1 // consecutive
			for slots < len(left) && left[slots] == left[0]+int32(slots) {
				slots++
			}
			if n = x.placeSlots(starts[:slots], lengths[:slots], c, int(left[0]), n); n > vector.MaxElements {
				return 0, false
			}
			starts, lengths, left = starts[slots:], lengths[slots:], left[slots:]
		}
	}
	return n, true
}

// placeSlots is placeFeature for consecutive slots of a column from lo on; c nil: they are null.
func (x *listFiller) placeSlots(starts, lengths []int32, c *vector.Column, lo, n int) int {
	hi := lo + len(starts)
	switch {
	case c == nil:
		clear(lengths)
		for i := range starts {
			starts[i] = int32(n)
		}
	case c.Lengths == nil:
		expand.PutSlotLengths(lengths, c, lo, hi)
		o := c.Offsets[lo : hi+1]
		by := int32(n) - o[0]
		for i := range starts {
			starts[i] = o[i] + by
		}
		n = x.copy(c, o[0], o[len(starts)], n)
	default:
		copy(lengths, c.Lengths[lo:hi])
		n = x.placeRuns(starts, lengths, c, lo, n)
	}
	return n
}

// placeRuns is placeSlots for partial duplicates. Consecutive slots whose values overlap or touch are a run, whose
// values are copied once. So it never copies more values than the lists have in sum.
//
//	column   . . a b c d e . . f g h .
//	slot 0         [b c d e]
//	slot 1       [a b c]                   run 0: a b c d e
//	slot 2                     [f g h]     run 1: f g h
func (x *listFiller) placeRuns(starts, lengths []int32, c *vector.Column, lo, n int) int {
	first, from, to := 0, int32(0), int32(0) // of the run; empty: from == to
	end := func(slot int) {
		by := int32(n) - from
		for i := first; i < slot; i++ {
			if lengths[i] == 0 {
				starts[i] = int32(n)
			} else {
				starts[i] += by
			}
		}
		n = x.copy(c, from, to, n)
		first = slot
	}
	for i, length := range lengths {
		if length == 0 {
			continue
		}
		a := c.Offsets[lo+i]
		b := a + length
		starts[i] = a
		switch {
		case from == to:
			from, to = a, b
		case a <= to && from <= b:
			from, to = min(from, a), max(to, b)
		default:
			end(i)
			from, to = a, b
		}
	}
	end(len(lengths))
	return n
}

// copy appends a valueCopy to position n, and returns its end.
func (x *listFiller) copy(c *vector.Column, from, to int32, n int) int {
	if from == to {
		return n
	}
	x.copies = append(x.copies, valueCopy{column: c, from: from, to: to, at: n})
	return n + int(to-from)
}

// copyLists fills the values of j's lists.
func (x *listFiller) copyLists(j *Jagged, kind listKind) {
	of := x.kinds[kind]
	for i := range x.copies[of.from:of.to] {
		x.copies[of.from+i].put(j, kind)
	}
	begins := j.Offsets
	if x.partial {
		begins = j.Starts
	}
	for k, f := range j.Features {
		at, g := int(j.First[k]), x.group(f)
		if g != nil && x.partial {
			continue // copied by copies
		}
		for i := range x.sources(g) {
			c, lo, hi := x.source(g, i, f)
			if c != nil {
				putRows(j, kind, int(begins[at]), c, lo, hi, g == nil && expand.GoesPast(x.b.block.used, hi-lo))
			}
			at += hi - lo
		}
	}
}

// put copies the values of v.
func (v *valueCopy) put(j *Jagged, kind listKind) {
	c := v.column
	if kind == floatLists {
		copyFloats(j.FloatValues[v.at:], c.Floats, c.Doubles, v.from, v.to)
	} else {
		copy(j.Values[v.at:], c.Ints[v.from:v.to])
	}
	if kind == weightedLists {
		copyFloats(j.Weights[v.at:], c.ScoreFloats, c.ScoreDoubles, v.from, v.to)
	}
}

// copyFloats copies float32s, or float64s as float32: one of the two holds the values.
func copyFloats(dst, floats []float32, doubles []float64, from, to int32) {
	if len(doubles) == 0 {
		copy(dst, floats[from:to])
		return
	}
	for i, v := range doubles[from:to] {
		dst[i] = float32(v)
	}
}

// putRows copies the lists of rows [lo, hi) to position at of j's values. past: write past the CPU caches.
func putRows(j *Jagged, kind listKind, at int, c *vector.Column, lo, hi int, past bool) {
	if kind == floatLists {
		putFloats(j.FloatValues[at:], c.Floats, c.Doubles, c, lo, hi, past)
	} else {
		expand.PutLists(j.Values[at:], c.Ints, c, lo, hi, past)
	}
	if kind == weightedLists {
		putFloats(j.Weights[at:], c.ScoreFloats, c.ScoreDoubles, c, lo, hi, past)
	}
}
