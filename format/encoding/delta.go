package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Delta (id 4): the first value, then each value's difference from the one before.
//
//	+-------+----------------+---------------------------+
//	| 4 (1) | first (varint) | differences: ints, n - 1  |
//	+-------+----------------+---------------------------+
//
// Differences wrap at 64 bits. n is at least 1. Signed differences need no special form: the minimum of a frame of
// reference may be negative.
const IDDelta ID = 4

const nsDelta = 0.5 // a value

func init() {
	registerInts(&intCodec{
		codec: codec{IDDelta, "delta", describeDelta},
		turn:  30, deepest: maxDepth - 1, offer: offerDelta, encode: encodeDelta, decode: decodeDelta,
	})
}

func offerDelta(e *encoder, c *intChoice) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	diffs := e.ints.grab(len(c.sample))
	differences(diffs, c.sample)
	_, _, patched := choosePatched(diffs, c.stats.dmin, c.stats.dmax, c.stats.dmin)
	whole := float64(bits.Len64(uint64(c.stats.dmax)-uint64(c.stats.dmin))) / 8
	c.delta = candidate{codec: IDDelta, bytes: c.n*min(whole, patched/float64(len(diffs))) + 12,
		ns: c.n * (nsFOR + nsDelta)}
	c.offer(IDDelta, c.delta.bytes, c.delta.ns)
}

// differences writes each value's difference from the one before; the first is 0.
func differences(diffs, vals []int64) {
	prev := vals[0]
	diffs = diffs[:len(vals)]
	for i, v := range vals {
		diffs[i] = v - prev
		prev = v
	}
}

func encodeDelta(e *encoder, dst []byte, m *memory, vals []int64, _ *intStats, depth int) ([]byte, bool) {
	dst = append(dst, byte(IDDelta))
	dst = binary.AppendVarint(dst, vals[0])
	mark := e.ints.mark()
	diffs := e.ints.grab(len(vals))
	differences(diffs, vals)
	dst = e.appendInts(dst, m.kid(0), diffs[1:], depth+1)
	e.ints.release(mark)
	return dst, true
}

func decodeDelta(d *Decoder, dst []int64, _ int, _ []Span, p []byte, depth int) error {
	v, p, err := takeVarint(p)
	if err != nil {
		return err
	}
	if len(dst) == 0 {
		return errEmpty
	}
	rest := dst[1:]
	if err := d.decodeInts(rest, p, depth+1); err != nil {
		return err
	}
	dst[0] = v
	for i, x := range rest {
		v += x
		rest[i] = v
	}
	return nil
}

func describeDelta(x *description, p []byte) {
	_, p, x.err = takeVarint(p)
	x.nested(p, 1, true)
}
