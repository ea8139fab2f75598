package arrowbatch

import "math"

// halfBits returns v as IEEE 754 binary16, rounded to the nearest, ties to even. It is exact for every value that was a
// binary16, including subnormals, which arrow-go's float16.New turns into zero.
//
//	+------+--------------+---------------+
//	| sign | exponent (5) | fraction (10) |
//	+------+--------------+---------------+
func halfBits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN stays one, with what fits of its payload
		return sign | 0x7c00 | max(uint16(b>>13)&0x3ff, 1)
	case b >= 0x477ff000: // rounds past the largest
		return sign | 0x7c00
	case b < 0x38800000: // subnormal: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	b -= 112 << 23 // the bias of 127 becomes 15
	return sign | uint16((b+0xfff+b>>13&1)>>13)
}
