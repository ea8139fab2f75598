package transform

import (
	"math"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// The loops in this file run for every value of every transformed stripe. They make no interface call and allocate
// nothing.

// remainder returns x mod n; reciprocal is MaxUint64 / n.
//
// reciprocal*n is less than 2^64 by at most n, so the quotient that it gives is right or one too small.
func remainder(x, n, reciprocal uint64) uint64 {
	q, _ := bits.Mul64(x, reciprocal)
	r := x - q*n
	if r >= n {
		r -= n
	}
	return r
}

// floorRemainder returns the remainder of a signed x from 0 to n-1: for a negative x, n-1 less that of -1-x.
func floorRemainder(x int64, n, reciprocal uint64) uint64 {
	sign := x >> 63
	r := remainder(uint64(x^sign), n, reciprocal)
	return r ^ uint64(sign) + n&uint64(sign)
}

func modUnsigned(v []int64, n, reciprocal uint64) {
	for i, x := range v {
		v[i] = int64(remainder(uint64(x), n, reciprocal))
	}
}

func modSigned(v []int64, n, reciprocal uint64) {
	for i, x := range v {
		v[i] = int64(floorRemainder(x, n, reciprocal))
	}
}

// andValues is modSigned for a power of two, less one.
func andValues(v []int64, mask int64) {
	for i := range v {
		v[i] &= mask
	}
}

// The constants of xxHash64.
const (
	xxPrime1 = 0x9e3779b185ebca87
	xxPrime2 = 0xc2b2ae3d27d4eb4f
	xxPrime3 = 0x165667b19e3779f9
	xxPrime4 = 0x85ebca77c2b2ae63
	xxPrime5 = 0x27d4eb2f165667c5
)

// hashValues is xxHash64 of the 8 bytes of each integer, little-endian, modulo n.
func hashValues(v []int64, seed, n, reciprocal uint64) {
	start := seed + xxPrime5 + 8
	for i, x := range v {
		h := start ^ bits.RotateLeft64(uint64(x)*xxPrime2, 31)*xxPrime1
		h = bits.RotateLeft64(h, 27)*xxPrime1 + xxPrime4
		h = (h ^ h>>33) * xxPrime2
		h = (h ^ h>>29) * xxPrime3
		h ^= h >> 32
		v[i] = int64(remainder(h, n, reciprocal))
	}
}

// sigridHashValues is TorchArrow's: Thomas Wang's mix of the integer, combined with the salt as CityHash combines 128
// bits, and the signed remainder of that.
func sigridHashValues(v []int64, salt, n, reciprocal uint64) {
	const mul = 0x9ddfea08eb382d69
	for i, x := range v {
		k := uint64(x)
		k = ^k + k<<21
		k ^= k >> 24
		k += k<<3 + k<<8
		k ^= k >> 14
		k += k<<2 + k<<4
		k ^= k >> 28
		k += k << 31
		a := (k ^ salt) * mul
		a ^= a >> 47
		b := (salt ^ a) * mul
		b ^= b >> 47
		v[i] = int64(floorRemainder(int64(b*mul), n, reciprocal))
	}
}

func clampInts(v []int64, lo, hi int64) {
	for i, x := range v {
		v[i] = min(max(x, lo), hi)
	}
}

func clampUnsigned(v []int64, lo, hi uint64) {
	for i, x := range v {
		v[i] = int64(min(max(uint64(x), lo), hi))
	}
}

// clampFloats leaves NaN, and -0 where 0 is a bound.
func clampFloats[T float32 | float64](v []T, lo, hi T) {
	for i, x := range v {
		if x < lo {
			v[i] = lo
		} else if x > hi {
			v[i] = hi
		}
	}
}

func log1pDoubles(v []float64) {
	for i, x := range v {
		v[i] = math.Log1p(x)
	}
}

// log1p goes through blocks of float64, since a conversion to float64 beside math.Log would wait for the Log before it:
// the instruction keeps half of the register that it writes.
func log1p[From int64 | float32](dst []float32, src []From) {
	var block [256]float64
	for len(src) > 0 {
		n := min(len(src), len(block))
		for i, x := range src[:n] {
			block[i] = float64(x)
		}
		log1pBlock(dst[:n], block[:n])
		dst, src = dst[n:], src[n:]
	}
}

func log1pUnsigned(dst []float32, src []int64) {
	var block [256]float64
	for len(src) > 0 {
		n := min(len(src), len(block))
		for i, x := range src[:n] {
			block[i] = float64(uint64(x))
		}
		log1pBlock(dst[:n], block[:n])
		dst, src = dst[n:], src[n:]
	}
}

// log1pBlock is math.Log1p to 2^-32, in a quarter of the time.
func log1pBlock(dst []float32, src []float64) {
	dst = dst[:len(src)]
	for i, x := range src {
		switch {
		case x > 1.0/(1<<20):
			dst[i] = float32(math.Log(1 + x))
		case x > -1.0/(1<<20):
			dst[i] = float32(x - x*x/2)
		default:
			dst[i] = float32(math.Log1p(x))
		}
	}
}

// orderOf gives floats unsigned integers in their order, 0 and -0 the same, NaN above all others.
func orderOf(x float64) uint64 {
	if x != x {
		return math.MaxUint64
	}
	k := int64(math.Float64bits(x + 0)) // of -0, 0
	return uint64(k^k>>63&math.MaxInt64) ^ 1<<63
}

func orders[T float32 | float64](dst []int64, src []T) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = int64(orderOf(float64(x)))
	}
}

// linearBorders is up to how many borders it is faster to compare with each than to search.
const linearBorders = 8

// bucketize counts the borders, which ascend, below each value, in the order that unsigned integers have after flip,
// and adds base. A subtraction's borrow stands for the comparison: values are as good as random, and a branch would be
// wrong every other time.
func bucketize(v []int64, flip uint64, borders []uint64, base int64) {
	if len(borders) <= linearBorders {
		for i, x := range v {
			key, n := uint64(x)^flip, uint64(base)
			for _, b := range borders {
				_, below := bits.Sub64(b, key, 0)
				n += below
			}
			v[i] = int64(n)
		}
		return
	}
	for i, x := range v {
		key := uint64(x) ^ flip
		at, n := uint64(0), uint64(len(borders))
		for n > 1 {
			half := n >> 1
			_, below := bits.Sub64(borders[at+half-1], key, 0)
			at += half & -below
			n -= half
		}
		_, below := bits.Sub64(borders[at], key, 0)
		v[i] = int64(at+below) + base
	}
}

// castInts makes integers of type from those of type to, whose range is lo to hi.
func castInts(v []int64, from, to vector.Elem, lo, hi int64) {
	switch {
	case to == vector.Bool:
		for i, x := range v {
			v[i] = 0
			if x != 0 {
				v[i] = 1
			}
		}
	case from == vector.Uint64:
		clampUnsigned(v, 0, uint64(hi))
	case to == vector.Uint64:
		clampInts(v, 0, math.MaxInt64)
	default:
		clampInts(v, lo, hi)
	}
}

// castFloats makes integers of type to, whose range is lo to hi, of floats.
func castFloats[From float32 | float64](dst []int64, src []From, to vector.Elem, lo, hi int64) {
	dst = dst[:len(src)]
	switch to {
	case vector.Bool:
		for i, x := range src {
			dst[i] = 0
			if x != 0 {
				dst[i] = 1
			}
		}
	case vector.Uint64:
		for i, x := range src {
			switch {
			case !(x > 0):
				dst[i] = 0
			case x >= 1<<64:
				dst[i] = -1
			default:
				dst[i] = int64(uint64(x))
			}
		}
	default:
		least, most := float64(lo), float64(hi) // most is 2^63 for int64
		for i, v := range src {
			switch x := float64(v); {
			case x != x:
				dst[i] = 0
			case x <= least:
				dst[i] = lo
			case x >= most:
				dst[i] = hi
			default:
				dst[i] = int64(x)
			}
		}
	}
}

// convertUnsigned converts uint64 values, which an int64 holds bit for bit.
func convertUnsigned[To float32 | float64](dst []To, src []int64) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = To(uint64(x))
	}
}
