package column

import "math"

// HalfValue returns the value of an IEEE 754 binary16, which a float32 holds exactly, subnormals included: arrow-go's
// float16 takes their fraction for a float32's.
//
//	+------+--------------+---------------+
//	| sign | exponent (5) | fraction (10) |
//	+------+--------------+---------------+
func HalfValue(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
