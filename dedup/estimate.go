package dedup

import (
	"math"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// What a stream costs whatever it holds: its header, its checksum and its entry in the directory, in bits.
const streamBits = 12 * 8

const (
	sampledValues = 512
	sampleTable   = 2048
	// scoreBits is what one score takes, about.
	scoreBits = 8
	// estimatorBytes is the memory of an estimator.
	estimatorBytes = 8 * sampleTable
)

// What fetching a byte and decoding a value cost, in ns, after the encodings' chooser (format/encoding, Balanced).
const (
	balancedNsPerByte = 8
	nsValue           = 0.5 // an id, a number or a score, decoded
	nsStringByte      = 0.1
	nsSlot            = 0.5 // the length of a list, or the start of a slice
	nsRow             = 0.6 // an inverse that is monotone
	nsCodedRow        = 1.5 // one that is not, and gathering its slots
)

// decodeTime returns the ns that decoding a form of a stripe takes, about.
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

// An estimator says about what values cost once encoded. It need not be close: most features gain a lot or nothing.
type estimator struct {
	seen [sampleTable]uint64
}

// valueBits estimates the bits that one value of the stripe takes, without its score, from a sample of those of all
// rows. v has the stripe's values.
func (e *estimator) valueBits(v *values, s Stripe) float64 {
	total := s.Elements()
	if total == 0 {
		return 0
	}
	clear(e.seen[:])
	n := min(total, sampledValues)
	distinct := 0
	var all uint64
	p := places{stripe: s}
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

// places finds where in a stripe's values those of its rows are: of ascending numbers, counted over all rows.
type places struct {
	stripe Stripe
	run    int
	before int // values of the rows of the runs before
}

func (p *places) find(i int) int {
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

// entropy returns the bits that each of n choices takes when k of them are of one kind.
func entropy(k, n int) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	p := float64(k) / float64(n)
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}
