package encoding

import (
	"math"
	"testing"
)

// Classes cost what their entropy says: of codes by frequency hardly more than the entropy of the codes themselves.
func TestRANSIsNearTheEntropy(t *testing.T) {
	const n = 1 << 16
	for _, name := range []string{"skewed-codes", "lengths", "alternating"} {
		vals := named(intShapes(), name).make(source(name, n), n)
		counts := map[int64]int{}
		for _, v := range vals {
			counts[v]++
		}
		bits := 0.0
		for _, c := range counts {
			bits -= float64(c) * math.Log2(float64(c)/n)
		}
		chunk, _ := forceInts(IDRANS, vals)
		if size, least := float64(len(chunk)), bits/8; size > 1.02*least+400 {
			t.Errorf("%s: %.0f bytes, the entropy is %.0f", name, size, least)
		}
	}
}
