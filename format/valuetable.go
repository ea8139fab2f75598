package format

import "math/rand/v2"

// hashFactor is random for each process, so that nobody can make values that all collide. No stored byte depends on it.
var hashFactor = rand.Uint64() | 1

// A valueTable numbers distinct values in the order in which they are added. Open addressing, at most half full.
type valueTable struct {
	keys  []int64
	slots []int32 // index in keys, plus one; 0 is free
}

// minSlots is the size of an empty table.
const minSlots = 1024

func (t *valueTable) reset() {
	t.keys = t.keys[:0]
	t.grow(minSlots)
}

// grow resizes the table to n slots.
func (t *valueTable) grow(n int) {
	if cap(t.slots) < n {
		t.slots = make([]int32, n)
	} else {
		t.slots = t.slots[:n]
		clear(t.slots)
	}
	for i, k := range t.keys {
		t.slots[t.find(k)] = int32(i) + 1
	}
}

// find returns the slot of v, or the free slot for it.
func (t *valueTable) find(v int64) int {
	mask := len(t.slots) - 1
	h := uint64(v) * hashFactor
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	i := int(h>>33) & mask
	for t.slots[i] != 0 && t.keys[t.slots[i]-1] != v {
		i = (i + 1) & mask
	}
	return i
}

// add adds v, unless it is there, and returns its number.
func (t *valueTable) add(v int64) int32 {
	if 2*len(t.keys) >= len(t.slots) {
		t.grow(4 * max(len(t.slots), minSlots/4))
	}
	at := t.find(v)
	if t.slots[at] == 0 {
		t.keys = append(t.keys, v)
		t.slots[at] = int32(len(t.keys))
	}
	return t.slots[at] - 1
}

// addAll adds vals and sets numbers to theirs. A value equal to the one before is not looked up.
func (t *valueTable) addAll(numbers []int32, vals []int64) {
	for i, v := range vals {
		if i > 0 && v == vals[i-1] {
			numbers[i] = numbers[i-1]
			continue
		}
		numbers[i] = t.add(v)
	}
}

// cut removes the values added last, so that n remain. The last one added is at the end of its probe sequence, so that
// freeing its slot hides no other value.
func (t *valueTable) cut(n int) {
	for i := len(t.keys) - 1; i >= n; i-- {
		at := t.find(t.keys[i])
		t.slots[at] = 0
		t.keys = t.keys[:i]
	}
}
