package writer

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
	"github.com/dsistore/dsistore/format/vector"
)

// A record represents one row while rows are sorted. Records are ordered by partition, session (a, then b), time, and
// position in the sources. No two are equal.
//
//	field     session key is a number          session key is bytes or a string
//	a         0 if negative, else 1            the first 8 bytes, big-endian, zero-padded
//	b         the bits of the number           xxhash64 of the whole key
//
// Sessions are thus in the order of their key: numbers by value; strings by their first 8 bytes. Two strings with equal
// a and b are clustered as one session, which loses no data.
type record struct {
	a, b  uint64 // session; both all ones: no session key, a session of one row
	time  uint64 // in a form that sorts as unsigned; 0 without a session; all ones (last) for a null time
	ord   uint64 // source << ordSourceShift | row in the source as read
	part  uint32 // index of the partition
	bytes uint32 // decoded bytes of the row, over all features
	most  uint32 // decoded bytes of the row's largest feature

	chunk, row uint32 // where the row is in the buffer; not spilled
}

const (
	ordSourceShift = 40
	MaxSources     = 1 << (64 - ordSourceShift) // sources of a Sorter, inputs of a Rewrite
	MaxSourceRows  = 1 << ordSourceShift        // rows of one source

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

// setKeys sets session and time of recs from the key columns, which have a row for each record; nil: null in every row.
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

// sessionForm returns a and b of a record whose session key is row i of c.
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

// timeForm maps row i of c to an unsigned number with the same order. A uint64 time of 2^63 or more counts as 2^63-1.
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

// floatForm maps floats to unsigned numbers in the order -Inf, numbers, +Inf, NaN.
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

// sizedRows is how many rows setSizes handles at a time, so that their sums stay in the L1 cache.
const sizedRows = 1024

// setSizes sets bytes and most of recs, one for each row of cols, which are plain. Sizes saturate at 2^32-1.
func setSizes(recs []record, cols []*vector.Column) {
	fixed, fixedMost := uint64(0), uint64(0) // of columns whose rows are all of one size
	for _, c := range cols {
		if !c.Type.IsList() {
			size := uint64(c.Type.ValueBytes()) * uint64(c.Type.Width())
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
			unit, from := uint64(c.Type.ValueBytes()), c.Offsets[lo]
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
