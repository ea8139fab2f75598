package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Dictionary (id 6): the distinct values, then the place of each value among them.
//
//	+-------+----------------+-------------------+------------------+----------------+
//	| 6 (1) | distinct k     | length of values  | values: ints, k  | codes: ints, n |
//	|       | (uvarint)      | chunk (uvarint)   |                  |                |
//	+-------+----------------+-------------------+------------------+----------------+
//
// k is at most n, each code is in [0, k). The order of the values is the writer's choice: ascending makes the values
// chunk smaller (they differ by little), by falling frequency makes the codes chunk smaller and the decoder's look-ups
// fall into few cache lines; see orderDictionary for how to have both.
func (e *encoder) appendDictionary(dst []byte, m *memory, t *table, codes []int64, depth int) []byte {
	mark := e.ints.mark()
	values := e.ints.grab(len(t.keys))
	e.orderDictionary(values, t, codes)
	dst = append(dst, byte(IDDictionary))
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	bmark := e.bytes.mark()
	chunk := e.appendInts(e.bytes.grab(chunkRoom(len(values)))[:0], m.kid(0), values, depth+1)
	dst = appendNested(dst, chunk)
	e.bytes.release(bmark)
	dst = e.appendInts(dst, m.kid(1), codes, depth+1)
	e.ints.release(mark)
	return dst
}

// orderDictionary writes t's keys to values, and changes codes to fit: first the keys of the highest frequency class (a
// power of two of occurrences), in each class ascending. So the values differ by little, but for a few jumps, and yet the
// codes are as good as by frequency.
func (e *encoder) orderDictionary(values []int64, t *table, codes []int64) {
	mark := e.ints.mark()
	rank := e.ints.grab(len(t.keys)) // rank[code] is the place of the key that had that code
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

func (d *Decoder) decodeDictionary(dst []int64, p []byte, depth int) error {
	k, p, err := takeCount(p, len(dst))
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	values := d.ints.grab(k)
	if err := d.decodeInts(values, chunk, depth+1); err != nil {
		return err
	}
	return lookUp(d, dst, values, p, dst, depth+1)
}

// lookUp decodes a chunk of len(dst) codes and writes the value of each. room has the length of dst, and may be dst.
func lookUp[T any](d *Decoder, dst, values []T, src []byte, room []int64, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if id != IDFOR {
		if err := d.decodeInts(room, src, depth); err != nil {
			return err
		}
		return gather(dst, values, room)
	}
	if depth > maxDepth {
		return errDepth
	}
	packed, width, base, err := parseFOR(len(dst), p)
	if err != nil {
		return err
	}
	// Codes pass through one block that stays in the first-level cache.
	block := &d.block
	for len(dst) > 0 {
		n := min(len(dst), blockLen)
		size := packedLen(n, width)
		unpack(block[:n], packed[:size], width, base)
		if err := gather(dst[:n], values, block[:n]); err != nil {
			return err
		}
		dst, packed = dst[n:], packed[size:]
	}
	return nil
}

// gather writes the value of each code. codes and dst may be the same memory.
func gather[T any](dst, values []T, codes []int64) error {
	if out, ints := any(dst).([]int64); ints {
		if gatherTwo(out, any(values).([]int64), nil, codes) >= 0 {
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

// LookUp writes the value of each code: first[c], or second[c-len(first)] from len(first) on. codes and dst may be the same
// memory. It returns the place of the first code that is past both, or -1; what is before it has been written, and perhaps more.
func LookUp(dst, first, second, codes []int64) (bad int) { return gatherTwo(dst, first, second, codes) }

// gatherTwoPlain is LookUp. Hot: gatherTwo replaces it where the processor has vectors.
func gatherTwoPlain(dst, first, second, codes []int64) (bad int) {
	dst = dst[:len(codes)]
	for i, c := range codes {
		if uint64(c) < uint64(len(first)) {
			dst[i] = first[c]
			continue
		}
		if c -= int64(len(first)); uint64(c) >= uint64(len(second)) {
			return i
		}
		dst[i] = second[c]
	}
	return -1
}
