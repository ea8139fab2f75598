package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/dsistore/dsistore/format/encoding/gather"
)

// Dictionary (id 6): the distinct values, then the code of each value: its position among them.
//
//	+-------+----------------+-------------------+------------------+----------------+
//	| 6 (1) | distinct k     | length of values  | values: ints, k  | codes: ints, n |
//	|       | (uvarint)      | chunk (uvarint)   |                  |                |
//	+-------+----------------+-------------------+------------------+----------------+
//
// k is at most n, each code is in [0, k). The writer chooses the order of the values. Ascending order makes the values
// chunk smaller, because neighbours differ by little. Order by frequency makes the codes chunk smaller, and look-ups
// touch fewer cache lines. See orderDictionary for a combination of both.
//
// With id 20 the values are a floats chunk.
const (
	IDDictionary      ID = 6
	IDFloatDictionary ID = 20
)

func init() {
	registerInts(&intCodec{
		codec: codec{IDDictionary, "dict", describeCounted},
		turn:  60, deepest: maxDepth - 1, offer: offerDictionary, encode: encodeDictionary,
		decode: decodeDictionary(&intFamily), seeks: seekFew,
	})
	registerFloats(&floatCodec{
		codec: codec{IDFloatDictionary, "dict", describeCounted},
		turn:  40, deepest: maxDepth - 1, offer: offerFloatDictionary, encode: encodeFloatDictionary,
		floats: decodeDictionary(&floatFamily.family), doubles: decodeDictionary(&doubleFamily.family), seeks: seekFew,
	})
}

// lookUpCost returns the ns to look up a code among k values, depending on the cache that they fit in.
func lookUpCost(k int) float64 {
	switch {
	case k <= 1<<12:
		return 0.6
	case k <= 1<<18:
		return 1.5
	}
	return 4
}

func offerDictionary(e *encoder, c *intChoice) {
	s := c.stats
	if c.refused(IDDictionary) || s.width <= 2 {
		return
	}
	k := e.distinct(c.sample, s.n)
	if kw := bits.Len(uint(k)); kw < s.width {
		bytes := float64(k)*float64(max(1, s.width-kw+2))/8 + c.n*float64(kw)/8 + 16
		c.offerCodes(IDDictionary, k, bytes, c.n*(nsFOR+lookUpCost(k)))
	}
}

func offerFloatDictionary(e *encoder, c *floatChoice) {
	n := len(c.vals.raw)
	if c.refused(IDFloatDictionary) {
		return
	}
	if k := e.distinct(c.sample, n); k <= n/2 {
		bytes := float64(k)*float64(c.vals.width) + c.n*float64(bitsFor(k))/8 + 16
		c.offerCodes(IDFloatDictionary, k, bytes, c.n*(nsFOR+lookUpCost(k)))
	}
}

// offerCodes offers a dictionary of k values. Sequences that copy a value save only the bits of its code.
func (b *best) offerCodes(id ID, k int, bytes, ns float64) {
	if b.offer(id, bytes, ns); b.codec == id {
		b.valueBits = float64(bitsFor(k))
	}
}

// distinct estimates how many distinct values n values have, by a sample of them.
func (e *encoder) distinct(sample []int64, n int) int {
	mark := e.ints.mark()
	e.table.add(e.ints.grab(len(sample)), sample, len(sample))
	e.ints.release(mark)
	return estimateDistinct(&e.table, len(sample), n)
}

// encodeDictionary returns false if there are too many distinct values for a dictionary to pay.
func encodeDictionary(e *encoder, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	codes := e.ints.grab(len(vals))
	if !e.table.add(codes, vals, e.dictionaryLimit(s)) {
		return dst, false
	}
	return e.appendDictionary(append(dst, byte(IDDictionary)), m, codes, depth, (*encoder).appendInts), true
}

func encodeFloatDictionary(e *encoder, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	codes := e.ints.grab(len(v.raw))
	if !e.table.add(codes, v.raw, max(1, len(v.raw)/2)) {
		return dst, false
	}
	return e.appendDictionary(append(dst, byte(IDFloatDictionary)), m, codes, depth, v.append), true
}

// appendDictionary appends the payload for the values in e.table. nest appends the values chunk. It changes codes.
func (e *encoder) appendDictionary(dst []byte, m *memory, codes []int64, depth int, nest appendFunc) []byte {
	mark := e.ints.mark()
	values := e.ints.grab(len(e.table.keys))
	e.orderDictionary(values, &e.table, codes)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	bmark := e.bytes.mark()
	chunk := nest(e, e.bytes.grab(chunkRoom(len(values)))[:0], m.kid(0), values, depth+1)
	dst = appendNested(dst, chunk)
	e.bytes.release(bmark)
	dst = e.appendInts(dst, m.kid(1), codes, depth+1)
	e.ints.release(mark)
	return dst
}

// dictionaryLimit returns the number of distinct values beyond which a dictionary certainly costs more than it saves.
func (e *encoder) dictionaryLimit(s *intStats) int {
	limit := 0
	for w := 1; w < s.width && w < 31; w++ {
		// k values with codes of up to w bits: each value costs its own bits minus what ascending order saves.
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

// orderDictionary writes t's keys to values, sorted by frequency class (the bit length of the count) from high to low,
// then ascending, and changes codes accordingly. So neighbouring values of a class differ by little, and codes are
// nearly as small as sorted by frequency.
func (e *encoder) orderDictionary(values []int64, t *table, codes []int64) {
	mark := e.ints.mark()
	rank := e.ints.grab(len(t.keys)) // rank[code] is the position of the key that had that code
	order := e.order(len(t.keys))
	for i, v := range t.keys {
		order[i] = keyed{key: v, index: int32(i)}
	}
	e.sortKeyed(order)
	var at [33]int
	for _, c := range t.counts {
		at[32-bits.Len32(uint32(c))]++
	}
	sum := 0
	for i, c := range at {
		at[i] = sum
		sum += c
	}
	for _, o := range order {
		class := 32 - bits.Len32(uint32(t.counts[o.index]))
		values[at[class]] = int64(o.key)
		rank[o.index] = int64(at[class])
		at[class]++
	}
	for i, c := range codes {
		codes[i] = rank[c]
	}
	e.ints.release(mark)
}

// decodeDictionary returns the decodeFunc of dictionaries of a family. With spans it decodes only the dictionary
// entries that are needed, if they are few.
func decodeDictionary[T any](f *family[T]) decodeFunc[T] {
	return func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		k, p, err := takeCount(p, n)
		if err != nil {
			return err
		}
		chunk, p, err := takeNested(p)
		if err != nil {
			return err
		}
		a := f.arena(d)
		m, am, sm := d.ints.mark(), a.mark(), d.spans.mark()
		defer d.ints.release(m)
		defer a.release(am)
		defer d.spans.release(sm)
		if spans == nil {
			values := a.grab(k)
			if err := f.decode(d, values, chunk, depth+1); err != nil {
				return err
			}
			return lookUp(d, dst, values, p, depth+1)
		}
		codes := d.ints.grab(len(dst))
		if err := d.intsAt(codes, n, spans, p, depth+1); err != nil {
			return err
		}
		if mostly(len(codes), len(codes), k) {
			values := a.grab(k)
			if err := f.decode(d, values, chunk, depth+1); err != nil {
				return err
			}
			return valuesOf(dst, values, codes)
		}
		positions := d.spans.grab(len(codes))
		for i, c := range codes {
			if uint64(c) >= uint64(k) {
				return errCode
			}
			positions[i] = Span{int32(c), int32(c) + 1}
		}
		return f.decodeAt(d, dst, k, positions, chunk, depth+1)
	}
}

// lookUp decodes a chunk of len(dst) codes and writes the value of each.
func lookUp[T any](d *Decoder, dst, values []T, src []byte, depth int) error {
	done, err := d.eachBlock(len(dst), src, depth, func(at int, codes []int64) error {
		return valuesOf(dst[at:at+len(codes)], values, codes)
	})
	if done || err != nil {
		return err
	}
	codes, ints := any(dst).([]int64)
	if !ints {
		m := d.ints.mark()
		defer d.ints.release(m)
		codes = d.ints.grab(len(dst))
	}
	if err := d.decodeInts(codes, src, depth); err != nil {
		return err
	}
	return valuesOf(dst, values, codes)
}

// LookUp decodes a chunk of len(dst) codes and writes the value of each code c to dst: first[c] if c < len(first), else
// second[c-len(first)]. It stops at a code that is out of range and returns its position and the code; bad is -1 if
// there is none. bad and code are meaningless if err is not nil.
func (d *Decoder) LookUp(dst, first, second []int64, src []byte) (bad int, code int64, err error) {
	bad = -1
	done, err := d.eachBlock(len(dst), src, 0, func(at int, codes []int64) error {
		if i := gather.Two(dst[at:at+len(codes)], first, second, codes); i >= 0 {
			bad, code = at+i, codes[i]
			return errCode
		}
		return nil
	})
	if done || err != nil {
		if bad >= 0 {
			err = nil
		}
		return bad, code, err
	}
	if err := d.decodeInts(dst, src, 0); err != nil {
		return -1, 0, err
	}
	if bad = gather.Two(dst, first, second, dst); bad >= 0 {
		code = dst[bad]
	}
	return bad, code, nil
}

// LookUpIn replaces each of codes by values[code]. The codes are in range.
func LookUpIn(codes, values []int64) { gather.Two(codes, values, nil, codes) }

// valuesOf writes the value of each code. codes and dst may be the same memory.
func valuesOf[T any](dst, values []T, codes []int64) error {
	if out, ints := any(dst).([]int64); ints {
		if gather.Two(out, any(values).([]int64), nil, codes) >= 0 {
			return errCode
		}
		return nil
	}
	dst = dst[:len(codes)]
	for i, c := range codes {
		if uint64(c) >= uint64(len(values)) {
			return errCode
		}
		dst[i] = values[c]
	}
	return nil
}
