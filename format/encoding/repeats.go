package encoding

import (
	"encoding/binary"
	"math/bits"
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
	prev := sample[0]
	for i, v := range sample {
		diffs[i] = v - prev
		prev = v
	}
	d := best{profile: e.profile}
	d.offer(delta.codec, delta.bytes, delta.ns)
	n := float64(len(vals))
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

// decodeSteps decodes the payload of repeats; the literals come from decode.
func decodeSteps[T any](d *Decoder, dst []T, p []byte, depth int, decode func(*Decoder, []T, []byte, int) error) error {
	m, p, err := takeCount(p, len(dst))
	if err != nil {
		return err
	}
	s, p, err := takeCount(p, len(dst)-m)
	if err != nil {
		return err
	}
	mark := d.ints.mark()
	defer d.ints.release(mark)
	var parts [3][]int64
	for i := range parts {
		var chunk []byte
		if chunk, p, err = takeNested(p); err != nil {
			return err
		}
		parts[i] = d.ints.grab(s)
		if err := d.decodeInts(parts[i], chunk, depth+1); err != nil {
			return err
		}
	}
	// The literals go to the end of dst. What is written never overtakes what is still to be read: the room between is
	// that of the copies to come.
	literals := dst[len(dst)-m:]
	if err := decode(d, literals, p, depth+1); err != nil {
		return err
	}
	skips, copies, distances := parts[0], parts[1][:s], parts[2][:s]
	at := 0
	for i, skip := range skips {
		length, distance := copies[i], distances[i]
		if uint64(skip) > uint64(len(literals)) {
			return errSteps
		}
		at += copy(dst[at:], literals[:skip])
		literals = literals[skip:]
		room := len(dst) - len(literals) - at
		if length < 1 || length > int64(room) || distance < 1 || distance > int64(at) {
			return errSteps
		}
		to, from := dst[at:at+int(length)], dst[at-int(distance):at]
		at += int(length)
		// Where the two overlap, what was copied is copied again, twice as much each time.
		for len(to) > 0 {
			n := copy(to, from)
			to, from = to[n:], from[:len(from)+n]
		}
	}
	if len(dst)-at != len(literals) {
		return errSteps
	}
	return nil
}
