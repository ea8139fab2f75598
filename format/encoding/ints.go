package encoding

import (
	"math"
	"math/bits"
)

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

// candidate is a codec with what it is expected to cost.
type candidate struct {
	codec ID
	bytes float64
	ns    float64
}

// best keeps the candidate of the lowest score.
type best struct {
	profile Profile
	candidate
	score float64
}

func (b *best) offer(codec ID, bytes, ns float64) {
	if s := b.profile.score(bytes, ns); b.codec == 0 || s < b.score {
		b.candidate, b.score = candidate{codec, bytes, ns}, s
	}
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
	start := len(dst)
	if codec := m.recall(len(vals)); codec != 0 && !m.beaten(len(vals), s.exact()) {
		var ok bool
		if dst, ok = e.appendIntsAs(codec, dst, m, vals, &s, depth); ok && !m.drifted(len(vals), len(dst)-start) {
			m.note(codec, len(vals), 0, false)
			return dst
		}
		dst = dst[:start]
	}
	without := uint64(0)
	for {
		codec := e.chooseInts(vals, &s, depth, without)
		m.turn(codec)
		var ok bool
		if dst, ok = e.appendIntsAs(codec, dst, m, vals, &s, depth); ok {
			m.note(codec, len(vals), len(dst)-start, true)
			return dst
		}
		dst, without = dst[:start], without|1<<codec
	}
}

// appendIntsAs appends vals in a codec, or returns false when that serves badly after all. Only dictionaries
// and repeats do: the others fall back on the codec that they build upon.
func (e *encoder) appendIntsAs(codec ID, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	switch codec {
	case IDPlain:
		return appendPlain(dst, vals, plainWidth(s.min, s.max)), true
	case IDDelta:
		return e.appendDelta(dst, m, vals, depth), true
	case IDRuns:
		return e.appendRuns(dst, m, vals, s.runs, depth), true
	case IDPatched:
		if width, base, _ := choosePatched(vals, s.min, s.max, s.base); width < s.width {
			return e.appendPatched(dst, m, vals, width, base, depth), true
		}
	case IDDictionary:
		mark := e.ints.mark()
		defer e.ints.release(mark)
		codes := e.ints.grab(len(vals))
		if !e.table.add(codes, vals, e.dictionaryLimit(s)) {
			return dst, false
		}
		return e.appendDictionary(dst, m, &e.table, codes, depth), true
	case IDRepeats:
		mark := e.ints.mark()
		defer e.ints.release(mark)
		p := e.newSteps(len(vals))
		if e.findRepeats(&p, vals); len(p.skips) == 0 {
			return dst, false
		}
		dst = e.appendSteps(append(dst, byte(IDRepeats)), m, &p, depth)
		return e.appendInts(dst, m.kid(0), p.literals, depth+1), true
	case IDRANS:
		start := len(dst)
		if dst = e.appendRANS(dst, vals, s); float64(len(dst)-start) < float64(sizeFOR(s.n, s.width, s.base)) {
			return dst, true
		}
		dst = dst[:start]
	case IDZstd:
		mark := e.bytes.mark()
		defer e.bytes.release(mark)
		inner := appendPlain(e.bytes.grab(chunkRoom(len(vals)))[:0], vals, plainWidth(s.min, s.max))
		start := len(dst)
		if dst = e.appendZstdInts(dst, inner); float64(len(dst)-start) < (1-zstdMargin)*float64(sizeFOR(s.n, s.width, s.base)) {
			return dst, true
		}
		dst = dst[:start]
	}
	return appendFOR(dst, vals, s.width, s.base), true
}

// dictionaryLimit returns how many distinct values a dictionary may have before it must cost more than it saves.
func (e *encoder) dictionaryLimit(s *intStats) int {
	limit := 0
	for w := 1; w < s.width && w < 31; w++ {
		// k values of up to w bits of code: each value costs its own bits less what ascending order saves.
		k := 1 << w
		saved := (float64(s.n)*float64(s.width-w)/8)*e.profile.NsPerByte() - float64(s.n)*lookUpCost(k)
		if k > s.n {
			k = s.n
		}
		cost := float64(k) * float64(max(1, s.width-w+2)) / 8 * e.profile.NsPerByte()
		if saved > cost {
			limit = max(limit, k)
		} else if saved > 0 {
			limit = max(limit, int(float64(k)*saved/cost))
		}
	}
	return limit
}

// chooseInts returns the codec that should cost least for vals, judged by s and by a sample. without holds a bit for
// each codec that is out of the question.
func (e *encoder) chooseInts(vals []int64, s *intStats, depth int, without uint64) ID {
	n := float64(s.n)
	b := best{profile: e.profile}
	b.offer(IDFOR, float64(sizeFOR(s.n, s.width, s.base)), n*nsFOR)
	b.offer(IDPlain, 2+n*float64(plainWidth(s.min, s.max)), n*nsPlain)
	if depth >= maxDepth {
		return b.codec
	}
	mark := e.ints.mark()
	defer e.ints.release(mark)
	sample := sampleInts(&e.ints, vals, 16, 256)
	sn := len(sample)

	diffs := e.ints.grab(sn)
	prev := sample[0]
	for i, v := range sample {
		diffs[i] = v - prev
		prev = v
	}
	_, _, patched := choosePatched(diffs, s.dmin, s.dmax, s.dmin)
	whole := float64(bits.Len64(uint64(s.dmax)-uint64(s.dmin))) / 8
	delta := n*min(whole, patched/float64(sn)) + 12
	b.offer(IDDelta, delta, n*(nsFOR+nsDelta))
	if r := float64(s.runs); s.runs < s.n/2 {
		b.offer(IDRuns, s.runsSize()+12, n*nsRunFill+r*(nsRun+2*nsFOR))
	}
	if s.width > 1 {
		if w, _, size := choosePatched(sample, s.min, s.max, s.base); w < s.width {
			const exceptions = 0.02 // about, where patching pays at all
			b.offer(IDPatched, size*n/float64(sn)+12, n*(nsFOR+nsPatch*exceptions))
		}
	}
	distinct := 0
	if without>>IDDictionary&1 == 0 && s.width > 2 {
		codes := e.ints.grab(sn)
		e.table.add(codes, sample, sn)
		k := estimateDistinct(&e.table, sn, s.n)
		if kw := bits.Len(uint(k)); kw < s.width {
			bytes := float64(k)*float64(max(1, s.width-kw+2))/8 + n*float64(kw)/8 + 16
			distinct = k
			b.offer(IDDictionary, bytes, n*(nsFOR+lookUpCost(k)))
		}
	}
	if s.n >= 256 && b.bytes > n/16 {
		e.tryRANS(&b, sample, s)
	}
	copied := 0.0
	if s.n >= 256 && depth <= 1 && without>>IDRepeats&1 == 0 && b.bytes > n/8 {
		perValue := 8 * b.bytes / n
		if b.codec == IDDictionary {
			perValue = float64(bitsFor(distinct))
		}
		copied = e.tryRepeats(&b, IDRepeats, vals, perValue)
	}
	if s.n >= 256 && depth == 0 && copied < 0.5 && b.bytes > n/8 {
		e.tryDeltaRepeats(&b, vals, candidate{IDDelta, delta, n * (nsFOR + nsDelta)})
	}
	if s.n >= 512 && depth <= 2 && copied < 0.5 {
		e.tryZstd(&b, vals, s)
	}
	return b.codec
}

// tryZstd compresses longer pieces of vals, plain, and offers that where it wins by the margin.
func (e *encoder) tryZstd(b *best, vals []int64, s *intStats) {
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	defer e.bytes.release(bmark)
	sample := sampleInts(&e.ints, vals, 4, 1024)
	width := plainWidth(s.min, s.max)
	raw := appendPlain(e.bytes.grab(chunkRoom(len(sample)))[:0], sample, width)
	packed := e.compress(e.bytes.grab(len(raw) + 64)[:0], raw)
	n := float64(s.n)
	bytes := float64(len(packed)) * n / float64(len(sample))
	if bytes < (1-zstdMargin)*b.bytes {
		b.offer(IDZstd, bytes, n*(nsPlain+nsZstdByte*float64(width)))
	}
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

// estimateDistinct returns how many distinct values n values have, judged by the table of a sample of sn: those seen more
// than once are all there are of their kind, those seen once stand for others (Charikar's estimator).
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
