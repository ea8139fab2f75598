package encoding

import (
	"math"
	"math/bits"
	"slices"
)

// An intCodec is a codec of ints.
type intCodec struct {
	codec

	// turn is the order in which the chooser considers codecs, low ones first. A codec whose offer reads larger samples
	// has a late turn, so that it can compare with the best so far. deepest is the largest depth, and fewest the
	// smallest number of values, at which the codec is considered.
	turn, deepest, fewest int
	// offer calls c.offer with the codec's expected cost, if it is suitable; nil: the chooser does not consider it.
	offer func(e *encoder, c *intChoice)
	// encode appends a chunk, or returns false if the codec turns out unsuitable.
	encode func(e *encoder, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool)
	// below, unless 0: if a chunk is at least this share of the size of a frame of reference, the latter is written
	// instead.
	below float64

	decode decodeFunc[int64]
	seeks  seeking
	stream *intStream // nil: none
}

// An intStream decodes a payload in pieces. Its state is in the Decoder.
type intStream struct {
	open  func(d *Decoder, n int, p []byte) error
	next  func(d *Decoder, dst []int64) error // len(dst) is a multiple of bitpack.BlockLen, except for the last piece
	close func(d *Decoder) error              // returns an error if the payload does not end here
}

// eachBlock decodes a chunk of n ints in blocks that stay in the L1 cache. It calls f with each block, which f may
// change, and the position of its first value, until f returns an error. done is false if there is an error, or if the
// codec has no stream: then nothing was decoded.
func (d *Decoder) eachBlock(n int, src []byte, depth int, f func(at int, block []int64) error) (done bool, err error) {
	id, p, err := head(src)
	if err != nil {
		return false, err
	}
	if depth > maxDepth {
		return false, errDepth
	}
	if id >= idEnd || intStreams[id] == nil {
		return false, nil
	}
	err = intStreams[id].each(d, n, p, f)
	return err == nil, err
}

// each is eachBlock for a payload.
func (s *intStream) each(d *Decoder, n int, p []byte, f func(at int, block []int64) error) error {
	if err := s.open(d, n, p); err != nil {
		return err
	}
	var err error
	for at := 0; at < n && err == nil; {
		block := d.blocks[:min(n-at, len(d.blocks))]
		if err = s.next(d, block); err == nil {
			err = f(at, block)
		}
		at += len(block)
	}
	if end := s.close(d); err == nil {
		err = end
	}
	return err
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

// An intChoice is the state of choosing a codec of ints.
type intChoice struct {
	best
	vals   []int64
	stats  *intStats
	sample []int64 // blocks of vals, spread evenly
	depth  int
	delta  candidate // the cost of delta
	copied float64   // the share of the values that sequences would copy
}

// intStats are statistics from one pass over all values.
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

// exact returns the size of the smallest chunk among the codecs whose size is known from the stats.
func (s *intStats) exact() float64 {
	width := min(s.width, bits.Len64(uint64(s.dmax)-uint64(s.dmin)))
	size := float64(s.n) * float64(width) / 8
	return min(size, s.runsSize()) + 12
}

// runsSize estimates the bytes of run-length.
func (s *intStats) runsSize() float64 {
	return float64(s.runs) * float64(s.width+bits.Len(uint(s.n/s.runs))+1) / 8
}

// appendInts appends a chunk of vals in the codec that m recalls or, if that is not suitable any more, a chosen one.
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

// appendIntsAs appends vals in a codec, or returns false if the codec turns out unsuitable.
func (e *encoder) appendIntsAs(codec ID, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	c, start := intCodecs[codec], len(dst)
	dst, ok := c.encode(e, dst, m, vals, s, depth)
	if ok && c.below > 0 && float64(len(dst)-start) >= c.below*float64(sizeFOR(s.n, s.width, s.base)) {
		dst = appendFOR(dst[:start], vals, s.width, s.base)
	}
	return dst, ok
}

// chooseInts returns the codec with the lowest expected cost for vals, from s and a sample. without has a bit for each
// codec that must not be chosen.
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

// sampleInts returns so many blocks of vals, spread evenly, or vals itself if it is no longer than these.
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

// estimateDistinct estimates how many distinct values n values have, from the table of a sample of sn values
// (Charikar's estimator): a value seen once in the sample stands for sqrt(n/sn) distinct values, the others for
// themselves.
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
