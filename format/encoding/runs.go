package encoding

import "encoding/binary"

// Run-length (id 7): the value of each run, and how often it stands.
//
//	+-------+-----------------+-------------------+------------------+-----------------+
//	| 7 (1) | runs r (uvarint)| length of values  | values: ints, r  | lengths: ints,r |
//	|       |                 | chunk (uvarint)   |                  |                 |
//	+-------+-----------------+-------------------+------------------+-----------------+
//
// r is at most n, each length at least 1, their sum n.
func (e *encoder) appendRuns(dst []byte, m *memory, vals []int64, runs, depth int) []byte {
	mark := e.ints.mark()
	values, lengths := e.ints.grab(runs), e.ints.grab(runs)
	splitRuns(values, lengths, vals)
	dst = e.appendRunParts(append(dst, byte(IDRuns)), m, values, lengths, depth)
	e.ints.release(mark)
	return dst
}

// appendRunParts appends what follows the id.
func (e *encoder) appendRunParts(dst []byte, m *memory, values, lengths []int64, depth int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	mark := e.bytes.mark()
	chunk := e.appendInts(e.bytes.grab(chunkRoom(len(values)))[:0], m.kid(0), values, depth+1)
	dst = appendNested(dst, chunk)
	e.bytes.release(mark)
	return e.appendInts(dst, m.kid(1), lengths, depth+1)
}

// splitRuns writes the value and the length of each run of vals, of which there are len(values).
func splitRuns(values, lengths, vals []int64) {
	r, start := -1, 0
	for i, v := range vals {
		if i > 0 && v == values[r] {
			continue
		}
		if r >= 0 {
			lengths[r] = int64(i - start)
		}
		r++
		values[r] = v
		start = i
	}
	if r >= 0 {
		lengths[r] = int64(len(vals) - start)
	}
}

func (d *Decoder) decodeRuns(dst []int64, p []byte, depth int) error {
	r, p, err := takeCount(p, len(dst))
	if err != nil {
		return err
	}
	chunk, p, err := takeNested(p)
	if err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	values, lengths := d.ints.grab(r), d.ints.grab(r)
	if err := d.decodeInts(values, chunk, depth+1); err != nil {
		return err
	}
	if err := d.decodeInts(lengths, p, depth+1); err != nil {
		return err
	}
	return fillRuns(dst, values, lengths)
}

// fillRuns writes each value as often as its length says.
func fillRuns[T any](dst, values []T, lengths []int64) error {
	values = values[:len(lengths)]
	for i, l := range lengths {
		if l < 1 || l > int64(len(dst)) {
			return errRuns
		}
		v := values[i]
		run := dst[:l]
		for j := range run {
			run[j] = v
		}
		dst = dst[l:]
	}
	if len(dst) != 0 {
		return errRuns
	}
	return nil
}
