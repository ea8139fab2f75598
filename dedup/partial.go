package dedup

import "github.com/dsistore/dsistore/format/vector"

const (
	// maxShift bounds how far from its neighbour a list is looked for.
	maxShift = 32
	// maxCompares bounds how many places with the right first value are compared in full.
	maxCompares = 4
	// minOverlap is how many values a list shares with its neighbour at least, when it has as many.
	minOverlap = 2
	// clearValues is how many values a list saves on average where partial duplicates are taken unseen.
	clearValues = 8
)

// A span is values [lo, hi) of a column.
type span struct{ lo, hi int32 }

// A partialFinder places lists so that neighbours share the values that they have in common. It walks the slots in one
// direction. A list is looked for in the values placed last, where the list before it starts or a few values further
// on. Values past the end are appended:
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

// walk places the lists of the rows reps, one per slot, backward from the last or forward from the first.
func (w *partialFinder) walk(v *values, reps []int32, backward bool) {
	n := len(reps)
	w.starts, w.lengths = vector.Resize(w.starts, n), vector.Resize(w.lengths, n)
	w.placed, w.end = w.placed[:0], 0
	// The anchor is the list that ends the placed values, and at is where it starts there. Lists are compared with it
	// alone.
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

// clear reports whether the partial duplicates save so much that they are taken unseen: half of the values, and more of
// each list than its place can cost.
func (w *partialFinder) clear() bool {
	saved := w.values() - int(w.end)
	return saved >= int(w.end) && saved >= clearValues*len(w.lengths)
}

func (w *partialFinder) place(s span) {
	w.end += s.hi - s.lo
	if n := len(w.placed); n > 0 && w.placed[n-1].hi == s.lo {
		w.placed[n-1].hi = s.hi
		return
	}
	w.placed = append(w.placed, s)
}

// match returns the place in anchor at which list starts, or -1: the values that both have from there on are the same,
// and list may run past the end. It looks at near and a few places after it, then before it.
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
