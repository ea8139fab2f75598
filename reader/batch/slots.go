package batch

import (
	"cmp"
	"math"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A slotSpan is slots of the columns that one stripe has of a group's features: [lo, hi), or those that the selector
// has listed there.
type slotSpan struct {
	piece  int32 // of the batch, one of that stripe
	lo, hi int32
	listed bool
}

// A slotSelector finds which slots a batch uses, and numbers them, by arithmetic on the inverses of its stripes. Slots
// are numbered stripe by stripe, however the pieces of the stripes are mixed in the batch, so that a slot which several
// pieces use is emitted once and neighbouring slots are copied together:
//
//	batch     | s0 [0,3) | s1 [5,8) | s0 [7,9) |            pieces: rows of stripes
//	order     | s0 [0,3)   s0 [7,9) | s1 [5,8) |
//	spans       s0 slots [0,2) [4,6)  s1 slots [3,4)
//
// Where an inverse is monotone, which the format says, a piece's slots are a range from its first row's to its last's,
// and only the first can be one of the piece before. Else slots are looked up in a table of the stripe's. Of a stripe
// that is gathered slots are listed, because they are next to each other here and there only. A slotSelector is scratch
// memory of one batch.
type slotSelector struct {
	order   []int32 // the pieces, those of a stripe together, in the order of their rows
	stripes []stripePieces
	inOrder bool // order is the batch's

	spans  []slotSpan // of all groups, one after the other
	listed []int32    // of the spans that say so

	// numbers, by slot of the stripe that is being looked at, hold floor + the slot's number in that stripe, or less
	// where the slot has none yet. floor goes up from stripe to stripe, so that nothing has to be cleared.
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

// grouping returns how the features are grouped in the batch whose pieces are sorted.
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

// selectRows appends the spans of the features that are in no group, whose slots are their rows.
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

// selectSlots appends the spans of a group that has the feature, fills inverse, an entry per row of the batch, and
// returns how many slots there are and whether the inverse is monotone.
func (x *slotSelector) selectSlots(pieces []Piece, feature int32, inverse []int32) (slots int, monotone bool) {
	monotone = x.inOrder
	n := int32(0) // slots so far
	// of them, that of the rows of stripes without the features: to be the same, null needs no comparison
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
			case null < n-1: // rows of a stripe between have later slots
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

// add appends slots of the stripe whose spans begin at first, to its last span where they follow it.
func (x *slotSelector) add(first int, piece, lo, hi int32) {
	if k := len(x.spans) - 1; k >= first && x.spans[k].hi == lo {
		x.spans[k].hi = hi
		return
	}
	x.spans = append(x.spans, slotSpan{piece: piece, lo: lo, hi: hi})
}

// selectMonotone selects slots of a stripe whose inverse is monotone; n slots are numbered already. It returns how many
// are then.
func (x *slotSelector) selectMonotone(pieces []Piece, order []int32, c *vector.Column, inverse []int32, n int32) int32 {
	first, last := len(x.spans), int32(-1)
	for _, k := range order {
		p := &pieces[k]
		from := c.Inverse[p.Lo:p.Hi]
		lo, hi := from[0], from[len(from)-1]+1
		by := n - lo
		if lo == last {
			by-- // the slot that the rows before end with goes on
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

// selectGathered is selectMonotone for a stripe that is gathered, and lists the slots. ascends: no row has a slot
// before that of the row before.
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

// growNumbers makes numbers for so many slots, none of which has one.
func (x *slotSelector) growNumbers(slots int) {
	if len(x.numbers) < slots {
		x.numbers = make([]int32, slots+slots/8)
		x.floor = 1
	} else if x.floor > math.MaxInt32-int32(slots) {
		clear(x.numbers)
		x.floor = 1
	}
}

// selectCodes is selectMonotone for an inverse in any order. It adds spans, or lists the slots, for who adds them.
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

// fillInverse gives every row of a piece one slot.
func fillInverse(inverse []int32, p *Piece, slot int32) {
	rows := inverse[p.At : p.At+p.Hi-p.Lo]
	for i := range rows {
		rows[i] = slot
	}
}
