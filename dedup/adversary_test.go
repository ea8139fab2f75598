package dedup

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelPairs numbers pairs of inverse and code as they first occur.
func modelPairs(inverse, codes []int32) (out []int32, slots int) {
	seen := map[[2]int32]int32{}
	for i := range inverse {
		key := [2]int32{inverse[i], codes[i]}
		n, ok := seen[key]
		if !ok {
			n = int32(len(seen))
			seen[key] = n
		}
		out = append(out, n)
	}
	return out, len(seen)
}

// colliding returns rows whose pairs all have about the same hash, of a hash that anybody can compute.
func colliding(rows int) (inverse, codes []int32) {
	half := int32(rows / 2)
	for i := range half { // so that slots are numbered as they first occur
		inverse, codes = append(inverse, i), append(codes, i)
	}
	mask := uint64(1)<<bits.Len(uint(2*rows-1)) - 1
	for g := int32(0); g < half && len(inverse) < rows; g++ {
		for c := int32(0); c < half && len(inverse) < rows; c++ {
			if fold((uint64(g)<<32|uint64(c))^key0, key1)&mask < 4 {
				inverse, codes = append(inverse, g), append(codes, c)
			}
		}
	}
	return inverse, codes
}

func ascending(n int) (out []int32) {
	for i := range n {
		out = append(out, int32(i))
	}
	return out
}

// probes returns how many places of the table were looked at to put all pairs into it, and at most for one of them.
func (t *pairTable) probes() (all, most int) {
	mask := uint64(len(t.slots) - 1)
	for at, s := range t.slots {
		if s > t.before {
			n := int((uint64(at)-pairHash(t.keys[at]))&mask) + 1
			all, most = all+n, max(most, n)
		}
	}
	return all, most
}

// TestPairs holds a pairTable to a map, on random pairs and on ones that were chosen for a hash that is known, and
// counts its probes.
func TestPairs(t *testing.T) {
	const rows = 16384
	rng := rand.New(rand.NewPCG(5, 6))
	random := func(groups, values int) (inverse, codes []int32) {
		number := map[int]int32{}
		for range rows {
			g := rng.IntN(groups)
			if _, ok := number[g]; !ok {
				number[g] = int32(len(number))
			}
			inverse, codes = append(inverse, number[g]), append(codes, int32(rng.IntN(values)))
		}
		return inverse, codes
	}
	check := func(name string, inverse, codes []int32) {
		want, slots := modelPairs(inverse, codes)
		got := slices.Clone(inverse)
		var pairs pairTable
		if n := pairs.refine(got, ascending(len(inverse)), codes); n != slots || !slices.Equal(got, want) {
			t.Fatalf("%s: %d pairs, want %d: %v, want %v", name, n, slots, got, want)
		}
		if all, most := pairs.probes(); all > 3*rows || most > 200 {
			t.Errorf("%s: %d probes for %d pairs, up to %d for one", name, all, slots, most)
		}
	}
	for _, c := range [][2]int{{3, 4}, {rows, 2}, {2, rows}, {rows, rows}, {1, rows}, {rows, 1}} {
		inverse, codes := random(c[0], c[1])
		check(fmt.Sprintf("%d groups, %d values", c[0], c[1]), inverse, codes)
	}
	inverse, codes := colliding(rows)
	check("chosen", inverse, codes)

	// Whatever a process draws. One in a hundred factors mixes badly, such as those with few bits set.
	defer func(seed, factor uint64) { pairSeed, pairFactor = seed, factor }(pairSeed, pairFactor)
	inverse, codes = random(rows, 2)
	for i := range 400 {
		pairSeed, pairFactor = rng.Uint64(), rng.Uint64()|1
		if i < 64 {
			pairFactor = 1<<i | 1
		}
		check(fmt.Sprintf("seed %#x, factor %#x", pairSeed, pairFactor), inverse, codes)
	}
}
