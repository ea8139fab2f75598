package workload

// All randomness is hashing with integers, so that the values are the same on every machine.

// mix is a bijection that spreads every bit of x over the result (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// join derives a key from a key and a number.
func join(key, n uint64) uint64 { return mix(key ^ n*0xd6e8feb86659fd93) }

// below maps a hash to [0, n) by its upper half.
func below(h uint64, n uint32) uint32 { return uint32((h >> 32) * uint64(n) >> 32) }

// chance reports true for a share of parts/65536 of all hashes, by the lower half.
func chance(h uint64, parts uint32) bool { return uint32(h)&0xffff < parts }

// parts turns a share into the unit of chance.
func parts(share float64) uint32 { return uint32(share * 65536) }

// zipf draws from [0, 1<<bits) with probability near 1/(rank+1): a uniform octave, then 2^fraction within it, by its
// quadratic approximation in fixed point.
func zipf(h uint64, bits uint32) uint64 {
	octave := below(h, bits)
	f := h & 0xffffffff
	g := f * (2819646030 + 1475321266*f>>32) >> 32 // (2^f - 1) = f (0.6565 + 0.3435 f)
	return 1<<octave + g<<octave>>32 - 1
}

// id hashes a rank of an id space to 63 bits.
func id(space, rank uint64) int64 { return int64(mix(space+rank) >> 1) }

// strata returns n values spread evenly over [lo, hi], in an order drawn from key: their mean is that of the range
// whatever the key is.
func strata(key uint64, n int, lo, hi float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = lo + (hi-lo)*(float64(i)+0.5)/float64(n)
	}
	for i := n - 1; i > 0; i-- {
		j := below(join(key, uint64(i)), uint32(i+1))
		v[i], v[j] = v[j], v[i]
	}
	return v
}

// bit returns 1 for true.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
