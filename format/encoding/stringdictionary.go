package encoding

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
)

// Dictionary of strings (id 50): the code of each string, then the distinct strings. The length of a distinct string is
// not stored: it is the length of the strings that use it, so each is used at least once.
//
//	+--------+----------------+------------------+----------------+--------------------+
//	| 50 (1) | distinct k     | length of codes  | codes: ints, n | distinct strings:  |
//	|        | (uvarint)      | chunk (uvarint)  |                | strings, k         |
//	+--------+----------------+------------------+----------------+--------------------+
const IDStringDictionary ID = 50

const nsStringCopy = 8.0 // a string

func init() {
	registerStrings(&stringCodec{
		codec: codec{IDStringDictionary, "dict", describeCounted},
		turn:  30, offer: offerStringDictionary, encode: encodeStringDictionary, decode: decodeStringDictionary,
	})
}

// offerStringDictionary estimates the distinct strings by the hashes of a sample.
func offerStringDictionary(e *encoder, c *stringChoice) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	n := len(c.offsets) - 1
	positions := e.ints.grab(n)
	for i := range positions {
		positions[i] = int64(i)
	}
	positions = sampleInts(&e.ints, positions, 16, 256)
	hashes := e.ints.grab(len(positions))
	for i, at := range positions {
		s := c.data[c.offsets[at]-c.offsets[0] : c.offsets[at+1]-c.offsets[0]]
		hashes[i] = int64(maphash.Bytes(e.words.seed(), s))
	}
	if k := e.distinct(hashes, n); k <= n/2 {
		words := c.size * float64(k) / float64(n)
		bytes := words*min(1, c.ratio*1.5) + float64(n*bitsFor(k))/8 + 16
		c.offer(IDStringDictionary, bytes, float64(n)*(nsFOR+nsStringCopy)+c.size*nsStringByte+words*nsZstdByte)
	}
}

// encodeStringDictionary returns false if more than half of the strings are distinct.
func encodeStringDictionary(e *encoder, dst []byte, m *memory, data []byte, offsets []int32, depth int) ([]byte, bool) {
	n := len(offsets) - 1
	mark := e.ints.mark()
	defer e.ints.release(mark)
	codes := e.ints.grab(n)
	e.words.reset()
	for i := range n {
		s := data[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		c := e.words.add(s)
		if len(e.words.offsets)-1 > n/2+1 {
			return dst, false
		}
		codes[i] = int64(c)
	}
	dst = append(dst, byte(IDStringDictionary))
	dst = binary.AppendUvarint(dst, uint64(len(e.words.offsets)-1))
	bmark := e.bytes.mark()
	chunk := e.appendInts(e.bytes.grab(chunkRoom(n))[:0], m.kid(0), codes, depth+1)
	dst = appendNested(dst, chunk)
	e.bytes.release(bmark)
	// The distinct strings are not encoded as a dictionary, which would overwrite e.words.
	inner := IDStringZstd
	if e.profile.score(float64(len(e.words.data)), 0) < nsZstdByte*float64(len(e.words.data)) ||
		len(e.words.data) < 64 {
		inner = IDStringPlain
	}
	dst, _ = e.appendStringsAs(inner, dst, nil, e.words.data, e.words.offsets, depth+1)
	return dst, true
}

func decodeStringDictionary(d *Decoder, dst []byte, offsets []int32, p []byte, depth int) error {
	n := max(0, len(offsets)-1)
	k, p, err := takeCount(p, n)
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	m, m32, mb := d.ints.mark(), d.int32s.mark(), d.bytes.mark()
	defer d.ints.release(m)
	defer d.int32s.release(m32)
	defer d.bytes.release(mb)
	codes := d.ints.grab(n)
	if err := d.decodeInts(codes, chunk, depth+1); err != nil {
		return err
	}
	// starts[c+1] is the length of entry c, or -1 if no string has used it yet, and below the end of entry c.
	starts := d.int32s.grab(k + 1)
	fill(starts, -1)
	starts[0] = 0
	for i, c := range codes {
		if uint64(c) >= uint64(k) {
			return errCode
		}
		length := offsets[i+1] - offsets[i]
		if length < 0 {
			return errOffsets
		}
		if have := starts[c+1]; have != length {
			if have >= 0 {
				return errStringSize
			}
			starts[c+1] = length
		}
	}
	total := int64(0)
	for i, length := range starts[1:] {
		if length < 0 {
			return errUnused
		}
		if total += int64(length); total > math.MaxInt32 || total > int64(len(dst)) {
			return errOffsets
		}
		starts[i+1] = int32(total)
	}
	words := d.bytes.grab(int(total))
	if err := d.decodeStrings(words, starts, p, depth+1); err != nil {
		return err
	}
	for i, c := range codes {
		copy(dst[offsets[i]:offsets[i+1]], words[starts[c]:starts[c+1]])
	}
	return nil
}

// A wordTable gives each distinct string a code, in order of first occurrence.
type wordTable struct {
	hashSeed maphash.Seed
	seeded   bool
	slots    []int32 // code plus one; 0 is free
	data     []byte  // the distinct strings
	offsets  []int32
}

func (t *wordTable) seed() maphash.Seed {
	if !t.seeded {
		t.hashSeed, t.seeded = maphash.MakeSeed(), true
	}
	return t.hashSeed
}

func (t *wordTable) reset() {
	t.data, t.offsets = t.data[:0], append(t.offsets[:0], 0)
	t.resize(1024)
}

func (t *wordTable) resize(n int) {
	if cap(t.slots) >= n {
		t.slots = t.slots[:n]
		clear(t.slots)
	} else {
		t.slots = make([]int32, n)
	}
	for i := range t.offsets[1:] {
		t.slots[t.find(t.word(i))] = int32(i) + 1
	}
}

func (t *wordTable) word(code int) []byte { return t.data[t.offsets[code]:t.offsets[code+1]] }

func (t *wordTable) find(s []byte) int {
	mask := len(t.slots) - 1
	i := int(maphash.Bytes(t.seed(), s)) & mask
	for t.slots[i] != 0 && !bytes.Equal(t.word(int(t.slots[i])-1), s) {
		i = (i + 1) & mask
	}
	return i
}

// add returns the code of s.
func (t *wordTable) add(s []byte) int {
	at := t.find(s)
	if c := t.slots[at]; c != 0 {
		return int(c) - 1
	}
	code := len(t.offsets) - 1
	t.data = append(t.data, s...)
	t.offsets = append(t.offsets, int32(len(t.data)))
	t.slots[at] = int32(code) + 1
	if 2*len(t.offsets) > len(t.slots) {
		t.resize(4 * len(t.slots))
	}
	return code
}
