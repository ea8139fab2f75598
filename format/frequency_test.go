package format

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestByFrequency holds the order of keys against a sort of structs, for few keys and for many, whatever their bytes
// are.
func TestByFrequency(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var s frequencySorter
	for range 60 {
		n := rng.IntN(3 * radixFrom)
		mask := []uint64{1<<10 - 1, 0xff00ff, 1<<63 - 1, ^uint64(0)}[rng.IntN(4)]
		fixed := rng.Uint64() &^ mask
		seen := map[int64]bool{}
		var keys []int64
		var counts []int32
		for range n {
			if k := int64(fixed | rng.Uint64()&mask); !seen[k] {
				seen[k] = true
				keys = append(keys, k)
				counts = append(counts, int32(1+rng.ExpFloat64()*float64(int(1)<<rng.IntN(20))))
			}
		}
		want := make([]int32, len(keys))
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortFunc(want, func(a, b int32) int {
			if c := bits.Len(uint(counts[b])) - bits.Len(uint(counts[a])); c != 0 {
				return c
			}
			return cmp.Compare(uint64(keys[a]), uint64(keys[b]))
		})
		if got := s.byFrequency(nil, keys, counts); !slices.Equal(got, want) {
			t.Fatalf("%d keys, mask %x: not in order", len(keys), mask)
		}
	}
}

func BenchmarkByFrequency(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 7))
	keys, counts := make([]int64, 1<<16), make([]int32, 1<<16)
	for i := range keys {
		keys[i], counts[i] = int64(rng.Uint64()>>1), int32(1+rng.ExpFloat64()*20)
	}
	var s frequencySorter
	var out []int32
	for b.Loop() {
		out = s.byFrequency(out[:0], keys, counts)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
}
