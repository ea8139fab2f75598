package dedup

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// values are the values of a column as bits, so that floats are compared bit by bit. Exactly one of wide, narrow and
// data is set. All are borrowed from the column.
type values struct {
	c      *vector.Column // plain
	wide   []int64
	narrow []uint32
	data   []byte
	// scores of a weighted column: one of these.
	wideScores   []int64
	narrowScores []uint32
}

// set makes v the values of the first rows rows of c, a plain column that it borrows.
func (v *values) set(c *vector.Column, rows int) {
	n := 0
	if rows > 0 {
		_, n = c.SlotRange(rows - 1)
	}
	*v = values{c: c}
	switch c.Type.Physical() {
	case vector.Int64Values:
		v.wide = c.Ints[:n]
	case vector.Float64Values:
		v.wide = vector.Bits64(c.Doubles[:n])
	case vector.Float32Values:
		v.narrow = vector.Bits32(c.Floats[:n])
	case vector.ByteValues:
		v.data = c.Data[:n]
	}
	switch {
	case c.Type.Kind != vector.Weighted:
	case c.Type.Score == vector.Float64:
		v.wideScores = vector.Bits64(c.ScoreDoubles[:n])
	default:
		v.narrowScores = vector.Bits32(c.ScoreFloats[:n])
	}
}

// drop removes the references to the borrowed column.
func (v *values) drop() { *v = values{} }

func (v *values) null(row int) bool { return v.c.Present != nil && !v.c.Present.Get(row) }

// equal reports whether two rows hold the same value.
func (v *values) equal(i, j int) bool {
	if n := v.null(i); n || v.null(j) {
		return n == v.null(j)
	}
	ilo, ihi := v.c.SlotRange(i)
	jlo, jhi := v.c.SlotRange(j)
	return ihi-ilo == jhi-jlo && v.equalRange(ilo, jlo, ihi-ilo)
}

// equalRange reports whether the n values, and their scores, at i and at j are the same.
func (v *values) equalRange(i, j, n int) bool {
	switch {
	case v.narrow != nil:
		if !slices.Equal(v.narrow[i:i+n], v.narrow[j:j+n]) {
			return false
		}
	case v.data != nil:
		return bytes.Equal(v.data[i:i+n], v.data[j:j+n])
	case v.wide != nil:
		if !slices.Equal(v.wide[i:i+n], v.wide[j:j+n]) {
			return false
		}
	}
	switch {
	case v.narrowScores != nil:
		return slices.Equal(v.narrowScores[i:i+n], v.narrowScores[j:j+n])
	case v.wideScores != nil:
		return slices.Equal(v.wideScores[i:i+n], v.wideScores[j:j+n])
	}
	return true
}

// equalOne is equalRange for one value without its score.
func (v *values) equalOne(i, j int) bool {
	switch {
	case v.wide != nil:
		return v.wide[i] == v.wide[j]
	case v.narrow != nil:
		return v.narrow[i] == v.narrow[j]
	}
	return v.data[i] == v.data[j]
}

// The hash is wyhash's multiply and fold with fixed keys. Values that someone made to collide only stay undetected as
// duplicates: equal hashes are always compared.
const (
	key0 = 0xa0761d6478bd642f
	key1 = 0xe7037ed1a0b428db
	key2 = 0x8ebc6af09c88c6e3
)

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash returns the hash of a row's value.
func (v *values) hash(row int) uint64 {
	if v.null(row) {
		return key2
	}
	lo, hi := v.c.SlotRange(row)
	h := uint64(hi-lo) ^ key0
	switch {
	case v.wide != nil:
		h = hashInts(h, v.wide[lo:hi])
	case v.narrow != nil:
		h = hashInts(h, v.narrow[lo:hi])
	case v.data != nil:
		h = hashInts(h, v.data[lo:hi])
	}
	switch {
	case v.narrowScores != nil:
		h = hashInts(h, v.narrowScores[lo:hi])
	case v.wideScores != nil:
		h = hashInts(h, v.wideScores[lo:hi])
	}
	return fold(h^key1, key2)
}

func hashInts[T int64 | uint32 | uint8](h uint64, v []T) uint64 {
	g := h ^ key2
	for ; len(v) >= 4; v = v[4:] {
		h = fold(h^uint64(v[0]), uint64(v[1])^key0)
		g = fold(g^uint64(v[2]), uint64(v[3])^key1)
	}
	for _, x := range v {
		h = fold(h^uint64(x), key1)
	}
	return h ^ bits.RotateLeft64(g, 29)
}
