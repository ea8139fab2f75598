package batch

import (
	"cmp"
	"math"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A slotSpan is slots of a stripe's columns of a group's features: slots [lo, hi) or, if listed, the slots
// slotSelector.listed[lo:hi].
type slotSpan struct {
	piece  int32 // a piece of the batch of that stripe
	lo, hi int32
	listed bool
}

// A slotSelector finds the slots that a batch uses, and numbers them, from the inverses of its stripes. Slots are
// numbered stripe by stripe, in whatever order the pieces are in the batch. So a slot that several pieces use is
// emitted once, and neighbouring slots are copied together:
//
//	batch     | s0 [0,3) | s1 [5,8) | s0 [7,9) |            pieces: rows of stripes
//	order     | s0 [0,3)   s0 [7,9) | s1 [5,8) |
//	spans       s0 slots [0,2) [4,6)  s1 slots [3,4)
//
// If an inverse is monotone, the slots of a piece are the range from its first row's to its last row's, and only the
// first one can also be in the piece before. Else slots are looked up in a table (numbers). The slots of a gathered
// stripe are listed, because few of them are neighbours. A slotSelector is scratch memory of one batch.
type slotSelector struct {
	order   []int32 // the pieces, sorted by stripe and row
	stripes []stripePieces
	inOrder bool // order is the order of the batch

	spans  []slotSpan // of all groups, one group after the other
	listed []int32    // slots of the listed spans

	// numbers[s], for slot s of the current stripe, is floor plus the slot's number in the stripe, or less than floor
	// if it has no number yet. floor is raised from stripe to stripe, so that numbers need not be cleared.
	numbers []int32
	floor   int32

	sharings []*ioplan.Sharing
	key      []byte
}

// stripePieces are the pieces order[from:to], all of one stripe.
type stripePieces struct {
	stripe   *ioplan.Stripe
	from, to int32
}

// sort sets order and stripes.
func (x *slotSelector) sort(pieces []Piece) {
	x.order, x.stripes = x.order[:0], x.stripes[:0]
	for i := range pieces {
		x.order = append(x.order, int32(i))
	}
	byRow := func(a, b int32) int {
		p, q := &pieces[a], &pieces[b]
		return cmp.Or(cmp.Compare(p.Stripe.FirstRow, q.Stripe.FirstRow), cmp.Compare(p.Lo, q.Lo), cmp.Compare(a, b))
	}
	x.inOrder = slices.IsSortedFunc(x.order, byRow)
	if !x.inOrder {
		slices.SortFunc(x.order, byRow)
	}
	for i, p := range x.order {
		if k := len(x.stripes) - 1; k >= 0 && x.stripes[k].stripe == pieces[p].Stripe {
			x.stripes[k].to++
			continue
		}
		x.stripes = append(x.stripes, stripePieces{stripe: pieces[p].Stripe, from: int32(i), to: int32(i + 1)})
	}
}

// grouping returns the grouping of the batch's segments, after sort.
func (x *slotSelector) grouping(s *groupings) grouping {
	x.sharings = x.sharings[:0]
	var last *ioplan.Segment
	for i := range x.stripes {
		g := x.stripes[i].stripe.Segment
		if g == last {
			continue
		}
		last = g
		y := s.sharingOf(g)
		at, found := slices.BinarySearchFunc(x.sharings, y.ID,
			func(z *ioplan.Sharing, id uint64) int { return cmp.Compare(z.ID, id) })
		if !found {
			x.sharings = slices.Insert(x.sharings, at, y)
		}
	}
	var g grouping
	g, x.key = s.of(x.sharings, x.key)
	return g
}

// hasInverse reports whether a feature has an inverse, or is missing, in any stripe of the batch.
func (x *slotSelector) hasInverse(pieces []Piece, feature int32) bool {
	for i := range x.stripes {
		p := &pieces[x.order[x.stripes[i].from]]
		if c := p.Column(feature); c == nil || c.Inverse != nil && !p.Stripe.RowsAreSlots(c) {
			return true
		}
	}
	return false
}

// selectRows appends the spans of features in no group, whose slots are their rows.
func (x *slotSelector) selectRows(pieces []Piece) {
	for i := range pieces {
		p := &pieces[i]
		if p.Stripe.Gathered {
			first := len(x.listed)
			x.listed = append(x.listed, p.Stripe.Selected[p.Lo:p.Hi]...)
			x.addListed(first, int32(i))
			continue
		}
		x.spans = append(x.spans, slotSpan{piece: int32(i), lo: int32(p.Lo), hi: int32(p.Hi)})
	}
}

// addListed appends a span of the slots listed from first on, if there are any.
func (x *slotSelector) addListed(first int, piece int32) {
	if first < len(x.listed) {
		x.spans = append(x.spans, slotSpan{piece: piece, lo: int32(first), hi: int32(len(x.listed)), listed: true})
	}
}

// selectSlots appends the spans of the feature's group, and sets inverse, which has an element for each row of the
// batch. It returns the number of slots, and whether the inverse is monotone.
func (x *slotSelector) selectSlots(pieces []Piece, feature int32, inverse []int32) (slots int, monotone bool) {
	monotone = x.inOrder
	n := int32(0) // slots so far
	// The slot of rows of all stripes without the features, which are null; -1: none yet.
	null := int32(-1)
	for i := range x.stripes {
		s := &x.stripes[i]
		order := x.order[s.from:s.to]
		first := len(x.spans)
		d := s.stripe.Columns[feature]
		absent := d == nil || d.Absent
		switch c := pieces[order[0]].Column(feature); {
		case !absent && s.stripe.Gathered:
			ascends := s.stripe.Columns[feature].Ascends
			monotone = monotone && ascends
			n = x.selectGathered(pieces, order, c, inverse, n, ascends)
		case absent:
			switch {
			case null < 0:
				x.spans = append(x.spans, slotSpan{piece: order[0], lo: 0, hi: 1})
				null = n
				n++
			case null < n-1: // a stripe between has later slots
				monotone = false
			}
			for _, k := range order {
				fillInverse(inverse, &pieces[k], null)
			}
		case c.Inverse == nil:
			for _, k := range order {
				p := &pieces[k]
				x.add(first, order[0], int32(p.Lo), int32(p.Hi))
				for r := range p.Hi - p.Lo {
					inverse[p.At+r] = n + int32(r)
				}
				n += int32(p.Hi - p.Lo)
			}
		case c.Monotone:
			n = x.selectMonotone(pieces, order, c, inverse, n)
		default:
			monotone = false
			n = x.selectCodes(pieces, order, c, inverse, n, false)
		}
	}
	return int(n), monotone
}

// add appends slots [lo, hi) of a stripe, whose spans start at first. It extends the last span if they follow it.
func (x *slotSelector) add(first int, piece, lo, hi int32) {
	if k := len(x.spans) - 1; k >= first && x.spans[k].hi == lo {
		x.spans[k].hi = hi
		return
	}
	x.spans = append(x.spans, slotSpan{piece: piece, lo: lo, hi: hi})
}

// selectMonotone selects the slots of a stripe whose inverse is monotone. n is the number of slots before; it returns
// the number after.
func (x *slotSelector) selectMonotone(pieces []Piece, order []int32, c *vector.Column, inverse []int32, n int32) int32 {
	first, last := len(x.spans), int32(-1)
	for _, k := range order {
		p := &pieces[k]
		from := c.Inverse[p.Lo:p.Hi]
		lo, hi := from[0], from[len(from)-1]+1
		by := n - lo
		if lo == last {
			by-- // the first slot is the last one of the piece before
			lo++
		}
		if lo < hi {
			x.add(first, order[0], lo, hi)
			n += hi - lo
		}
		last = hi - 1
		to := inverse[p.At : p.At+len(from)]
		if by == 0 {
			copy(to, from)
			continue
		}
		for i, s := range from {
			to[i] = s + by
		}
	}
	return n
}

// selectGathered is selectMonotone for a gathered stripe; it lists the slots. ascends: the slots of the rows do not
// decrease.
func (x *slotSelector) selectGathered(pieces []Piece, order []int32, c *vector.Column, inverse []int32, n int32,
	ascends bool) int32 {
	first := len(x.listed)
	if ascends {
		last := int32(-1)
		for _, k := range order {
			p := &pieces[k]
			from := c.Inverse[p.Lo:p.Hi]
			to := inverse[p.At : p.At+len(from)]
			for i, s := range from {
				if s != last {
					x.listed = append(x.listed, s)
					last = s
					n++
				}
				to[i] = n - 1
			}
		}
		x.addListed(first, order[0])
		return n
	}
	n = x.selectCodes(pieces, order, c, inverse, n, true)
	x.addListed(first, order[0])
	return n
}

// growNumbers resizes numbers for so many slots, and makes sure that floor does not overflow.
func (x *slotSelector) growNumbers(slots int) {
	if len(x.numbers) < slots {
		x.numbers = make([]int32, slots+slots/8)
		x.floor = 1
	} else if x.floor > math.MaxInt32-int32(slots) {
		clear(x.numbers)
		x.floor = 1
	}
}

// selectCodes is selectMonotone for any inverse. It adds spans or, with list, appends to listed; then the caller adds
// the span.
func (x *slotSelector) selectCodes(pieces []Piece, order []int32, c *vector.Column, inverse []int32, n int32,
	list bool) int32 {
	x.growNumbers(c.Slots)
	first, numbers, floor := len(x.spans), x.numbers, x.floor
	next, by := floor, n-floor
	for _, k := range order {
		p := &pieces[k]
		from := c.Inverse[p.Lo:p.Hi]
		to := inverse[p.At : p.At+len(from)]
		for i, s := range from {
			v := numbers[s]
			if v < floor {
				v = next
				numbers[s] = v
				next++
				if list {
					x.listed = append(x.listed, s)
				} else {
					x.add(first, order[0], s, s+1)
				}
			}
			to[i] = v + by
		}
	}
	x.floor = next
	return n + next - floor
}

// fillInverse sets the slot of every row of a piece.
func fillInverse(inverse []int32, p *Piece, slot int32) {
	rows := inverse[p.At : p.At+p.Hi-p.Lo]
	for i := range rows {
		rows[i] = slot
	}
}
