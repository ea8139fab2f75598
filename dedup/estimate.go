package dedup

import (
	"math"
	"math/bits"
)

// What a stream costs whatever it holds: its header, its checksum and its entry in the directory, in bits.
const streamBits = 12 * 8

const (
	sampledValues = 512
	sampleTable   = 2048
)

// An estimator says about what values cost once encoded. It need not be close: most features gain a lot or nothing.
type estimator struct {
	seen [sampleTable]uint64
}

// valueBits estimates the bits that one value takes, without its score, from a sample of those of the rows starts.
func (e *estimator) valueBits(v *values, total int) float64 {
	if total == 0 {
		return 0
	}
	clear(e.seen[:])
	n := min(total, sampledValues)
	distinct := 0
	var all uint64
	for i := range n {
		x := v.bitsAt(i * total / n)
		all |= x
		h := fold(x^key0, key1)
		for p := range uint64(sampleTable) {
			s := &e.seen[(h+p)%sampleTable]
			if *s == 0 {
				*s, distinct = x+1, distinct+1 // x+1 is 0 for one value only, which then counts each time
				break
			}
			if *s == x+1 {
				break
			}
		}
	}
	width := float64(bits.Len64(all))
	share := float64(distinct) / float64(n)
	if share > 0.9 {
		return max(width*0.75, 1)
	}
	return max(min(width, math.Log2(float64(distinct))+1+4*share), 0.5)
}

// bitsAt returns value i as bits.
func (v *values) bitsAt(i int) uint64 {
	switch {
	case v.wide != nil:
		return uint64(v.wide[i])
	case v.narrow != nil:
		return uint64(v.narrow[i])
	}
	return uint64(v.data[i])
}

// entropy returns the bits that each of n choices takes when k of them are of one kind.
func entropy(k, n int) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	p := float64(k) / float64(n)
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}
