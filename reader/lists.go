package reader

import (
	"github.com/dsistore/dsistore/format/vector"
)

// A listKind says which Jagged of Tensors, and of a Group, holds a feature.
type listKind uint8

const (
	sparseLists   listKind = 0
	weightedLists listKind = 1
	floatLists    listKind = 2
	listKinds              = 3
	noList        listKind = 255
)

// A listMemory is the memory of a Jagged of Tensors, or of those of one kind of all groups, which follow one another
// in it.
type listMemory struct {
	lengths     buffer[int32]
	offsets     buffer[int32] // or starts
	values      buffer[int64]
	floatValues buffer[float32]
	weights     buffer[float32]
	present     buffer[uint64]
}

func (m *listMemory) buffers() []anyBuffer {
	return []anyBuffer{&m.lengths, &m.offsets, &m.values, &m.floatValues, &m.weights, &m.present}
}

// A valueCopy is values of a column that a windowed feature's slots share, and where they go among the feature's group's.
type valueCopy struct {
	column   *vector.Column
	from, to int32
	at       int
}

// A listFiller fills the lists of groups of one batch. It is scratch memory of the batch.
type listFiller struct {
	b        *Batch
	l        *batchLayout
	windowed bool
	copies   []valueCopy
	ends     []int // values of each group
	copied   []int // of copies, those up to each group's last
}

// fill makes the Jaggeds of one kind, of all groups, in m.
func (x *listFiller) fill(groups []Group, kind listKind, m *listMemory) error {
	lists, offsets, words := 0, 0, 0
	for i := range groups {
		g := &groups[i]
		features := len(g.list(kind).Features)
		lists += features * g.Slots
		offsets += features*g.Slots + 1
		words += features * vector.BitmapWords(g.Slots)
	}
	lengthsLeft := m.lengths.resize(x.l.allocator, lists)
	offsetsLeft := m.offsets.resize(x.l.allocator, offsets)
	total := 0
	x.copies, x.ends, x.copied = x.copies[:0], x.ends[:0], x.copied[:0]
	for i := range groups {
		g := &groups[i]
		j := g.list(kind)
		n := len(j.Features) * g.Slots
		j.Lengths, lengthsLeft = cut(lengthsLeft, n)
		j.Offsets, j.Starts, j.Present = nil, nil, nil
		var values int
		var err error
		if x.windowed {
			j.Starts, offsetsLeft = cut(offsetsLeft, n)
			values, err = x.placeWindows(g, j)
		} else {
			j.Offsets, offsetsLeft = cut(offsetsLeft, n+1)
			values, err = x.placeLists(g, j)
		}
		if err != nil {
			return err
		}
		total += values
		x.ends = append(x.ends, values)
		x.copied = append(x.copied, len(x.copies))
	}
	x.copyValues(groups, kind, m, total)
	if x.l.presence {
		left := m.present.resize(x.l.allocator, words)
		clear(left)
		for i := range groups {
			g := &groups[i]
			j := g.list(kind)
			j.Present, left = cut(left, len(j.Features)*vector.BitmapWords(g.Slots))
			for k, f := range j.Features {
				x.putPresence(j.PresentOf(k), g, f)
			}
		}
	}
	clear(x.copies)
	return nil
}

// cut returns the first n of s, and the others.
func cut[T any](s []T, n int) (head, tail []T) { return s[:n:n], s[n:] }

func (x *listFiller) spans(g *Group) []slotSpan { return x.b.maker.picker.spans[g.from:g.to] }

// column returns the column that a span is of.
func (x *listFiller) column(s slotSpan, feature int32) *vector.Column {
	return x.b.pieces[s.piece].column(feature)
}

// placeLists fills the lengths and offsets of a group's lists, and returns how many values they have.
func (x *listFiller) placeLists(g *Group, j *Jagged) (n int, err error) {
	j.Offsets[0] = 0
	for k, f := range j.Features {
		lengths := j.Lengths[k*g.Slots : (k+1)*g.Slots]
		x.putLengths(lengths, g, f)
		offsets := j.Offsets[1+k*g.Slots : 1+(k+1)*g.Slots]
		copy(offsets, lengths)
		var ok bool
		if n, ok = accumulate(offsets, n); !ok {
			return 0, tooLarge(x.b, x.l, f)
		}
	}
	return n, nil
}

// putLengths writes the lengths of a feature's slots.
func (x *listFiller) putLengths(dst []int32, g *Group, feature int32) {
	for _, s := range x.spans(g) {
		n := s.hi - s.lo
		switch c := x.column(s, feature); {
		case c == nil:
			clear(dst[:n])
		case s.listed:
			v := x.listed(s, c)
			putLengths(dst, &v, 0, v.Rows)
		default:
			putSlotLengths(dst, c, int(s.lo), int(s.hi))
		}
		dst = dst[n:]
	}
}

// putPresence sets the bits of a feature's slots that are not null; dst was cleared.
func (x *listFiller) putPresence(dst vector.Bitmap, g *Group, feature int32) {
	at := 0
	for _, s := range x.spans(g) {
		switch c := x.column(s, feature); {
		case c == nil:
		case s.listed:
			v := x.listed(s, c)
			putPresence(dst, at, &v, 0, v.Rows)
		default:
			putSlotPresence(dst, at, c, int(s.lo), int(s.hi))
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

// placeWindows fills the lengths and starts of a group's lists, appends the copies of values that they need, and returns
// how many values that is.
func (x *listFiller) placeWindows(g *Group, j *Jagged) (n int, err error) {
	for k, f := range j.Features {
		var ok bool
		n, ok = x.placeFeature(j.Starts[k*g.Slots:(k+1)*g.Slots], j.Lengths[k*g.Slots:(k+1)*g.Slots], g, f, n)
		if !ok {
			return 0, tooLarge(x.b, x.l, f)
		}
	}
	return n, nil
}

// placeFeature is placeWindows of one feature whose values begin at n; false: they end past what an int32 holds.
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
		putSlotLengths(lengths, c, lo, hi)
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

// placeRuns places windowed slots from lo on. Slots one after the other whose values overlap or touch, at either end, are a
// run, whose values are copied once; so never more is copied than the lists are long in sum.
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

// copy appends a copy of values to place n on, and returns where it ends.
func (x *listFiller) copy(c *vector.Column, from, to int32, n int) int {
	if from == to {
		return n
	}
	x.copies = append(x.copies, valueCopy{column: c, from: from, to: to, at: n})
	return n + int(to-from)
}

// copyValues makes the values of all groups, total in number.
func (x *listFiller) copyValues(groups []Group, kind listKind, m *listMemory, total int) {
	var values []int64
	var floats, weights []float32
	if kind == floatLists {
		floats = m.floatValues.resize(x.l.allocator, total)
	} else {
		values = m.values.resize(x.l.allocator, total)
	}
	if kind == weightedLists {
		weights = m.weights.resize(x.l.allocator, total)
	}
	for i := range groups {
		g := &groups[i]
		j := g.list(kind)
		n := x.ends[i]
		j.Values, j.FloatValues, j.Weights = nil, nil, nil
		if kind == floatLists {
			j.FloatValues, floats = cut(floats, n)
		} else {
			j.Values, values = cut(values, n)
		}
		if kind == weightedLists {
			j.Weights, weights = cut(weights, n)
		}
		if x.windowed {
			first := 0
			if i > 0 {
				first = x.copied[i-1]
			}
			for _, v := range x.copies[first:x.copied[i]] {
				v.put(j, kind)
			}
			continue
		}
		for k, f := range j.Features {
			at := k * g.Slots
			for _, s := range x.spans(g) {
				switch c := x.column(s, f); {
				case c == nil:
				case s.listed:
					v := x.listed(s, c)
					putListed(j, kind, int(j.Offsets[at]), &v)
				default:
					putSpan(j, kind, int(j.Offsets[at]), c, int(s.lo), int(s.hi))
				}
				at += int(s.hi - s.lo)
			}
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

// putSpan copies the lists of slots [lo, hi) one after the other to place at of j's values.
func putSpan(j *Jagged, kind listKind, at int, c *vector.Column, lo, hi int) {
	if kind == floatLists {
		putSlotFloats(j.FloatValues[at:], c.Floats, c.Doubles, c, lo, hi)
	} else {
		putSlotLists(j.Values[at:], c.Ints, c, lo, hi)
	}
	if kind == weightedLists {
		putSlotFloats(j.Weights[at:], c.ScoreFloats, c.ScoreDoubles, c, lo, hi)
	}
}

// putListed copies the lists of c's rows one after the other to place at of j's values.
func putListed(j *Jagged, kind listKind, at int, c *vector.Column) {
	if kind == floatLists {
		putFloats(j.FloatValues[at:], c.Floats, c.Doubles, c, 0, c.Rows, false)
	} else {
		putLists(j.Values[at:], c.Ints, c, 0, c.Rows, false)
	}
	if kind == weightedLists {
		putFloats(j.Weights[at:], c.ScoreFloats, c.ScoreDoubles, c, 0, c.Rows, false)
	}
}

// putSlotFloats is putFloats for slots.
func putSlotFloats(dst, floats []float32, doubles []float64, c *vector.Column, lo, hi int) {
	switch {
	case lo == hi:
	case c.Lengths == nil:
		copyFloats(dst, floats, doubles, c.Offsets[lo], c.Offsets[hi])
	case len(doubles) == 0:
		putSlotLists(dst, floats, c, lo, hi)
	default:
		for s := lo; s < hi; s++ {
			from, to := c.SlotRange(s)
			copyFloats(dst, floats, doubles, int32(from), int32(to))
			dst = dst[to-from:]
		}
	}
}
