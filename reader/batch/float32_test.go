package batch

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// exactHolds is float32Holds by arithmetic of any precision.
func exactHolds(v int64, e vector.Elem) bool {
	exact := big.NewInt(v)
	if e == vector.Uint64 {
		exact.SetUint64(uint64(v))
	}
	f := new(big.Float).SetInt(exact)
	single, _ := f.Float32()
	return f.Cmp(big.NewFloat(float64(single))) == 0
}

func TestFloat32Holds(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 1 << 24, -1 << 24, 1<<24 + 1, -1<<24 - 1, 1<<24 + 2, math.MinInt64,
		math.MaxInt64, math.MinInt64 + 1} {
		for _, e := range []vector.Elem{vector.Int64, vector.Uint64} {
			if got := float32Holds(v, e); got != exactHolds(v, e) {
				t.Errorf("%d as %v: %v", v, e, got)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v") &^ (1<<rapid.IntRange(0, 63).Draw(t, "zeros") - 1)
		if e := rapid.SampledFrom([]vector.Elem{vector.Int32, vector.Int64, vector.Uint64}).Draw(t,
			"elem"); float32Holds(v, e) != exactHolds(v, e) {
			t.Fatalf("%d as %v: want %v", v, e, exactHolds(v, e))
		}
	})
}

func TestInexactErrorNamesSome(t *testing.T) {
	var e InexactError
	for i := range namedInexact + 7 {
		e.Integers = append(e.Integers, InexactInteger{Feature: fmt.Sprintf("f%d", i), Value: "16777217"})
	}
	if text := e.Error(); !strings.Contains(text, fmt.Sprintf(`"f%d"`, namedInexact-1)) ||
		strings.Contains(text, fmt.Sprintf(`"f%d"`, namedInexact)) ||
		!strings.Contains(text, "and 7 features more") {
		t.Error(text)
	}
}
