package encoding

import (
	"math/rand/v2"
	"testing"
)

// Ages in a history all grow by the same from one row to the next: no value comes again, but the differences do.
// However often codecs are chosen anew, it is seen.
func TestAgesRepeatAsDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Chooser
	for stripe := range 4 {
		var vals []int64
		times := make([]int64, 50)
		now := int64(1_600_000_000)
		for range 8000 {
			if rng.IntN(100) == 0 { // another user
				for i := range times {
					now += rng.Int64N(100_000)
					times[i] = now
				}
			}
			now += rng.Int64N(1000)
			copy(times, times[1:])
			times[len(times)-1] = now
			now += 1 + rng.Int64N(1000)
			for i := range times {
				vals = append(vals, now-times[len(times)-1-i])
			}
		}
		for name, chooser := range map[string]*Chooser{"anew": {}, "again": &c} {
			chunk := chooser.AppendInts(nil, 0, vals)
			if len(chunk) > len(vals)/3 {
				t.Errorf("stripe %d, chosen %s: %d bytes for %d ages", stripe, name, len(chunk), len(vals))
			}
		}
	}
}
