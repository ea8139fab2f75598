package dedup

import (
	"math"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// streamBits is the fixed cost of a stream: its header, its checksum and its entry in the directory, in bits.
const streamBits = 12 * 8

const (
	sampledValues = 512
	sampleTable   = 2048
	// scoreBits is the approximate size of one score.
	scoreBits = 8
	// estimatorBytes is the memory of an estimator.
	estimatorBytes = 8 * sampleTable
)

// The cost of a stored byte and of decoding, in ns, as in the encodings' chooser (format/encoding, Balanced).
const (
	balancedNsPerByte = 8
	nsValue           = 0.5 // per id, number or score
	nsStringByte      = 0.1 // per byte of strings
	nsSlot            = 0.5 // per length of a list, or start of a partial duplicate
	nsRow             = 0.6 // per row of a monotone inverse
	nsCodedRow        = 1.5 // per row of another inverse, with gathering its slots
)

// decodeTime estimates the time of decoding a form of a stripe, in ns.
func decodeTime(c *vector.Column) float64 {
	ns := nsValue * float64(c.Elements())
	switch {
	case c.Type.Physical() == vector.ByteValues:
		ns = nsStringByte * float64(c.Elements())
	case c.Type.Kind == vector.Weighted:
		ns *= 2
	}
	if c.Type.IsList() {
		ns += nsSlot * float64(c.Slots)
	}
	if c.Lengths != nil {
		ns += nsSlot * float64(c.Slots)
	}
	switch {
	case c.Inverse == nil || c.Slots == 1:
	case c.Monotone:
		ns += nsRow * float64(c.Rows)
	default:
		ns += nsCodedRow * float64(c.Rows)
	}
	return ns
}

// An estimator estimates the size of encoded values. It need not be exact: most features gain a lot or nothing.
type estimator struct {
	seen [sampleTable]uint64
}

// valueBits estimates the encoded bits of one value of the stripe, without its score, from a sample of the values of
// all rows. v has the stripe's values.
func (e *estimator) valueBits(v *values, s Stripe) float64 {
	total := s.Elements()
	if total == 0 {
		return 0
	}
	clear(e.seen[:])
	n := min(total, sampledValues)
	distinct := 0
	var all uint64
	p := valueCursor{stripe: s}
	for i := range n {
		x := v.bitsAt(p.find(i * total / n))
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

// A valueCursor finds values of a stripe by their number among the values of all rows.
type valueCursor struct {
	stripe Stripe
	run    int
	before int // values of the rows of all runs before run
}

// find returns the position in stripe.Values of value i. i must not be less than in the call before.
func (p *valueCursor) find(i int) int {
	s := p.stripe
	if s.Starts == nil || s.Values.Rows == s.Rows {
		return i
	}
	for {
		lo, hi := s.Values.SlotRange(p.run)
		if n := s.length(p.run) * (hi - lo); i >= p.before+n {
			p.before += n
			p.run++
			continue
		}
		return lo + (i-p.before)%(hi-lo)
	}
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

// entropy returns the entropy in bits of each of n choices, k of which are of one of two kinds.
func entropy(k, n int) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	p := float64(k) / float64(n)
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}
