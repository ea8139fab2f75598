package dedup

import "github.com/dsistore/dsistore/format/vector"

const (
	// maxShift is how far from the start of its neighbour a list is searched for.
	maxShift = 32
	// maxCompares is how many positions with the right first value are compared in full.
	maxCompares = 4
	// minOverlap is how many values a list must share with its neighbour, if it has as many.
	minOverlap = 2
	// clearValues: partial duplicates that save so many values per list are used without measuring.
	clearValues = 8
)

// A span is values [lo, hi) of a column.
type span struct{ lo, hi int32 }

// A partialFinder places lists so that neighbours share the values that they have in common. It visits the slots in one
// direction. It searches the values placed last for each list, near the start of the list before. Values of the list
// that are past their end are appended:
//
//	newest first, last slot to first            oldest first, first slot to last
//
//	slot 2   e d c b                            slot 0   a b c
//	slot 1     d c b a                          slot 1     b c d
//	slot 0         b a                          slot 2       c d e
//	placed   e d c b a                          placed   a b c d e
type partialFinder struct {
	starts  []int32 // by slot: where the list is in the placed values
	lengths []int32 // by slot
	placed  []span  // source of the placed values, end to end
	end     int32   // placed values
}

// walk places the lists of the rows reps, one per slot, from the last to the first if backward, else from the first on.
func (w *partialFinder) walk(v *values, reps []int32, backward bool) {
	n := len(reps)
	w.starts, w.lengths = vector.Resize(w.starts, n), vector.Resize(w.lengths, n)
	w.placed, w.end = w.placed[:0], 0
	// The anchor is the list whose values end the placed values, and at is its start there. Lists are compared only
	// with the anchor.
	var anchor span
	at, previous := int32(0), int32(0)
	for i := range n {
		slot := i
		if backward {
			slot = n - 1 - i
		}
		w.lengths[slot] = 0
		w.starts[slot] = previous
		if v.null(int(reps[slot])) {
			continue
		}
		lo, hi := v.c.SlotRange(int(reps[slot]))
		list := span{int32(lo), int32(hi)}
		if lo == hi {
			continue
		}
		length := list.hi - list.lo
		w.lengths[slot] = length
		place := match(v, anchor, list, previous-at)
		if place < 0 {
			at, previous = w.end, w.end
			w.starts[slot] = w.end
			anchor = list
			w.place(list)
			continue
		}
		previous = at + place
		w.starts[slot] = previous
		if over := previous + length - w.end; over > 0 {
			w.place(span{list.hi - over, list.hi})
			anchor, at = list, previous
		}
	}
}

// values returns how many values the placed lists have.
func (w *partialFinder) values() int {
	n := 0
	for _, l := range w.lengths {
		n += int(l)
	}
	return n
}

// clearlyPays reports whether the partial duplicates save so much that they need not be measured: half of the values,
// and more per list than storing its start can cost.
func (w *partialFinder) clearlyPays() bool {
	saved := w.values() - int(w.end)
	return saved >= int(w.end) && saved >= clearValues*len(w.lengths)
}

// place appends values to the placed ones.
func (w *partialFinder) place(s span) {
	w.end += s.hi - s.lo
	if n := len(w.placed); n > 0 && w.placed[n-1].hi == s.lo {
		w.placed[n-1].hi = s.hi
		return
	}
	w.placed = append(w.placed, s)
}

// match returns the position in anchor at which list starts, or -1. From there on, the values of anchor are those of
// list, which may continue past anchor's end. It tries positions from near upwards, then downwards.
func match(v *values, anchor, list span, near int32) int32 {
	compares := 0
	size, length := anchor.hi-anchor.lo, list.hi-list.lo
	try := func(place int32) bool {
		overlap := min(size-place, length)
		if overlap < min(minOverlap, length) || !v.equalOne(int(anchor.lo+place), int(list.lo)) {
			return false
		}
		compares++
		return v.equalRange(int(anchor.lo+place), int(list.lo), int(overlap))
	}
	for place := near; place < min(near+maxShift, size) && compares < maxCompares; place++ {
		if try(place) {
			return place
		}
	}
	for place := near - 1; place >= max(near-maxShift, 0) && compares < maxCompares; place-- {
		if try(place) {
			return place
		}
	}
	return -1
}
