package vector

import (
	"bytes"
	"math"
	"slices"
)

// RowsEqual reports whether row i of a and row j of b, of one Type, hold the same value: null equals null only, and
// floats are compared bit by bit, so that NaN equals itself and -0.0 is not 0.0.
func RowsEqual(a *Column, i int, b *Column, j int) bool {
	if a.IsNull(i) != b.IsNull(j) {
		return false
	}
	if a.IsNull(i) {
		return true
	}
	alo, ahi := a.RowRange(i)
	blo, bhi := b.RowRange(j)
	if ahi-alo != bhi-blo {
		return false
	}
	switch a.Type.Physical() {
	case Int64Values:
		if !slices.Equal(a.Ints[alo:ahi], b.Ints[blo:bhi]) {
			return false
		}
	case Float32Values:
		if !floatBitsEqual(a.Floats[alo:ahi], b.Floats[blo:bhi]) {
			return false
		}
	case Float64Values:
		if !doubleBitsEqual(a.Doubles[alo:ahi], b.Doubles[blo:bhi]) {
			return false
		}
	case ByteValues:
		if !bytes.Equal(a.Data[alo:ahi], b.Data[blo:bhi]) {
			return false
		}
	}
	if a.Type.Kind != Weighted {
		return true
	}
	if a.Type.Score == Float64 {
		return doubleBitsEqual(a.ScoreDoubles[alo:ahi], b.ScoreDoubles[blo:bhi])
	}
	return floatBitsEqual(a.ScoreFloats[alo:ahi], b.ScoreFloats[blo:bhi])
}

func floatBitsEqual(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

func doubleBitsEqual(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}
