package encoding

import (
	"math/bits"
	"math/rand/v2"
)

// hashFactor is random for each process, so that nobody can make ids that all collide. No stored byte depends on it,
// because codes are numbered in the order of first occurrence.
var hashFactor = rand.Uint64() | 1

// hash mixes a key into all 64 bits. The highest bits are mixed best.
func hash(key uint64) uint64 {
	key *= hashFactor
	return (key ^ key>>32) * 0xd6e8feb86659fd93
}

// A table gives each distinct key a code, in order of first occurrence. Open addressing, at most half full.
type table struct {
	slots  []slot
	shift  uint
	keys   []uint64 // by code
	counts []int32  // by code
}

type slot struct {
	key  uint64
	code int32 // plus one; 0 is free
}

func (t *table) reset() {
	t.keys, t.counts = t.keys[:0], t.counts[:0]
	t.resize(1024)
}

func (t *table) resize(n int) {
	if cap(t.slots) >= n {
		t.slots = t.slots[:n]
		clear(t.slots)
	} else {
		t.slots = make([]slot, n)
	}
	t.shift = uint(64 - bits.Len(uint(n-1)))
	for i, k := range t.keys {
		t.slots[t.find(k)] = slot{k, int32(i) + 1}
	}
}

// find returns the slot of key, or the free slot for it.
func (t *table) find(key uint64) int {
	mask := len(t.slots) - 1
	i := int(hash(key) >> t.shift)
	for t.slots[i&mask].code != 0 && t.slots[i&mask].key != key {
		i++
	}
	return i & mask
}

// add writes the code of each value to codes. It returns false as soon as there are more than limit distinct values.
func (t *table) add(codes, vals []int64, limit int) bool {
	t.reset()
	codes = codes[:len(vals)]
	for i, v := range vals {
		at := t.find(uint64(v))
		c := int(t.slots[at].code) - 1
		if c < 0 {
			if c = len(t.keys); c >= limit {
				return false
			}
			t.keys = append(t.keys, uint64(v))
			t.counts = append(t.counts, 0)
			t.slots[at] = slot{uint64(v), int32(c) + 1}
			if 2*len(t.keys) > len(t.slots) {
				t.resize(4 * len(t.slots))
			}
		}
		codes[i] = int64(c)
		t.counts[c]++
	}
	return true
}

// keyed is a sort key with the index of its element.
type keyed struct {
	key   uint64
	index int32
}

// order returns scratch of k elements, valid until the next call.
func (e *encoder) order(k int) []keyed {
	if cap(e.sorting) < k {
		e.sorting = make([]keyed, k)
	}
	return e.sorting[:k]
}

// sortKeyed sorts by key, ascending. It is a radix sort by bytes that skips bytes in which all keys agree.
func (e *encoder) sortKeyed(a []keyed) {
	if cap(e.sorted) < len(a) {
		e.sorted = make([]keyed, len(a))
	}
	b := e.sorted[:len(a)]
	var or uint64
	and := ^uint64(0)
	for _, x := range a {
		or |= x.key
		and &= x.key
	}
	from, to := a, b
	for shift := 0; shift < 64; shift += 8 {
		if byte((or^and)>>shift) == 0 {
			continue
		}
		var at [256]int
		for _, x := range from {
			at[byte(x.key>>shift)]++
		}
		sum := 0
		for i, c := range at {
			at[i] = sum
			sum += c
		}
		for _, x := range from {
			k := byte(x.key >> shift)
			to[at[k]] = x
			at[k]++
		}
		from, to = to, from
	}
	if len(a) > 0 && &from[0] != &a[0] {
		copy(a, from)
	}
}

// bitsFor returns the bits of a code in [0, k).
func bitsFor(k int) int { return bits.Len(uint(k - 1)) }
