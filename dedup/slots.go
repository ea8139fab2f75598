package dedup

import (
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// maxProbes is how many positions are probed for a hash. The table is at most half full, so ordinary values hardly ever
// need so many. Values that were made to collide then stay in different slots.
const maxProbes = 12

// A slotTable finds earlier equal values.
type slotTable struct {
	slots  []int32 // slot+1 by position; 0: free
	hashes []uint32
	weak   bool // tests set it: every hash is the same
}

// reset empties the table and resizes it for n values.
func (t *slotTable) reset(n int) {
	size := 1 << bits.Len(uint(max(2*n, 16)-1))
	t.slots, t.hashes = vector.Resize(t.slots, size), vector.Resize(t.hashes, size)
	clear(t.slots)
}

// find sets codes to the slot of each run and returns reps with the first row of each slot appended. starts has a row
// of v for each run. Slots are numbered in the order in which they first occur.
func (t *slotTable) find(v *values, starts, codes, reps []int32) []int32 {
	t.reset(len(starts))
	mask := uint64(len(t.slots) - 1)
	for i, row := range starts {
		h := v.hash(int(row))
		if t.weak {
			h = 0
		}
		tag := uint32(h >> 32)
		slot := int32(len(reps))
		for p := range uint64(maxProbes) {
			at := (h + p) & mask
			s := t.slots[at]
			if s == 0 {
				t.slots[at], t.hashes[at] = slot+1, tag
				break
			}
			if t.hashes[at] == tag && v.equal(int(reps[s-1]), int(row)) {
				slot = s - 1
				break
			}
		}
		if int(slot) == len(reps) {
			reps = append(reps, row)
		}
		codes[i] = slot
	}
	return reps
}
