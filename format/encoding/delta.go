package encoding

import "encoding/binary"

// Delta (id 4): the first value, then each value's difference from the one before.
//
//	+-------+----------------+---------------------------+
//	| 4 (1) | first (varint) | differences: ints, n - 1  |
//	+-------+----------------+---------------------------+
//
// Differences wrap at 64 bits. n is at least 1. A frame of reference of the differences takes signed ones as they are:
// its minimum is the smallest difference.
func (e *encoder) appendDelta(dst []byte, m *memory, vals []int64, depth int) []byte {
	dst = append(dst, byte(IDDelta))
	dst = binary.AppendVarint(dst, vals[0])
	mark := e.ints.mark()
	diffs := e.ints.grab(len(vals) - 1)
	prev := vals[0]
	for i, v := range vals[1:] {
		diffs[i] = v - prev
		prev = v
	}
	dst = e.appendInts(dst, m.kid(0), diffs, depth+1)
	e.ints.release(mark)
	return dst
}

func (d *Decoder) decodeDelta(dst []int64, p []byte, depth int) error {
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
