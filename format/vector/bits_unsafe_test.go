package vector

import (
	"encoding/binary"
	"math"
	"testing"
)

// The views have the bits that package math gives, NaNs with their payloads and -0 included.
func TestBits(t *testing.T) {
	doubles := []float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN(),
		math.Float64frombits(0x7ff8000000000001)}
	var floats []float32
	for _, d := range doubles {
		floats = append(floats, float32(d))
	}
	wide, narrow, bytes := Bits64(doubles), Bits32(floats), BytesOf(doubles)
	if len(wide) != len(doubles) || len(narrow) != len(floats) || len(bytes) != 8*len(doubles) {
		t.Fatalf("%d, %d values, %d bytes", len(wide), len(narrow), len(bytes))
	}
	for i := range doubles {
		want := math.Float64bits(doubles[i])
		if uint64(wide[i]) != want || binary.NativeEndian.Uint64(bytes[8*i:]) != want ||
			narrow[i] != math.Float32bits(floats[i]) {
			t.Errorf("value %d: %#x, %#x", i, wide[i], narrow[i])
		}
	}
	if len(Bits32(nil))+len(Bits64(nil))+len(BytesOf([]int64(nil))) != 0 {
		t.Error("nil gives values")
	}
}
