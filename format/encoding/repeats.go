package encoding

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// Repeats (id 10 for ints, 23 for floats): sequences of values that stood before are copied from there, as in LZ77 but
// on whole values: lists that come again, and histories that moved on by a few ids.
//
//	+--------+------------------------+--------------------+-------------------+-----------------+
//	| 10 (1) | literals m (uvarint)   | steps s (uvarint)  | length of skips   | skips: ints, s  |
//	| or 23  |                        |                    | chunk (uvarint)   |                 |
//	+--------+------------------------+--------------------+-------------------+-----------------+
//	+-------------------+-----------------+-----------------------+--------------------+-------------------+
//	| length of copies  | copies: ints, s | length of distances   | distances: ints, s | literals: ints or |
//	| chunk (uvarint)   |                 | chunk (uvarint)       |                    | floats, m         |
//	+-------------------+-----------------+-----------------------+--------------------+-------------------+
//
// Each step takes skip (0 or more) values from the literals, then copies (1 or more) values one by one from distance
// (1 or more) values back; a distance may be shorter than the copy. After the last step the rest of the literals follow.
// m + s is at most n; all literals are used, and n values come out.
const (
	IDRepeats      ID = 10
	IDFloatRepeats ID = 23
)

const (
	nsCopy = 0.2 // a value that is copied
	nsStep = 8.0 // a step
)

func init() {
	registerInts(&intCodec{
		codec: codec{IDRepeats, "repeats", describeRepeats},
		turn:  80, deepest: 1, fewest: 256, offer: offerRepeats, encode: encodeRepeats,
		decode: decodeRepeats(&intFamily), seeks: seekFew,
	})
	registerFloats(&floatCodec{
		codec: codec{IDFloatRepeats, "repeats", describeRepeats},
		turn:  60, deepest: 1, fewest: 256, offer: offerFloatRepeats, encode: encodeFloatRepeats,
		floats: decodeRepeats(&floatFamily.family), doubles: decodeRepeats(&doubleFamily.family), seeks: seekFew,
	})
}

func offerRepeats(e *encoder, c *intChoice) {
	if !c.refused(IDRepeats) && c.bytes > c.n/8 {
		c.copied = e.tryRepeats(&c.best, IDRepeats, c.vals, c.valueBits)
	}
	if c.depth == 0 && c.copied < 0.5 && c.bytes > c.n/8 {
		e.tryDeltaRepeats(&c.best, c.vals, c.delta)
	}
}

func offerFloatRepeats(e *encoder, c *floatChoice) {
	if !c.refused(IDFloatRepeats) && c.bytes > c.n/8 {
		c.copied = e.tryRepeats(&c.best, IDFloatRepeats, c.vals.raw, c.valueBits)
	}
}

// encodeRepeats refuses values that do not repeat.
func encodeRepeats(e *encoder, dst []byte, m *memory, vals []int64, _ *intStats, depth int) ([]byte, bool) {
	return e.appendRepeats(dst, IDRepeats, m, vals, depth, (*encoder).appendInts)
}

func encodeFloatRepeats(e *encoder, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool) {
	return e.appendRepeats(dst, IDFloatRepeats, m, v.raw, depth, v.append)
}

// appendRepeats appends a chunk whose literals nest appends, or returns false where nothing repeats.
func (e *encoder) appendRepeats(dst []byte, id ID, m *memory, vals []int64, depth int, nest appendFunc) ([]byte, bool) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	p := e.newSteps(len(vals))
	if e.findRepeats(&p, vals); len(p.skips) == 0 {
		return dst, false
	}
	dst = e.appendSteps(append(dst, byte(id)), m, &p, depth)
	return nest(e, dst, m.kid(0), p.literals, depth+1), true
}

// minRepeat is the shortest copy that the writer makes: a step costs about as much as two literals.
const minRepeat = 3

// steps are what vals became.
type steps struct {
	skips, copies, distances []int64
	literals                 []int64
}

// findRepeats fills steps, whose slices have room for len(vals).
func (e *encoder) findRepeats(p *steps, vals []int64) {
	size := 1 << max(8, min(17, bits.Len(uint(len(vals)))))
	if cap(e.places) < size {
		e.places = make([]int32, size)
	}
	places := e.places[:size]
	clear(places)
	shift := 64 - bits.Len(uint(size-1))
	pair := func(i int) uint64 {
		return (uint64(vals[i])*0x9e3779b97f4a7c15 + uint64(vals[i+1])) * 0xd6e8feb86659fd93 >> shift
	}
	literal := 0 // the first value not yet written
	i := 0
	for i+minRepeat <= len(vals) {
		h := pair(i)
		from := int(places[h]) - 1
		places[h] = int32(i) + 1
		if from < 0 || vals[from] != vals[i] || vals[from+1] != vals[i+1] || vals[from+2] != vals[i+2] {
			i++
			continue
		}
		start, end := i, i+minRepeat
		for end < len(vals) && vals[end] == vals[from+end-i] {
			end++
		}
		distance := i - from
		for start > literal && start > distance && vals[start-1] == vals[start-1-distance] {
			start--
		}
		p.skips = append(p.skips, int64(start-literal))
		p.copies = append(p.copies, int64(end-start))
		p.distances = append(p.distances, int64(distance))
		p.literals = append(p.literals, vals[literal:start]...)
		for i += 2; i < end && i+minRepeat <= len(vals); i += 2 {
			places[pair(i)] = int32(i) + 1
		}
		i, literal = end, end
	}
	p.literals = append(p.literals, vals[literal:]...)
}

// newSteps returns steps with room for n values, in scratch that the caller releases.
func (e *encoder) newSteps(n int) steps {
	most := n/minRepeat + 1
	return steps{e.ints.grab(most)[:0], e.ints.grab(most)[:0], e.ints.grab(most)[:0], e.ints.grab(n)[:0]}
}

// appendSteps appends all that follows the id but the literals.
func (e *encoder) appendSteps(dst []byte, m *memory, p *steps, depth int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p.literals)))
	dst = binary.AppendUvarint(dst, uint64(len(p.skips)))
	mark := e.bytes.mark()
	chunk := e.bytes.grab(chunkRoom(len(p.skips)))
	for i, part := range [3][]int64{p.skips, p.copies, p.distances} {
		chunk = e.appendInts(chunk[:0], m.kid(1+i), part, depth+1)
		dst = appendNested(dst, chunk)
	}
	e.bytes.release(mark)
	return dst
}

// tryDeltaRepeats offers delta for vals whose differences repeat though they do not, as ages do that all grow by the same;
// delta is what it takes when they do not repeat either.
func (e *encoder) tryDeltaRepeats(b *best, vals []int64, delta candidate) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	sample := sampleInts(&e.ints, vals, repeatBlocks, repeatLength)
	diffs := e.ints.grab(len(sample))
	differences(diffs, sample)
	n := float64(len(vals))
	d := best{profile: e.profile, n: n}
	d.offer(delta.codec, delta.bytes, delta.ns)
	e.tryRepeatsOf(&d, IDRepeats, diffs, len(vals), 8*delta.bytes/n)
	if d.codec == IDRepeats {
		b.offer(IDDelta, d.bytes, d.ns+n*nsDelta)
	}
}

// The pieces of values by which repeats are judged.
const repeatBlocks, repeatLength = 4, 2048

// tryRepeats judges by longer pieces of vals what copying would leave, given what a value costs that is not copied, and
// returns the part of the values that would be copied, or 0 when it is too small for repeats to be more than chance.
func (e *encoder) tryRepeats(b *best, codec ID, vals []int64, bitsPerValue float64) float64 {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	return e.tryRepeatsOf(b, codec, sampleInts(&e.ints, vals, repeatBlocks, repeatLength), len(vals), bitsPerValue)
}

// tryRepeatsOf is tryRepeats by a sample of so many values in all.
func (e *encoder) tryRepeatsOf(b *best, codec ID, sample []int64, all int, bitsPerValue float64) float64 {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	p := e.newSteps(len(sample))
	count, literals, taken := 0, 0, 0
	for len(sample) > 0 {
		piece := sample[:min(len(sample), repeatLength)]
		if taken == 0 && all <= repeatBlocks*repeatLength {
			piece = sample
		}
		sample = sample[len(piece):]
		p = steps{p.skips[:0], p.copies[:0], p.distances[:0], p.literals[:0]}
		e.findRepeats(&p, piece)
		count += len(p.skips)
		literals += len(p.literals)
		taken += len(piece)
	}
	n := float64(all)
	scale := n / float64(taken)
	copied := float64(taken-literals) * scale
	if copied < n/8 {
		return 0
	}
	saved := copied*bitsPerValue/8 - float64(count)*scale*stepBytes
	b.offer(codec, b.bytes-saved+16, b.ns*(n-copied)/n+copied*nsCopy+float64(count)*scale*nsStep)
	return copied / n
}

// stepBytes is about what a step takes.
const stepBytes = 3.0

// A stepsChunk is a payload of repeats in its parts: step i takes literals up to literals[i], and copies from distances[i]
// values back to values from copies[i] to ends[i]-1.
type stepsChunk struct {
	m                                 int // literals in all
	copies, ends, literals, distances []int64
	chunk                             []byte // of the literals
}

// parseSteps reads and checks all but the literals, into scratch that the caller releases.
func (d *Decoder) parseSteps(n int, p []byte, depth int) (c stepsChunk, err error) {
	m, p, err := takeCount(p, n)
	if err != nil {
		return c, err
	}
	s, p, err := takeCount(p, n-m)
	if err != nil {
		return c, err
	}
	var parts [3][]int64
	for i := range parts {
		var chunk []byte
		if chunk, p, err = takeNested(p); err != nil {
			return c, err
		}
		parts[i] = d.ints.grab(s)
		if err := d.decodeInts(parts[i], chunk, depth+1); err != nil {
			return c, err
		}
	}
	c = stepsChunk{m, d.ints.grab(s), parts[1], parts[0], parts[2], p}
	end, used := int64(0), int64(0)
	for i, distance := range c.distances {
		skip, length := c.literals[i], c.ends[i]
		if uint64(skip) > uint64(int64(m)-used) {
			return c, errSteps
		}
		used += skip
		begin := end + skip
		if length < 1 || length > int64(n)-(int64(m)-used)-begin || distance < 1 || distance > begin {
			return c, errSteps
		}
		end = begin + length
		c.copies[i], c.ends[i], c.literals[i] = begin, end, used
	}
	if int64(n)-end != int64(m)-used {
		return c, errSteps
	}
	return c, nil
}

// decodeRepeats decodes repeats of a family.
func decodeRepeats[T any](f *family[T]) decodeFunc[T] {
	var decode decodeFunc[T]
	decode = func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		m, sm := d.ints.mark(), d.spans.mark()
		defer d.ints.release(m)
		defer d.spans.release(sm)
		c, err := d.parseSteps(n, p, depth)
		if err != nil {
			return err
		}
		if spans != nil {
			if pieces, few := c.origins(d, n, spans, len(dst)); few {
				return f.decodeAt(d, dst, c.m, pieces, c.chunk, depth+1)
			}
			return f.decodeWhole(d, decode, dst, n, spans, p, depth)
		}
		// The literals go to the end of dst. What is written never overtakes what is still to be read: the room between is
		// that of the copies to come.
		literals := dst[n-c.m:]
		if err := f.decode(d, literals, c.chunk, depth+1); err != nil {
			return err
		}
		copySteps(dst, literals, &c)
		return nil
	}
	return decode
}

// copySteps writes all values; literals are the end of dst. Hot.
func copySteps[T any](dst, literals []T, c *stepsChunk) {
	at, used := 0, 0
	copies, ends := c.copies[:len(c.distances)], c.ends[:len(c.distances)]
	for i, distance := range c.distances {
		begin, end := int(copies[i]), int(ends[i])
		used += copy(dst[at:begin], literals[used:])
		to, from := dst[begin:end], dst[begin-int(distance):begin]
		at = end
		// Where the two overlap, what was copied is copied again, twice as much each time.
		for len(to) > 0 {
			n := copy(to, from)
			to, from = to[n:], from[:len(from)+n]
		}
	}
}

// origins follows the taken values of spans back, copy by copy, to the literals that they come from, and returns these as
// spans of the literals. few is false where they are too many pieces.
//
//	values     l l l l|c c c|l l|c c c c|l          l from the literals, c copies
//	asked                            ^^^
//	from           ^    ^^                          in two pieces
func (c *stepsChunk) origins(d *Decoder, n int, spans []Span, taken int) (pieces []Span, few bool) {
	s := len(c.distances)
	limit := 2*taken + 8*len(spans) + 64
	pieces = d.spans.grab(limit)[:0]
	todo := make([]Span, 0, 64)
	for _, span := range spans {
		todo = append(todo[:0], span)
		for turns := 0; len(todo) > 0; turns++ {
			if len(pieces)+len(todo) >= limit || turns > limit {
				return nil, false
			}
			x := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if x.From >= x.To {
				continue
			}
			i := sort.Search(s, func(i int) bool { return c.ends[i] > int64(x.From) })
			// Literals before the copy of step i, or behind the last step.
			stop, before := int64(n), int64(c.m)
			if i < s {
				stop, before = c.copies[i], c.literals[i]
			}
			if from := int64(x.From); from < stop {
				to := min(int64(x.To), stop)
				pieces = append(pieces, Span{int32(before - (stop - from)), int32(before - (stop - to))})
				todo = append(todo, Span{int32(to), x.To})
				continue
			}
			// A copy that overlaps itself repeats what stands before it.
			distance := c.distances[i]
			into := (int64(x.From) - c.copies[i]) % distance
			k := min(int64(x.To), c.ends[i]) - int64(x.From)
			k = min(k, distance-into)
			source := c.copies[i] - distance + into
			todo = append(todo, Span{x.From + int32(k), x.To}, Span{int32(source), int32(source + k)})
		}
	}
	return pieces, true
}

func describeRepeats(x *description, p []byte) { x.nested(x.afterCount(x.afterCount(p)), 4, true) }
