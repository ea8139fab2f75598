package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/memory"
)

// A listKind says which Jagged of Tensors holds a feature.
type listKind uint8

const (
	sparseLists   listKind = 0
	weightedLists listKind = 1
	floatLists    listKind = 2
	listKinds              = 3
)

// A listMemory is the memory of a Jagged of Tensors.
type listMemory struct {
	groups      memory.Buffer[int32]
	lengths     memory.Buffer[int32]
	offsets     memory.Buffer[int32] // or starts
	values      memory.Buffer[int64]
	floatValues memory.Buffer[float32]
	weights     memory.Buffer[float32]
	present     memory.Buffer[uint64]
}

func (m *listMemory) buffers() []memory.AnyBuffer {
	return []memory.AnyBuffer{&m.groups, &m.lengths, &m.offsets, &m.values, &m.floatValues, &m.weights, &m.present}
}

// A valueCopy is values of a column that a partial feature's slots share, and where they go among the batch's.
type valueCopy struct {
	column   *vector.Column
	from, to int32
	at       int
}

// A listFiller fills the lists of one batch. It is scratch memory of the batch.
type listFiller struct {
	b       *Batch
	l       *batchLayout
	partial bool
	groups  []Group
	groupOf []int32 // by position in the plan, the position in groups; nil: no feature is in one
	alone   Group   // where partial: what the features in no group are as slots
	copies  []valueCopy

	view   vector.Column  // what source returns
	viewOf *vector.Column // what view has the slots of; nil: of nothing that is asked for again
}

// group returns the group that says which slots a feature has; nil: each row has its list.
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

// fill makes the lists of one kind, in m.
func (x *listFiller) fill(j *Jagged, kind listKind, m *listMemory) error {
	j.Groups, j.Dedup = nil, 0
	if x.groupOf != nil {
		j.Groups = m.groups.Resize(x.l.allocator, len(j.Features))
		for k, f := range j.Features {
			j.Groups[k] = x.groupOf[f]
			if !x.l.plan.Expands(f) {
				j.Dedup = k + 1
			}
		}
	}
	lists := 0
	j.First = append(j.First[:0], 0)
	for _, f := range j.Features {
		if g := x.group(f); g != nil {
			lists += g.Slots
		} else {
			lists += x.b.Rows
		}
		j.First = append(j.First, lists)
	}
	values, err := x.place(j, m)
	if err != nil {
		return err
	}
	x.copyValues(j, kind, m, values)
	j.Present = nil
	if x.l.presence {
		x.fillPresence(j, m)
	}
	clear(x.copies)
	return nil
}

// fillPresence makes the bitmaps of j's features.
func (x *listFiller) fillPresence(j *Jagged, m *listMemory) {
	words := 0
	for k := range j.Features {
		words += vector.BitmapWords(j.First[k+1] - j.First[k])
	}
	j.Present = m.present.Resize(x.l.allocator, words)
	clear(j.Present)
	left := j.Present
	for k, f := range j.Features {
		var bits []uint64
		bits, left = cut(left, vector.BitmapWords(j.First[k+1]-j.First[k]))
		x.putPresence(bits, x.group(f), f)
	}
}

// cut returns the first n of s, and the others.
func cut[T any](s []T, n int) (head, tail []T) { return s[:n:n], s[n:] }

func (x *listFiller) spans(g *Group) []slotSpan { return x.b.maker.selector.spans[g.from:g.to] }

// column returns the column that a span is of.
func (x *listFiller) column(s slotSpan, feature int32) *vector.Column {
	return x.b.pieces[s.piece].Column(feature)
}

// place makes the lengths, and the offsets or starts, of j's lists, appends the copies of values that partial ones
// need, and returns how many values there are.
func (x *listFiller) place(j *Jagged, m *listMemory) (n int, err error) {
	lists := j.First[len(j.Features)]
	j.Lengths = m.lengths.Resize(x.l.allocator, lists)
	j.Offsets, j.Starts = nil, nil
	if x.partial {
		j.Starts = m.offsets.Resize(x.l.allocator, lists)
	} else {
		j.Offsets = m.offsets.Resize(x.l.allocator, lists+1)
		j.Offsets[0] = 0
	}
	x.copies = x.copies[:0]
	for k, f := range j.Features {
		from, to := j.First[k], j.First[k+1]
		lengths := j.Lengths[from:to]
		var ok bool
		switch g := x.group(f); {
		case !x.partial:
			n, ok = x.placeLists(j.Offsets[1+from:1+to], lengths, g, f, n)
		case g != nil:
			n, ok = x.placeFeature(j.Starts[from:to], lengths, g, f, n)
		default:
			starts := j.Starts[from:to]
			n, ok = fillRanges(lengths, starts, x.b, f, n)
			for i, length := range lengths {
				starts[i] -= length
			}
		}
		if !ok {
			return 0, tooLarge(x.b, x.l, f)
		}
	}
	return n, nil
}

// placeLists fills the lengths of a feature's lists, the values of which begin at n, and where each ends. It returns
// the last end; false: it is past what an int32 holds. nil: a list a row.
func (x *listFiller) placeLists(ends, lengths []int32, g *Group, feature int32, n int) (int, bool) {
	if g == nil {
		return fillRanges(lengths, ends, x.b, feature, n)
	}
	x.putLengths(lengths, g, feature)
	copy(ends, lengths)
	return expand.Accumulate(ends, n)
}

// sources returns how many stretches of rows a group's slots come from, without a group all rows: see source.
func (x *listFiller) sources(g *Group) int {
	if g == nil {
		return len(x.b.pieces)
	}
	return g.to - g.from
}

// source returns the i-th stretch of a feature's values: rows [lo, hi) of a column, nil where they are null. They are
// as many as the slots, or the rows, that they fill, one stretch after the other. Borrowed until the next call.
func (x *listFiller) source(g *Group, i int, feature int32) (c *vector.Column, lo, hi int) {
	if g == nil {
		p := &x.b.pieces[i]
		return p.Column(feature), p.Lo, p.Hi
	}
	s := x.spans(g)[i]
	c, lo, hi = x.column(s, feature), int(s.lo), int(s.hi)
	switch {
	case c == nil:
	case s.listed: // the slots that the span lists, as rows
		x.view, x.viewOf = *c, nil
		x.view.Inverse = x.b.maker.selector.listed[lo:hi]
		x.view.Rows, x.view.Monotone, x.view.InverseBorrowed = hi-lo, false, true
		return &x.view, 0, hi - lo
	case c.Inverse != nil: // its slots as rows
		if x.viewOf != c {
			x.view, x.viewOf = *c, c
			x.view.Rows, x.view.Inverse = c.Slots, nil
		}
		return &x.view, lo, hi
	}
	return c, lo, hi
}

// some reports whether a column of a feature, nil where it is missing, is such in any stripe of the batch.
func (x *listFiller) some(g *Group, feature int32, is func(*vector.Column) bool) bool {
	for i := range x.sources(g) {
		if c, _, _ := x.source(g, i, feature); is(c) {
			return true
		}
	}
	return false
}

// putLengths writes the lengths of a feature's slots, without a group those of its rows.
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

// putPresence sets the bits of a feature's slots, without a group of its rows, that are not null; dst was cleared.
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

// placeFeature fills the starts and lengths of a feature's slots, whose values begin at n, and appends the copies of
// values that they need. It returns where they end; false: past what an int32 holds.
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
			slots := 1 // next to each other
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

// placeSlots is placeFeature of slots of one column from lo on; nil: null.
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

// placeRuns positions partial slots from lo on. Slots one after the other whose values overlap or touch, at either end,
// are a run, whose values are copied once; so never more is copied than the lists are long in sum.
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

// copy appends a copy of values to position n on, and returns where it ends.
func (x *listFiller) copy(c *vector.Column, from, to int32, n int) int {
	if from == to {
		return n
	}
	x.copies = append(x.copies, valueCopy{column: c, from: from, to: to, at: n})
	return n + int(to-from)
}

// copyValues makes the values of j's lists, total in number.
func (x *listFiller) copyValues(j *Jagged, kind listKind, m *listMemory, total int) {
	j.Values, j.FloatValues, j.Weights = nil, nil, nil
	if kind == floatLists {
		j.FloatValues = m.floatValues.Resize(x.l.allocator, total)
	} else {
		j.Values = m.values.Resize(x.l.allocator, total)
	}
	if kind == weightedLists {
		j.Weights = m.weights.Resize(x.l.allocator, total)
	}
	for i := range x.copies {
		x.copies[i].put(j, kind)
	}
	begins := j.Offsets
	if x.partial {
		begins = j.Starts
	}
	bytes := 8*len(j.Values) + 4*len(j.FloatValues)
	for k, f := range j.Features {
		at, g := j.First[k], x.group(f)
		if g != nil && x.partial {
			continue // copies has them
		}
		for i := range x.sources(g) {
			c, lo, hi := x.source(g, i, f)
			if c != nil {
				putRows(j, kind, int(begins[at]), c, lo, hi, g == nil && expand.GoesPast(bytes, hi-lo))
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

// putRows copies the lists of rows [lo, hi) one after the other to position at of j's values; past: past the caches.
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
