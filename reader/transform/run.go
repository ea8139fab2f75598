package transform

import (
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
)

// A State has the result of transforms of a column, and the memory for it. A transform that keeps the size of values
// overwrites the memory of its input; others write to ints, floats etc.
//
// The result has the input's inverse, which may be that of a group. No transform changes it.
type State struct {
	column vector.Column

	ints         []int64
	floats       []float32
	doubles      []float64
	scoreFloats  []float32
	scoreDoubles []float64
	offsets      []int32
	// Results of Fill on lists. A chain has one Fill that finds nulls at most.
	filledInts    []int64
	filledFloats  []float32
	filledDoubles []float64

	digest  xxhash.Digest
	null    vector.Bitmap // one slot, null
	noRange [2]int32
}

// Run returns the result of p on c, whose values it may overwrite. Borrowed until the next call.
func (m *State) Run(p *Program, c *vector.Column) (*vector.Column, error) {
	m.column = *c
	m.column.InverseBorrowed = m.column.Inverse != nil
	return &m.column, m.run(p)
}

// Null returns the result of p, which fills null, on null in every row: one slot for all rows, with the inverse zeros.
// Borrowed until the next call.
func (m *State) Null(p *Program, zeros []int32) (*vector.Column, error) {
	m.null = append(m.null[:0], 0)
	m.column = vector.Column{
		Type: p.in, Rows: len(zeros), Slots: 1, Inverse: zeros, Monotone: true, InverseBorrowed: true, Present: m.null,
	}
	c := &m.column
	if p.in.IsList() {
		m.noRange = [2]int32{}
		c.Offsets = m.noRange[:]
	}
	n := p.in.Width()
	switch p.in.Physical() {
	case vector.Int64Values:
		m.ints = vector.Resize(m.ints, n)
		c.Ints = m.ints
		clear(c.Ints)
	case vector.Float32Values:
		m.floats = vector.Resize(m.floats, n)
		c.Floats = m.floats
		clear(c.Floats)
	case vector.Float64Values:
		m.doubles = vector.Resize(m.doubles, n)
		c.Doubles = m.doubles
		clear(c.Doubles)
	}
	return c, m.run(p)
}

// SizeBytes returns the approximate memory of the result.
func (m *State) SizeBytes() int { return m.column.SizeBytes() }

func (m *State) run(x *Program) error {
	c := &m.column
	for i := range x.steps {
		s := &x.steps[i]
		switch {
		case s.Scores:
			m.scores(s)
		case s.rows:
			if err := m.rows(s); err != nil {
				return err
			}
		default:
			m.values(s)
		}
		c.Type = s.out
	}
	if c.Present != nil && !c.Type.IsList() {
		m.zeroNulls()
	}
	return nil
}

// zeroNulls sets the values of null slots to zero again.
func (m *State) zeroNulls() {
	c := &m.column
	switch c.Type.Physical() {
	case vector.Int64Values:
		fillNulls(c.Ints, c, 0)
	case vector.Float32Values:
		fillNulls(c.Floats, c, 0)
	case vector.Float64Values:
		fillNulls(c.Doubles, c, 0)
	}
}

// fillNulls sets the values of null slots, which are of fixed width.
func fillNulls[T any](values []T, c *vector.Column, v T) {
	width := c.Type.Width()
	for w, word := range c.Present {
		for null := ^word; null != 0; null &= null - 1 {
			s := w<<6 + bits.TrailingZeros64(null)
			if s >= c.Slots {
				return
			}
			slot := values[s*width : (s+1)*width]
			for i := range slot {
				slot[i] = v
			}
		}
	}
}

// rows does a step that sees lists and nulls.
func (m *State) rows(s *step) error {
	c := &m.column
	switch s.Op {
	case First:
		m.first(int32(s.N))
	case Hash:
		m.hashStrings(s)
	case Fill:
		return m.fill(s)
	case List:
		m.offsets = vector.Resize(m.offsets, c.Slots+1)
		c.Offsets = m.offsets
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = listsOfOne(c.Offsets, c.Ints, c.Present)
		case vector.Float32Values:
			c.Floats = listsOfOne(c.Offsets, c.Floats, c.Present)
		case vector.Float64Values:
			c.Doubles = listsOfOne(c.Offsets, c.Doubles, c.Present)
		}
	}
	return nil
}

// first shortens every list to n values. Partial duplicates only end earlier; else the values that are kept move
// together.
func (m *State) first(n int32) {
	c := &m.column
	if c.Lengths != nil {
		for i, k := range c.Lengths {
			c.Lengths[i] = min(k, n)
		}
		return
	}
	if !longerThan(c.Offsets, n) {
		return
	}
	c.Ints = keepFirst(c.Ints, c.Offsets, n)
	c.Floats = keepFirst(c.Floats, c.Offsets, n)
	c.Doubles = keepFirst(c.Doubles, c.Offsets, n)
	c.ScoreFloats = keepFirst(c.ScoreFloats, c.Offsets, n)
	c.ScoreDoubles = keepFirst(c.ScoreDoubles, c.Offsets, n)
	at, from := int32(0), c.Offsets[0]
	for i, to := range c.Offsets[1:] {
		at += min(to-from, n)
		from = to
		c.Offsets[i+1] = at
	}
}

// longerThan reports whether one of the lists has more than n values.
func longerThan(offsets []int32, n int32) bool {
	from := offsets[0]
	for _, to := range offsets[1:] {
		if to-from > n {
			return true
		}
		from = to
	}
	return false
}

// keepFirst moves the first n values of each list together.
func keepFirst[T any](values []T, offsets []int32, n int32) []T {
	if len(values) == 0 {
		return values
	}
	at, from := int32(0), offsets[0]
	for _, to := range offsets[1:] {
		k := min(to-from, n)
		if at != from {
			copy(values[at:at+k], values[from:from+k])
		}
		at += k
		from = to
	}
	return values[:at]
}

// listsOfOne writes the offsets of lists of one value, none for null, and moves the values together.
func listsOfOne[T any](offsets []int32, values []T, present vector.Bitmap) []T {
	offsets[0] = 0
	if present == nil {
		for i := range values {
			offsets[i+1] = int32(i + 1)
		}
		return values
	}
	n := 0
	for i, v := range values {
		values[n] = v
		n += int(present[i>>6] >> (uint(i) & 63) & 1)
		offsets[i+1] = int32(n)
	}
	return values[:n]
}

// fill makes null slots present.
func (m *State) fill(s *step) error {
	c := &m.column
	if c.Present == nil {
		return nil
	}
	k := len(s.Values)
	switch {
	case k == 0:
	case !c.Type.IsList():
		switch c.Type.Physical() {
		case vector.Int64Values:
			fillNulls(c.Ints, c, s.ints[0])
		case vector.Float32Values:
			fillNulls(c.Floats, c, s.singles[0])
		case vector.Float64Values:
			fillNulls(c.Doubles, c, s.doubles[0])
		}
	default:
		nulls := c.Slots - c.Present.Count()
		n := c.Elements() + k
		if c.Lengths == nil {
			n += k * (nulls - 1)
		}
		if n > vector.MaxElements {
			return fmt.Errorf("%d null lists filled with %d values are more than %d values in a stripe", nulls, k,
				vector.MaxElements)
		}
		switch c.Type.Physical() {
		case vector.Int64Values:
			m.filledInts = vector.Resize(m.filledInts, n)
			fillLists(m.filledInts, c, c.Ints, s.ints)
			c.Ints = m.filledInts
		case vector.Float32Values:
			m.filledFloats = vector.Resize(m.filledFloats, n)
			fillLists(m.filledFloats, c, c.Floats, s.singles)
			c.Floats = m.filledFloats
		case vector.Float64Values:
			m.filledDoubles = vector.Resize(m.filledDoubles, n)
			fillLists(m.filledDoubles, c, c.Doubles, s.doubles)
			c.Doubles = m.filledDoubles
		}
	}
	c.Present = nil
	return nil
}

// fillLists writes the values of c to dst with the list fill for null, once for partial duplicates. It changes c's
// ranges to those in dst.
func fillLists[T any](dst []T, c *vector.Column, values, fill []T) {
	if c.Lengths != nil {
		n := copy(dst, values)
		copy(dst[n:], fill)
		for s := range c.Lengths {
			if !c.Present.Get(s) {
				c.Offsets[s], c.Lengths[s] = int32(n), int32(len(fill))
			}
		}
		return
	}
	at, from := 0, c.Offsets[0]
	for s := range c.Slots {
		to := c.Offsets[s+1]
		if c.Present.Get(s) {
			at += copy(dst[at:], values[from:to])
		} else {
			at += copy(dst[at:], fill)
		}
		from = to
		c.Offsets[s+1] = int32(at)
	}
}

// hashStrings makes a number of each string.
func (m *State) hashStrings(s *step) {
	c := &m.column
	m.ints = vector.Resize(m.ints, c.Slots)
	for i := range m.ints {
		lo, hi := c.SlotRange(i)
		text := c.Data[lo:hi]
		if s.Seed == 0 {
			m.ints[i] = int64(remainder(xxhash.Sum64(text), s.N, s.reciprocal))
			continue
		}
		m.digest.ResetWithSeed(s.Seed)
		m.digest.Write(text)
		m.ints[i] = int64(remainder(m.digest.Sum64(), s.N, s.reciprocal))
	}
	c.Ints, c.Data, c.Offsets, c.Lengths = m.ints, nil, nil, nil
}

// scores does a step over the scores.
func (m *State) scores(s *step) {
	c := &m.column
	switch s.Op {
	case Clamp:
		clampFloats(c.ScoreFloats, float32(s.floats[0]), float32(s.floats[1]))
		clampFloats(c.ScoreDoubles, s.floats[0], s.floats[1])
	case Log1p:
		log1p(c.ScoreFloats, c.ScoreFloats)
		log1pDoubles(c.ScoreDoubles)
	case Cast:
		switch {
		case s.in.Score == vector.Float32 && s.out.Score == vector.Float64:
			m.scoreDoubles = vector.ConvertValues(m.scoreDoubles, c.ScoreFloats)
			c.ScoreFloats, c.ScoreDoubles = nil, m.scoreDoubles
		case s.in.Score == vector.Float64 && s.out.Score == vector.Float32:
			m.scoreFloats = vector.ConvertValues(m.scoreFloats, c.ScoreDoubles)
			c.ScoreFloats, c.ScoreDoubles = m.scoreFloats, nil
		}
	}
}

// values does a step that sees each value by itself. Values that no slot has are transformed with the others.
func (m *State) values(s *step) {
	c := &m.column
	switch s.Op {
	case Mod:
		switch {
		case s.in.Elem == vector.Uint64:
			modUnsigned(c.Ints, s.N, s.reciprocal)
		case s.N&(s.N-1) == 0:
			andValues(c.Ints, int64(s.N-1))
		default:
			modSigned(c.Ints, s.N, s.reciprocal)
		}
	case Hash:
		hashValues(c.Ints, s.Seed, s.N, s.reciprocal)
	case SigridHash:
		sigridHashValues(c.Ints, s.Seed, s.N, s.reciprocal)
	case Clamp:
		switch {
		case s.in.Elem == vector.Uint64:
			clampUnsigned(c.Ints, uint64(s.lo), uint64(s.hi))
		case s.in.Elem.IsInteger():
			clampInts(c.Ints, s.lo, s.hi)
		default:
			clampFloats(c.Floats, float32(s.floats[0]), float32(s.floats[1]))
			clampFloats(c.Doubles, s.floats[0], s.floats[1])
		}
	case Log1p:
		m.log1p(s)
	case Bucketize:
		m.bucketize(s)
	case Cast:
		m.cast(s)
	}
}

// intsOf gives the column memory for n integers.
func (m *State) intsOf(n int) []int64 {
	m.ints = vector.Resize(m.ints, n)
	m.column.Ints = m.ints
	return m.ints
}

func (m *State) log1p(s *step) {
	c := &m.column
	switch s.in.Physical() {
	case vector.Int64Values:
		m.floats = vector.Resize(m.floats, len(c.Ints))
		if s.in.Elem == vector.Uint64 {
			log1pUnsigned(m.floats, c.Ints)
		} else {
			log1p(m.floats, c.Ints)
		}
		c.Ints, c.Floats = nil, m.floats
	case vector.Float32Values:
		log1p(c.Floats, c.Floats)
	case vector.Float64Values:
		log1pDoubles(c.Doubles)
	}
}

func (m *State) bucketize(s *step) {
	c := &m.column
	flip := uint64(0)
	switch s.in.Physical() {
	case vector.Float32Values:
		orders(m.intsOf(len(c.Floats)), c.Floats)
		c.Floats = nil
	case vector.Float64Values:
		orders(m.intsOf(len(c.Doubles)), c.Doubles)
		c.Doubles = nil
	default:
		if s.in.Elem != vector.Uint64 {
			flip = 1 << 63
		}
	}
	bucketize(c.Ints, flip, s.borders, s.base)
}

func (m *State) cast(s *step) {
	c := &m.column
	from, to := s.in.Elem, s.out.Elem
	switch {
	case from == to:
	case from.IsInteger() && to.IsInteger():
		castInts(c.Ints, from, to, s.lo, s.hi)
	case from.IsInteger() && to == vector.Float32:
		m.floats = vector.Resize(m.floats, len(c.Ints))
		if from == vector.Uint64 {
			convertUnsigned(m.floats, c.Ints)
		} else {
			m.floats = vector.ConvertValues(m.floats, c.Ints)
		}
		c.Ints, c.Floats = nil, m.floats
	case from.IsInteger():
		m.doubles = vector.Resize(m.doubles, len(c.Ints))
		if from == vector.Uint64 {
			convertUnsigned(m.doubles, c.Ints)
		} else {
			m.doubles = vector.ConvertValues(m.doubles, c.Ints)
		}
		c.Ints, c.Doubles = nil, m.doubles
	case to == vector.Float64:
		m.doubles = vector.ConvertValues(m.doubles, c.Floats)
		c.Floats, c.Doubles = nil, m.doubles
	case to == vector.Float32:
		m.floats = vector.ConvertValues(m.floats, c.Doubles)
		c.Floats, c.Doubles = m.floats, nil
	case from == vector.Float32:
		castFloats(m.intsOf(len(c.Floats)), c.Floats, to, s.lo, s.hi)
		c.Floats = nil
	default:
		castFloats(m.intsOf(len(c.Doubles)), c.Doubles, to, s.lo, s.hi)
		c.Doubles = nil
	}
}
