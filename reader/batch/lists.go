package batch

import (
	"slices"

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

func (x *listFiller) spans(g *Group) []slotSpan { return x.b.maker.picker.spans[g.from:g.to] }

// Column returns the column that a span is of.
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

// some reports whether a column of a feature, nil where it is missing, is such in any stripe of the batch.
func (x *listFiller) some(g *Group, feature int32, is func(*vector.Column) bool) bool {
	if g == nil {
		return slices.ContainsFunc(x.b.pieces, func(p Piece) bool { return is(p.Column(feature)) })
	}
	return slices.ContainsFunc(x.spans(g), func(s slotSpan) bool { return is(x.column(s, feature)) })
}

// putLengths writes the lengths of a feature's slots, without a group those of its rows.
func (x *listFiller) putLengths(dst []int32, g *Group, feature int32) {
	if g == nil {
		for i := range x.b.pieces {
			p := &x.b.pieces[i]
			if c := p.Column(feature); c != nil {
				expand.PutLengths(dst[p.At:], c, p.Lo, p.Hi)
			} else {
				clear(dst[p.At : p.At+p.Hi-p.Lo])
			}
		}
		return
	}
	for _, s := range x.spans(g) {
		n := s.hi - s.lo
		switch c := x.column(s, feature); {
		case c == nil:
			clear(dst[:n])
		case s.listed:
			v := x.listed(s, c)
			expand.PutLengths(dst, &v, 0, v.Rows)
		default:
			expand.PutSlotLengths(dst, c, int(s.lo), int(s.hi))
		}
		dst = dst[n:]
	}
}

// putPresence sets the bits of a feature's slots, without a group of its rows, that are not null; dst was cleared.
func (x *listFiller) putPresence(dst vector.Bitmap, g *Group, feature int32) {
	if g == nil {
		fillPresence(dst, x.b, feature)
		return
	}
	at := 0
	for _, s := range x.spans(g) {
		switch c := x.column(s, feature); {
		case c == nil:
		case s.listed:
			v := x.listed(s, c)
			expand.PutPresence(dst, at, &v, 0, v.Rows)
		default:
			expand.PutSlotPresence(dst, at, c, int(s.lo), int(s.hi))
		}
		at += int(s.hi - s.lo)
	}
}

// listed returns c with the slots that a span lists as rows. Its slices are borrowed.
func (x *listFiller) listed(s slotSpan, c *vector.Column) vector.Column {
	v := *c
	v.Inverse = x.b.maker.picker.listed[s.lo:s.hi]
	v.Rows, v.Monotone, v.InverseBorrowed = len(v.Inverse), false, true
	return v
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
		for left := x.b.maker.picker.listed[s.lo:s.hi]; len(left) > 0; {
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
		at := j.First[k]
		g := x.group(f)
		if g == nil {
			for i := range x.b.pieces {
				p := &x.b.pieces[i]
				if c := p.Column(f); c != nil {
					putRows(j, kind, int(begins[at+p.At]), c, p.Lo, p.Hi, expand.GoesPast(bytes, p.Hi-p.Lo))
				}
			}
			continue
		}
		if x.partial {
			continue // copies has them
		}
		for _, s := range x.spans(g) {
			switch c := x.column(s, f); {
			case c == nil:
			case s.listed:
				v := x.listed(s, c)
				putRows(j, kind, int(begins[at]), &v, 0, v.Rows, false)
			default:
				putSpan(j, kind, int(begins[at]), c, int(s.lo), int(s.hi))
			}
			at += int(s.hi - s.lo)
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

// putSpan copies the lists of slots [lo, hi) one after the other to position at of j's values.
func putSpan(j *Jagged, kind listKind, at int, c *vector.Column, lo, hi int) {
	if kind == floatLists {
		putSlotFloats(j.FloatValues[at:], c.Floats, c.Doubles, c, lo, hi)
	} else {
		expand.PutSlotLists(j.Values[at:], c.Ints, c, lo, hi)
	}
	if kind == weightedLists {
		putSlotFloats(j.Weights[at:], c.ScoreFloats, c.ScoreDoubles, c, lo, hi)
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

// putSlotFloats is putFloats for slots.
func putSlotFloats(dst, floats []float32, doubles []float64, c *vector.Column, lo, hi int) {
	switch {
	case lo == hi:
	case c.Lengths == nil:
		copyFloats(dst, floats, doubles, c.Offsets[lo], c.Offsets[hi])
	case len(doubles) == 0:
		expand.PutSlotLists(dst, floats, c, lo, hi)
	default:
		for s := lo; s < hi; s++ {
			from, to := c.SlotRange(s)
			copyFloats(dst, floats, doubles, int32(from), int32(to))
			dst = dst[to-from:]
		}
	}
}
