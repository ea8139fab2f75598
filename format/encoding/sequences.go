package encoding

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// Sequences (id 10 for ints, 23 for floats): repeated values are copied from earlier ones, as in LZ77 but on whole
// values. They suit lists that repeat, and histories that grow by a few ids from row to row.
//
//	+--------+------------------------+-----------------------+-------------------+-----------------+
//	| 10 (1) | literals m (uvarint)   | sequences s (uvarint) | length of skips   | skips: ints, s  |
//	| or 23  |                        |                       | chunk (uvarint)   |                 |
//	+--------+------------------------+-----------------------+-------------------+-----------------+
//	+-------------------+-----------------+-----------------------+--------------------+-------------------+
//	| length of copies  | copies: ints, s | length of distances   | distances: ints, s | literals: ints or |
//	| chunk (uvarint)   |                 | chunk (uvarint)       |                    | floats, m         |
//	+-------------------+-----------------+-----------------------+--------------------+-------------------+
//
// Each sequence takes skip (0 or more) values from the literals, then copies (1 or more) values one by one from
// distance (1 or more) values back; a distance may be shorter than the copy. After the last sequence the rest of the
// literals follow. m + s is at most n; all literals are used, and n values come out.
const (
	IDSequences      ID = 10
	IDFloatSequences ID = 23
)

const (
	nsCopy     = 0.2 // a value that is copied
	nsSequence = 8.0 // a sequence
)

func init() {
	registerInts(&intCodec{
		codec: codec{IDSequences, "sequences", describeSequences},
		turn:  80, deepest: 1, fewest: 256, offer: offerSequences, encode: encodeSequences,
		decode: decodeSequences(&intFamily), seeks: seekFew,
	})
	registerFloats(&floatCodec{
		codec: codec{IDFloatSequences, "sequences", describeSequences},
		turn:  60, deepest: 1, fewest: 256, offer: offerFloatSequences, encode: encodeFloatSequences,
		floats: decodeSequences(&floatFamily.family), doubles: decodeSequences(&doubleFamily.family), seeks: seekFew,
	})
}

func offerSequences(e *encoder, c *intChoice) {
	if !c.refused(IDSequences) && c.bytes > c.n/8 {
		c.copied = e.trySequences(&c.best, IDSequences, c.vals, c.valueBits)
	}
	if c.depth == 0 && c.copied < 0.5 && c.bytes > c.n/8 {
		e.tryDeltaSequences(&c.best, c.vals, c.delta)
	}
}

func offerFloatSequences(e *encoder, c *floatChoice) {
	if !c.refused(IDFloatSequences) && c.bytes > c.n/8 {
		c.copied = e.trySequences(&c.best, IDFloatSequences, c.vals.raw, c.valueBits)
	}
}

// encodeSequences returns false if no values repeat.
func encodeSequences(e *encoder, dst []byte, m *memory, vals []int64, _ *intStats, depth int) ([]byte, bool) {
	return e.appendSequences(dst, IDSequences, m, vals, depth, (*encoder).appendInts)
}

func encodeFloatSequences(e *encoder, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool) {
	return e.appendSequences(dst, IDFloatSequences, m, v.raw, depth, v.append)
}

// appendSequences appends a chunk, or returns false if no values repeat. nest appends the literals.
func (e *encoder) appendSequences(dst []byte, id ID, m *memory, vals []int64, depth int, nest appendFunc) ([]byte,
	bool) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	p := e.newSequences(len(vals))
	if e.findSequences(&p, vals); len(p.skips) == 0 {
		return dst, false
	}
	dst = e.appendSequenceParts(append(dst, byte(id)), m, &p, depth)
	return nest(e, dst, m.kid(0), p.literals, depth+1), true
}

// minCopy is the shortest copy that the writer makes: a sequence costs about as much as two literals.
const minCopy = 3

// sequences are values, divided into sequences and literals.
type sequences struct {
	skips, copies, distances []int64
	literals                 []int64
}

// findSequences sets p from vals. p is from newSequences(len(vals)).
func (e *encoder) findSequences(p *sequences, vals []int64) {
	size := 1 << max(8, min(17, bits.Len(uint(len(vals)))))
	if cap(e.positions) < size {
		e.positions = make([]int32, size)
	}
	positions := e.positions[:size]
	clear(positions)
	shift := 64 - bits.Len(uint(size-1))
	pair := func(i int) uint64 {
		return (uint64(vals[i])*0x9e3779b97f4a7c15 + uint64(vals[i+1])) * 0xd6e8feb86659fd93 >> shift
	}
	literal := 0 // the first value not yet written
	i := 0
	for i+minCopy <= len(vals) {
		h := pair(i)
		from := int(positions[h]) - 1
		positions[h] = int32(i) + 1
		if from < 0 || vals[from] != vals[i] || vals[from+1] != vals[i+1] || vals[from+2] != vals[i+2] {
			i++
			continue
		}
		start, end := i, i+minCopy
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
		for i += 2; i < end && i+minCopy <= len(vals); i += 2 {
			positions[pair(i)] = int32(i) + 1
		}
		i, literal = end, end
	}
	p.literals = append(p.literals, vals[literal:]...)
}

// newSequences returns sequences with capacity for n values, in scratch that the caller releases.
func (e *encoder) newSequences(n int) sequences {
	most := n/minCopy + 1
	return sequences{e.ints.grab(most)[:0], e.ints.grab(most)[:0], e.ints.grab(most)[:0], e.ints.grab(n)[:0]}
}

// appendSequenceParts appends the payload without the literals.
func (e *encoder) appendSequenceParts(dst []byte, m *memory, p *sequences, depth int) []byte {
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

// tryDeltaSequences offers delta if the differences of vals repeat although vals do not, such as lists of ages that all
// grow by the same amount. delta is its cost without repeated differences.
func (e *encoder) tryDeltaSequences(b *best, vals []int64, delta candidate) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	sample := sampleInts(&e.ints, vals, sequenceBlocks, sequenceLength)
	diffs := e.ints.grab(len(sample))
	differences(diffs, sample)
	n := float64(len(vals))
	d := best{profile: e.profile, n: n}
	d.offer(delta.codec, delta.bytes, delta.ns)
	e.trySequencesOf(&d, IDSequences, diffs, len(vals), 8*delta.bytes/n)
	if d.codec == IDSequences {
		b.offer(IDDelta, d.bytes, d.ns+n*nsDelta)
	}
}

// The cost of sequences is estimated from so many blocks of so many values.
const sequenceBlocks, sequenceLength = 4, 2048

// trySequences offers sequences of vals to b, estimated from a sample. bitsPerValue is the cost of a value that is not
// copied. It returns the share of values that would be copied, or 0 if it is so small that it may be chance.
func (e *encoder) trySequences(b *best, codec ID, vals []int64, bitsPerValue float64) float64 {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	return e.trySequencesOf(b, codec, sampleInts(&e.ints, vals, sequenceBlocks, sequenceLength), len(vals),
		bitsPerValue)
}

// trySequencesOf is trySequences with a sample of all values.
func (e *encoder) trySequencesOf(b *best, codec ID, sample []int64, all int, bitsPerValue float64) float64 {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	p := e.newSequences(len(sample))
	count, literals, taken := 0, 0, 0
	for len(sample) > 0 {
		piece := sample[:min(len(sample), sequenceLength)]
		if taken == 0 && all <= sequenceBlocks*sequenceLength {
			piece = sample
		}
		sample = sample[len(piece):]
		p = sequences{p.skips[:0], p.copies[:0], p.distances[:0], p.literals[:0]}
		e.findSequences(&p, piece)
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
	saved := copied*bitsPerValue/8 - float64(count)*scale*sequenceBytes
	b.offer(codec, b.bytes-saved+16, b.ns*(n-copied)/n+copied*nsCopy+float64(count)*scale*nsSequence)
	return copied / n
}

// sequenceBytes is the approximate size of a sequence.
const sequenceBytes = 3.0

// A sequencesChunk is a payload in its parts: sequence i takes literals up to literals[i], and copies from
// distances[i] values back to values from copies[i] to ends[i]-1.
type sequencesChunk struct {
	m                                 int // literals in all
	copies, ends, literals, distances []int64
	chunk                             []byte // of the literals
}

// parseSequences decodes and checks all but the literals, in scratch that the caller releases.
func (d *Decoder) parseSequences(n int, p []byte, depth int) (c sequencesChunk, err error) {
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
	c = sequencesChunk{m, d.ints.grab(s), parts[1], parts[0], parts[2], p}
	end, used := int64(0), int64(0)
	for i, distance := range c.distances {
		skip, length := c.literals[i], c.ends[i]
		if uint64(skip) > uint64(int64(m)-used) {
			return c, errSequences
		}
		used += skip
		begin := end + skip
		if length < 1 || length > int64(n)-(int64(m)-used)-begin || distance < 1 || distance > begin {
			return c, errSequences
		}
		end = begin + length
		c.copies[i], c.ends[i], c.literals[i] = begin, end, used
	}
	if int64(n)-end != int64(m)-used {
		return c, errSequences
	}
	return c, nil
}

// decodeSequences decodes sequences of a family.
func decodeSequences[T any](f *family[T]) decodeFunc[T] {
	var decode decodeFunc[T]
	decode = func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		m, sm := d.ints.mark(), d.spans.mark()
		defer d.ints.release(m)
		defer d.spans.release(sm)
		c, err := d.parseSequences(n, p, depth)
		if err != nil {
			return err
		}
		if spans != nil {
			if pieces, few := c.origins(d, n, spans, len(dst)); few {
				return f.decodeAt(d, dst, c.m, pieces, c.chunk, depth+1)
			}
			return f.decodeWhole(d, decode, dst, n, spans, p, depth)
		}
		// The literals are decoded to the end of dst. Writing never overtakes the literals still to be read: the space
		// between is as large as the copies still to come.
		literals := dst[n-c.m:]
		if err := f.decode(d, literals, c.chunk, depth+1); err != nil {
			return err
		}
		copySequences(dst, literals, &c)
		return nil
	}
	return decode
}

// copySequences writes all values; literals are the end of dst. Hot.
func copySequences[T any](dst, literals []T, c *sequencesChunk) {
	at, used := 0, 0
	copies, ends := c.copies[:len(c.distances)], c.ends[:len(c.distances)]
	for i, distance := range c.distances {
		begin, end := int(copies[i]), int(ends[i])
		used += copy(dst[at:begin], literals[used:])
		to, from := dst[begin:end], dst[begin-int(distance):begin]
		at = end
		// If to and from overlap, the copied values are copied again, twice as many each time.
		for len(to) > 0 {
			n := copy(to, from)
			to, from = to[n:], from[:len(from)+n]
		}
	}
}

// origins follows the values of spans, so many in all (taken), back through copies to their literals, and returns these
// as spans of the literals. few is false if there would be too many pieces.
//
//	values     l l l l|c c c|l l|c c c c|l          l from the literals, c copies
//	asked                            ^^^
//	from           ^    ^^                          in two pieces
func (c *sequencesChunk) origins(d *Decoder, n int, spans []Span, taken int) (pieces []Span, few bool) {
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
			// Literals before the copy of sequence i, or behind the last one.
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

func describeSequences(x *description, p []byte) { x.nested(x.afterCount(x.afterCount(p)), 4, true) }
