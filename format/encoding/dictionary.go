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
	done, err := d.codeBlocks(len(dst), src, depth, func(at int, codes []int64) error {
		return gather(dst[at:at+len(codes)], values, codes)
	})
	if done || err != nil {
		return err
	}
	if err := d.decodeInts(room, src, depth); err != nil {
		return err
	}
	return gather(dst, values, room)
}

// LookUp decodes a chunk of len(dst) codes and writes the value of each: first[c], or second[c-len(first)] from len(first) on. A code that is
// past both ends it, with its place and itself; bad is -1 where there is none. Of an error the values say nothing.
func (d *Decoder) LookUp(dst, first, second []int64, src []byte) (bad int, code int64, err error) {
	bad = -1
	done, err := d.codeBlocks(len(dst), src, 0, func(at int, codes []int64) error {
		if i := gatherTwo(dst[at:at+len(codes)], first, second, codes); i >= 0 {
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
	if bad = gatherTwo(dst, first, second, dst); bad >= 0 {
		code = dst[bad]
	}
	return bad, code, nil
}

// LookUpIn makes each of codes, which are places in values, the value there.
func LookUpIn(codes, values []int64) { gatherTwo(codes, values, nil, codes) }

// codeBlocks decodes a chunk of n codes in blocks that stay in the first-level cache and gives f each with the place at which it begins,
// until f returns an error. done is false where the codec is none that decodes in blocks: then nothing was decoded.
func (d *Decoder) codeBlocks(n int, src []byte, depth int, f func(at int, codes []int64) error) (done bool, err error) {
	id, p, err := head(src)
	if err != nil {
		return false, err
	}
	if depth > maxDepth {
		return false, errDepth
	}
	var next func([]int64) error
	end := func() error { return nil }
	switch id {
	case IDFOR:
		packed, width, base, err := parseFOR(n, p)
		if err != nil {
			return false, err
		}
		next = func(codes []int64) error {
			size := packedLen(len(codes), width)
			unpack(codes, packed[:size], width, base)
			packed = packed[size:]
			return nil
		}
	case IDRANS:
		r := &d.rans
		if err := r.parse(n, p); err != nil {
			return false, err
		}
		defer r.forget()
		next, end = r.next, r.end
	default:
		return false, nil
	}
	for at := 0; at < n; {
		codes := d.codes[:min(n-at, len(d.codes))]
		if err := next(codes); err != nil {
			return false, err
		}
		if err := f(at, codes); err != nil {
			return false, err
		}
		at += len(codes)
	}
	return true, end()
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

// gatherTwoPlain writes the value of each code: first[c], or second[c-len(first)] from len(first) on. codes and dst may be the same memory.
// It returns the place of the first code that is past both, or -1; what is before it has been written, and perhaps more. Hot: gatherTwo replaces it where the processor has vectors.
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
