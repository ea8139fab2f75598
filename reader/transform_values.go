package reader

import (
	"math"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// The loops in this file run for every value of every transformed stripe. They make no call and allocate nothing.

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

// sigridHashValues is TorchArrow's: Thomas Wang's mix of the integer, combined with the salt as CityHash combines 128 bits,
// and the signed remainder of that.
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

func log1p[To float32 | float64, From int64 | float32 | float64](dst []To, src []From) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = To(math.Log1p(float64(x)))
	}
}

func log1pUnsigned(dst []float32, src []int64) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.Log1p(float64(uint64(x))))
	}
}

// bucketize counts the borders, which ascend and are at least one, below each value; all are below NaN.
func bucketize[T float32 | float64](dst []int64, src, borders []T) {
	dst = dst[:len(src)]
	for i, x := range src {
		at, n := 0, len(borders)
		for n > 1 {
			half := n >> 1
			if !(borders[at+half-1] >= x) {
				at += half
			}
			n -= half
		}
		if !(borders[at] >= x) {
			at++
		}
		dst[i] = int64(at)
	}
}

// bucketizeInts does the same in place, in the order that integers have after flip, and adds base.
func bucketizeInts(v []int64, flip int64, borders []int64, base int64) {
	if len(borders) == 0 {
		for i := range v {
			v[i] = base
		}
		return
	}
	for i, x := range v {
		x ^= flip
		at, n := 0, len(borders)
		for n > 1 {
			half := n >> 1
			if borders[at+half-1] < x {
				at += half
			}
			n -= half
		}
		if borders[at] < x {
			at++
		}
		v[i] = int64(at) + base
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
