package encoding

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
)

// Strings are byte strings whose lengths are stored elsewhere: a chunk holds bytes only.
//
// Plain (id 48):
//
//	+--------+------------------------------+
//	| 48 (1) | all strings, one after other |
//	+--------+------------------------------+
//
// Zstd (id 49):
//
//	+--------+--------------------------------------------+
//	| 49 (1) | one zstd frame of all strings, as in plain |
//	+--------+--------------------------------------------+
//
// Dictionary (id 50): the distinct strings, then the place of each string among them. The length of a distinct string is
// that of any string that uses it, so each is used at least once.
//
//	+--------+----------------+------------------+----------------+--------------------+
//	| 50 (1) | distinct k     | length of codes  | codes: ints, n | distinct strings:  |
//	|        | (uvarint)      | chunk (uvarint)  |                | strings, k         |
//	+--------+----------------+------------------+----------------+--------------------+

// AppendStrings appends a chunk of len(offsets)-1 byte strings: string i is data[offsets[i]:offsets[i+1]].
func (c *Chooser) AppendStrings(dst []byte, stream int, data []byte, offsets []int32) []byte {
	e := c.encoder()
	dst = e.appendStrings(dst, c.stream(stream), data, offsets, 0)
	encoders.Put(e)
	return dst
}

func (e *encoder) appendStrings(dst []byte, m *memory, data []byte, offsets []int32, depth int) []byte {
	n := max(0, len(offsets)-1)
	if n == 0 || offsets[0] == offsets[n] {
		return append(dst, byte(IDStringPlain))
	}
	data = data[offsets[0]:offsets[n]]
	start := len(dst)
	codec := m.recall(n)
	if codec == IDStringPlain {
		codec = 0 // its size says nothing of the bytes, which may have turned
	}
	fresh := codec == 0
	if fresh {
		codec = e.chooseStrings(data, offsets, depth)
	}
	for {
		var ok bool
		dst, ok = e.appendStringsAs(codec, dst, m, data, offsets, depth)
		if ok && (fresh || !m.drifted(n, len(dst)-start)) {
			m.note(codec, n, len(dst)-start, fresh)
			return dst
		}
		dst = dst[:start]
		if fresh {
			codec = IDStringZstd // a dictionary served badly
			continue
		}
		fresh = true
		codec = e.chooseStrings(data, offsets, depth)
	}
}

// appendStringsAs appends strings in a codec, or returns false when a dictionary serves badly after all.
func (e *encoder) appendStringsAs(codec ID, dst []byte, m *memory, data []byte, offsets []int32, depth int) ([]byte, bool) {
	switch codec {
	case IDStringZstd:
		start := len(dst)
		dst = e.compress(append(dst, byte(IDStringZstd)), data)
		if float64(len(dst)-start) < (1-zstdMargin)*float64(len(data)) {
			return dst, true
		}
		dst = dst[:start]
	case IDStringDictionary:
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
		// The distinct strings are never a dictionary themselves: e.words is read to the end.
		inner := IDStringZstd
		if e.profile.score(float64(len(e.words.data)), 0) < nsZstdByte*float64(len(e.words.data)) || len(e.words.data) < 64 {
			inner = IDStringPlain
		}
		dst, _ = e.appendStringsAs(inner, dst, nil, e.words.data, e.words.offsets, depth+1)
		return dst, true
	}
	return append(append(dst, byte(IDStringPlain)), data...), true
}

// chooseStrings judges by a sample of strings from all over, and by a sample of bytes.
func (e *encoder) chooseStrings(data []byte, offsets []int32, depth int) ID {
	n := len(offsets) - 1
	b := best{profile: e.profile}
	size := float64(len(data))
	b.offer(IDStringPlain, 1+size, size*nsStringByte)
	if depth > 0 {
		return b.codec
	}
	bmark, mark := e.bytes.mark(), e.ints.mark()
	defer e.bytes.release(bmark)
	defer e.ints.release(mark)

	const blocks, length = 16, 4096
	sample := data
	if len(data) > blocks*length {
		sample = e.bytes.grab(blocks * length)
		for i := range blocks {
			copy(sample[i*length:(i+1)*length], data[i*(len(data)-length)/(blocks-1):])
		}
	}
	ratio := float64(len(e.compress(e.bytes.grab(len(sample) + 64)[:0], sample))) / float64(len(sample))
	if ratio < 1-zstdMargin {
		b.offer(IDStringZstd, size*ratio, size*nsZstdByte)
	}

	// Distinct strings of a sample, by hash.
	places := e.ints.grab(n)
	for i := range places {
		places[i] = int64(i)
	}
	places = sampleInts(&e.ints, places, 16, 256)
	hashes, codes := e.ints.grab(len(places)), e.ints.grab(len(places))
	for i, at := range places {
		s := data[offsets[at]-offsets[0] : offsets[at+1]-offsets[0]]
		hashes[i] = int64(maphash.Bytes(e.words.seed(), s))
	}
	e.table.add(codes, hashes, len(hashes))
	if k := estimateDistinct(&e.table, len(places), n); k <= n/2 {
		words := size * float64(k) / float64(n)
		bytes := words*min(1, ratio*1.5) + float64(n*bitsFor(k))/8 + 16
		b.offer(IDStringDictionary, bytes, float64(n)*(nsFOR+nsStringCopy)+size*nsStringByte+words*nsZstdByte)
	}
	return b.codec
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

// Strings decodes the bytes of strings whose lengths the caller already knows: offsets has count+1 entries from 0, never
// falling, and len(dst) == offsets[count].
func (d *Decoder) Strings(dst []byte, offsets []int32, src []byte) error {
	if len(offsets) == 0 {
		if len(dst) != 0 {
			return errOffsets
		}
	} else if offsets[0] != 0 || int(offsets[len(offsets)-1]) != len(dst) {
		return errOffsets
	}
	return d.decodeStrings(dst, offsets, src, 0)
}

func (d *Decoder) decodeStrings(dst []byte, offsets []int32, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	switch id {
	case IDStringPlain:
		if len(p) != len(dst) {
			return errLength
		}
		copy(dst, p)
		return nil
	case IDStringZstd:
		return d.inflate(dst, p)
	case IDStringDictionary:
		return d.stringDictionary(dst, offsets, p, depth)
	}
	return wrongCodec(id)
}

func (d *Decoder) stringDictionary(dst []byte, offsets []int32, p []byte, depth int) error {
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
	// starts first holds at c+1 the length of entry c, or -1 while no string has used it.
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
