package encoding

import (
	"math"
	"math/bits"
	"slices"
)

// An intCodec is a codec of ints.
type intCodec struct {
	codec

	// turn says when the writer considers the codec: lower ones first. A codec that looks at longer pieces of the
	// values comes late, and sees the best so far. deepest and fewest are the depth and the count of values up to and
	// from which it is considered.
	turn, deepest, fewest int
	// offer says to c what the codec would cost, if it can serve; nil: it is not chosen so.
	offer func(e *encoder, c *intChoice)
	// encode appends a chunk, or returns false where the codec serves badly after all.
	encode func(e *encoder, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool)
	// below is the share of the size of a frame of reference that a chunk must stay below, or that is written in its
	// place. 0: any size will do.
	below float64

	decode decodeFunc[int64]
	seeks  seeking
	stream *intStream // nil: none
}

// An intStream decodes a payload in pieces. What it needs stands in the Decoder.
type intStream struct {
	open  func(d *Decoder, n int, p []byte) error
	next  func(d *Decoder, dst []int64) error // but for the last piece, each is a multiple of bitpack.BlockLen
	close func(d *Decoder) error              // says whether the payload ended as it must
}

var (
	intCodecs  [idEnd]*intCodec
	intStreams [idEnd]*intStream
	intTurns   []*intCodec // those that are offered, by turn
)

func registerInts(c *intCodec) {
	c.register()
	intCodecs[c.id], intStreams[c.id] = c, c.stream
	intFamily.readers[c.id] = reader[int64]{c.decode, c.seeks}
	if c.offer != nil {
		intTurns = append(intTurns, c)
		slices.SortFunc(intTurns, func(a, b *intCodec) int { return a.turn - b.turn })
	}
}

// An intChoice is what the choice of a codec of ints knows.
type intChoice struct {
	best
	vals   []int64
	stats  *intStats
	sample []int64 // blocks of vals from all over
	depth  int
	delta  candidate // what delta costs
	copied float64   // the share of the values that sequences would copy
}

// intStats is what one pass over all values tells.
type intStats struct {
	n          int
	min, max   int64
	dmin, dmax int64 // of the differences, which wrap
	runs       int
	width      int   // of a frame of reference
	base       int64 // and its minimum: the smaller of the signed and the unsigned one
}

// scan returns the stats of vals, of which there is at least one.
func scan(vals []int64) intStats {
	prev := vals[0]
	s := intStats{n: len(vals), min: prev, max: prev, runs: 1}
	if len(vals) > 1 {
		s.dmin = vals[1] - prev
		s.dmax = s.dmin
	}
	lo, hi, dlo, dhi, runs := s.min, s.max, s.dmin, s.dmax, 1
	for _, v := range vals[1:] {
		d := v - prev
		prev = v
		lo, hi = min(lo, v), max(hi, v)
		dlo, dhi = min(dlo, d), max(dhi, d)
		if d != 0 {
			runs++
		}
	}
	s.min, s.max, s.dmin, s.dmax, s.runs = lo, hi, dlo, dhi, runs
	s.base, s.width = lo, bits.Len64(uint64(hi)-uint64(lo))
	if lo < 0 && hi >= 0 && s.width == 64 {
		ulo, uhi := ^uint64(0), uint64(0)
		for _, v := range vals {
			ulo, uhi = min(ulo, uint64(v)), max(uhi, uint64(v))
		}
		if w := bits.Len64(uhi - ulo); w < s.width {
			s.base, s.width = int64(ulo), w
		}
	}
	return s
}

// exact returns the bytes of the smallest of the chunks whose size follows from the stats.
func (s *intStats) exact() float64 {
	width := min(s.width, bits.Len64(uint64(s.dmax)-uint64(s.dmin)))
	size := float64(s.n) * float64(width) / 8
	return min(size, s.runsSize()) + 12
}

// runsSize returns about how many bytes the runs take.
func (s *intStats) runsSize() float64 {
	return float64(s.runs) * float64(s.width+bits.Len(uint(s.n/s.runs))+1) / 8
}

// appendInts appends a chunk of vals, choosing its codec, or using m's again while it serves.
func (e *encoder) appendInts(dst []byte, m *memory, vals []int64, depth int) []byte {
	if len(vals) == 0 {
		return appendConstant(dst, 0)
	}
	s := scan(vals)
	if s.min == s.max {
		return appendConstant(dst, s.min)
	}
	dst, _ = m.appendAgain(dst, len(vals), m != nil && !m.beaten(len(vals), s.exact()), func(without uint64) ID {
		codec := e.chooseInts(vals, &s, depth, without)
		m.turn(codec)
		return codec
	}, func(dst []byte, codec ID) ([]byte, bool) { return e.appendIntsAs(codec, dst, m, vals, &s, depth) })
	return dst
}

// appendIntsAs appends vals in a codec, or returns false when that serves badly after all.
func (e *encoder) appendIntsAs(codec ID, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	c, start := intCodecs[codec], len(dst)
	dst, ok := c.encode(e, dst, m, vals, s, depth)
	if ok && c.below > 0 && float64(len(dst)-start) >= c.below*float64(sizeFOR(s.n, s.width, s.base)) {
		dst = appendFOR(dst[:start], vals, s.width, s.base)
	}
	return dst, ok
}

// chooseInts returns the codec that should cost least for vals, judged by s and by a sample. without holds a bit for
// each codec that is out of the question.
func (e *encoder) chooseInts(vals []int64, s *intStats, depth int, without uint64) ID {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	c := intChoice{best: best{profile: e.profile, n: float64(s.n), without: without}, vals: vals, stats: s,
		depth: depth}
	c.sample = sampleInts(&e.ints, vals, 16, 256)
	for _, x := range intTurns {
		if depth <= x.deepest && s.n >= x.fewest {
			x.offer(e, &c)
		}
	}
	return c.codec
}

// sampleInts returns blocks of vals from all over it, one after the other, or vals itself when that is no more.
func sampleInts(a *arena[int64], vals []int64, blocks, length int) []int64 {
	if len(vals) <= blocks*length {
		return vals
	}
	s := a.grab(blocks * length)
	for i := range blocks {
		from := i * (len(vals) - length) / (blocks - 1)
		copy(s[i*length:(i+1)*length], vals[from:])
	}
	return s
}

// estimateDistinct returns how many distinct values n values have, judged by the table of a sample of sn: those seen
// more than once are all there are of their kind, those seen once stand for others (Charikar's estimator).
func estimateDistinct(t *table, sn, n int) int {
	once := 0
	for _, c := range t.counts {
		if c == 1 {
			once++
		}
	}
	k := len(t.counts) - once + int(float64(once)*math.Sqrt(float64(n)/float64(sn)))
	return max(1, min(k, n))
}
