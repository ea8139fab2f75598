package format

import "math/rand/v2"

// hashFactor is drawn for each process, so that no values can be made that all fall into one place. No stored byte depends
// on it.
var hashFactor = rand.Uint64() | 1

// A valueTable numbers distinct values in the order in which they are added. Open addressing, at most half full.
type valueTable struct {
	keys  []int64
	slots []int32 // place in keys, plus one; 0 is free
}

func (t *valueTable) reset() {
	t.keys = t.keys[:0]
	clear(t.slots)
}

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

// add returns the number of v.
func (t *valueTable) add(v int64) int32 {
	if 2*len(t.keys) >= len(t.slots) {
		t.slots = make([]int32, max(1024, 2*len(t.slots)))
		for i, k := range t.keys {
			t.slots[t.find(k)] = int32(i) + 1
		}
	}
	at := t.find(v)
	if t.slots[at] == 0 {
		t.keys = append(t.keys, v)
		t.slots[at] = int32(len(t.keys))
	}
	return t.slots[at] - 1
}

// cut takes out the values added last, down to n of them. What was added last stands at the end of its stretch of taken
// places, so that it leaves no gap before another.
func (t *valueTable) cut(n int) {
	for i := len(t.keys) - 1; i >= n; i-- {
		at := t.find(t.keys[i])
		t.slots[at] = 0
		t.keys = t.keys[:i]
	}
}
