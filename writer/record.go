package writer

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
	"github.com/dsistore/dsistore/format/vector"
)

// A record stands for one row while rows are put in order. Records are ordered by partition, session, time and place in
// the dump; no two are equal.
//
//	field     numbers                          bytes, strings
//	a         0 negative, 1 not                the first 8 bytes, big-endian, zero-padded
//	b         the bits of the number           xxhash64 of the whole
//
// Sessions are thus in the order of their key: numbers by value; strings by their first 8 bytes. Two strings that agree
// in both a and b would be one session: nothing is lost, they are only clustered together.
type record struct {
	a, b  uint64 // session; both all ones: no session key, a session of its own
	time  uint64 // in an order-keeping form; 0 without a session, all ones for a null time: last
	ord   uint64 // source << ordSourceShift | row in the source as read
	part  uint32 // index of the partition
	bytes uint32 // what the row decodes to, over all features
	most  uint32 // what the row's largest feature decodes to

	chunk, row uint32 // where the row is in the buffer; not spilled
}

const (
	ordSourceShift = 40
	MaxSources     = 1 << (64 - ordSourceShift)
	MaxSourceRows  = 1 << ordSourceShift

	noSession = math.MaxUint64
	noTime    = math.MaxUint64
)

func (r *record) source() int { return int(r.ord >> ordSourceShift) }

func compareRecords(x, y *record) int {
	switch {
	case x.part != y.part:
		return cmp.Compare(x.part, y.part)
	case x.a != y.a:
		return cmp.Compare(x.a, y.a)
	case x.b != y.b:
		return cmp.Compare(x.b, y.b)
	case x.time != y.time:
		return cmp.Compare(x.time, y.time)
	}
	return cmp.Compare(x.ord, y.ord)
}

// sameSession reports whether two rows of one partition are of one session.
func sameSession(x, y *record) bool {
	return x.a == y.a && x.b == y.b && !(x.a == noSession && x.b == noSession)
}

// recordBytes is the size of a spilled record, little-endian:
//
//	+-------+-------+----------+---------+----------+-----------+----------+
//	| a (8) | b (8) | time (8) | ord (8) | part (4) | bytes (4) | most (4) |
//	+-------+-------+----------+---------+----------+-----------+----------+
const recordBytes = 44

func appendRecord(dst []byte, r *record) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, r.a)
	dst = binary.LittleEndian.AppendUint64(dst, r.b)
	dst = binary.LittleEndian.AppendUint64(dst, r.time)
	dst = binary.LittleEndian.AppendUint64(dst, r.ord)
	dst = binary.LittleEndian.AppendUint32(dst, r.part)
	dst = binary.LittleEndian.AppendUint32(dst, r.bytes)
	return binary.LittleEndian.AppendUint32(dst, r.most)
}

func decodeRecord(r *record, src []byte) {
	_ = src[recordBytes-1]
	r.a = binary.LittleEndian.Uint64(src)
	r.b = binary.LittleEndian.Uint64(src[8:])
	r.time = binary.LittleEndian.Uint64(src[16:])
	r.ord = binary.LittleEndian.Uint64(src[24:])
	r.part = binary.LittleEndian.Uint32(src[32:])
	r.bytes = binary.LittleEndian.Uint32(src[36:])
	r.most = binary.LittleEndian.Uint32(src[40:])
}

// setKeys sets session and time of recs, one for each row, from the key columns; nil: null in every row.
func setKeys(recs []record, session, times *vector.Column) {
	for i := range recs {
		r := &recs[i]
		r.a, r.b, r.time = noSession, noSession, 0
		if session == nil || session.IsNull(i) {
			continue
		}
		r.a, r.b = sessionForm(session, i)
		r.time = noTime
		if times != nil && !times.IsNull(i) {
			r.time = timeForm(times, i)
		}
	}
}

func sessionForm(c *vector.Column, i int) (a, b uint64) {
	switch c.Type.Physical() {
	case vector.Int64Values:
		v := c.Ints[i]
		if v < 0 && c.Type.Elem != vector.Uint64 {
			return 0, uint64(v)
		}
		return 1, uint64(v)
	case vector.Float32Values:
		return 1, floatForm(float64(c.Floats[i]))
	case vector.Float64Values:
		return 1, floatForm(c.Doubles[i])
	}
	v := c.Data[c.Offsets[i]:c.Offsets[i+1]]
	var head [8]byte
	copy(head[:], v)
	return binary.BigEndian.Uint64(head[:]), xxhash.Sum64(v)
}

// timeForm maps numbers to unsigned ones in the same order. An unsigned time of 2^63 or more counts as 2^63-1.
func timeForm(c *vector.Column, i int) uint64 {
	switch c.Type.Physical() {
	case vector.Float32Values:
		return floatForm(float64(c.Floats[i]))
	case vector.Float64Values:
		return floatForm(c.Doubles[i])
	}
	v := c.Ints[i]
	if v < 0 && c.Type.Elem == vector.Uint64 {
		v = math.MaxInt64
	}
	return uint64(v) ^ 1<<63
}

// floatForm keeps the order of floats: -Inf first, then numbers, +Inf, NaN.
func floatForm(f float64) uint64 {
	if f != f {
		return noTime - 1
	}
	b := math.Float64bits(f)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// sizedRows is how many rows setSizes looks at at once: what it counts of them stays in the nearest cache.
const sizedRows = 1024

// setSizes sets bytes and most of recs, one for each row of cols, which are plain. A size that 32 bits do not hold is
// the most that they do.
func setSizes(recs []record, cols []*vector.Column) {
	fixed, fixedMost := uint64(0), uint64(0) // of columns whose rows take the same
	for _, c := range cols {
		if !c.Type.IsList() {
			size := uint64(elementBytes(c.Type)) * uint64(c.Type.Width())
			fixed, fixedMost = fixed+size, max(fixedMost, size)
		}
	}
	var sums, largest [sizedRows]uint64
	for lo := 0; lo < len(recs); lo += sizedRows {
		part := recs[lo:min(lo+sizedRows, len(recs))]
		sum, most := sums[:len(part)], largest[:len(part)]
		for i := range part {
			sum[i], most[i] = fixed, fixedMost
		}
		for _, c := range cols {
			if !c.Type.IsList() {
				continue
			}
			unit, from := uint64(elementBytes(c.Type)), c.Offsets[lo]
			for i, to := range c.Offsets[lo+1 : lo+len(part)+1] {
				size := unit*uint64(to-from) + 4
				sum[i], most[i] = sum[i]+size, max(most[i], size)
				from = to
			}
		}
		for i := range part {
			part[i].bytes, part[i].most = uint32(min(sum[i], math.MaxUint32)), uint32(min(most[i], math.MaxUint32))
		}
	}
}

// elementBytes returns what one value of type t takes in memory, its score included.
func elementBytes(t vector.Type) int {
	n := 8
	switch t.Physical() {
	case vector.Float32Values:
		n = 4
	case vector.ByteValues:
		n = 1
	}
	switch {
	case t.Kind == vector.Weighted && t.Score == vector.Float64:
		n += 8
	case t.Kind == vector.Weighted:
		n += 4
	}
	return n
}
