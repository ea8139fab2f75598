package writer

import (
	"encoding/binary"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// A block holds consecutive rows of one feature in a spill file. A null row takes one bit. A number takes as many bytes
// as its type has (blockValueSize).
//
//	+--------------+-------------------------+---------------------+--------------+--------------+
//	| flags (1)    | presence, 1 bit per row | lengths (4 each) of | values of    | scores of    |
//	| 1: has nulls | in 8-byte words, if 1   | present rows, lists | present rows | present rows |
//	+--------------+-------------------------+---------------------+--------------+--------------+
//
// All little-endian. Only the process that wrote a spill file reads it, so the layout may change at any time.
const blockHasNulls = 1

// appendBlock appends the block of a plain column.
func appendBlock(dst []byte, c *vector.Column) []byte {
	if c.Present == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, blockHasNulls)
		for _, w := range c.Present {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	if !c.Type.IsList() {
		return appendFixed(dst, c)
	}
	for s := range c.Slots {
		if c.Present == nil || c.Present.Get(s) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(c.Offsets[s+1]-c.Offsets[s]))
		}
	}
	dst = appendValues(dst, c, 0, c.Elements())
	if c.Type.Kind != vector.Weighted {
		return dst
	}
	if c.Type.Score == vector.Float64 {
		return vector.AppendDoubles(dst, c.ScoreDoubles)
	}
	return vector.AppendFloats(dst, c.ScoreFloats)
}

// appendFixed appends the values of present rows of a column with a fixed number of values per row.
func appendFixed(dst []byte, c *vector.Column) []byte {
	w := c.Type.Width()
	if c.Present == nil {
		return appendValues(dst, c, 0, c.Slots*w)
	}
	for i, word := range c.Present {
		for word != 0 {
			from := bits.TrailingZeros64(word)
			n := bits.TrailingZeros64(^(word >> uint(from)))
			lo := i*64 + from
			dst = appendValues(dst, c, lo*w, (lo+n)*w)
			if from+n >= 64 {
				break
			}
			word &= ^uint64(0) << uint(from+n)
		}
	}
	return dst
}

// blockValueSize returns how many bytes a value of type t takes in a block, without its score.
func blockValueSize(t vector.Type) int {
	if t.Physical() == vector.ByteValues {
		return 1
	}
	switch t.Elem {
	case vector.Bool, vector.Int8, vector.Uint8:
		return 1
	case vector.Int16, vector.Uint16:
		return 2
	case vector.Int32, vector.Uint32, vector.Float32:
		return 4
	}
	return 8
}

func appendValues(dst []byte, c *vector.Column, lo, hi int) []byte {
	switch c.Type.Physical() {
	case vector.Float32Values:
		return vector.AppendFloats(dst, c.Floats[lo:hi])
	case vector.Float64Values:
		return vector.AppendDoubles(dst, c.Doubles[lo:hi])
	case vector.ByteValues:
		return append(dst, c.Data[lo:hi]...)
	}
	switch blockValueSize(c.Type) {
	case 1:
		for _, v := range c.Ints[lo:hi] {
			dst = append(dst, byte(v))
		}
	case 2:
		for _, v := range c.Ints[lo:hi] {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
		}
	case 4:
		for _, v := range c.Ints[lo:hi] {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	default:
		for _, v := range c.Ints[lo:hi] {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	}
	return dst
}

// A blockReader reads a block's rows in order, any number at a time.
type blockReader struct {
	typ      vector.Type
	row      int    // next
	presence []byte // nil: no nulls
	lengths  []byte // of present rows not yet read
	values   []byte // not yet read
	scores   []byte // not yet read
}

// reset makes b read the block src, which has so many rows. src is borrowed until the next reset.
func (b *blockReader) reset(t vector.Type, src []byte, rows int) {
	*b = blockReader{typ: t}
	present := rows
	src, flags := src[1:], src[0]
	if flags&blockHasNulls != 0 {
		n := 8 * vector.BitmapWords(rows)
		b.presence, src = src[:n], src[n:]
		present = 0
		for i := 0; i < n; i += 8 {
			present += bits.OnesCount64(binary.LittleEndian.Uint64(b.presence[i:]))
		}
	}
	b.values = src
	if !t.IsList() {
		return
	}
	b.lengths, src = src[:4*present], src[4*present:]
	b.values = src
	if t.Kind == vector.Weighted {
		n := len(src) / (blockValueSize(t) + scoreSize(t)) * blockValueSize(t)
		b.values, b.scores = src[:n], src[n:]
	}
}

// scoreSize returns how many bytes a score of type t takes, in a block and in memory.
func scoreSize(t vector.Type) int {
	if t.Score == vector.Float64 {
		return 8
	}
	return 4
}

func (b *blockReader) isPresent(row int) bool {
	return b.presence == nil || b.presence[row>>3]>>(uint(row)&7)&1 != 0
}

// anyPresent reports whether one of the next n rows is not null.
func (b *blockReader) anyPresent(n int) bool {
	for i := b.row; i < b.row+n; i++ {
		if b.isPresent(i) {
			return true
		}
	}
	return false
}

// skip passes over the next n rows.
func (b *blockReader) skip(n int) {
	present := b.countPresent(n)
	b.row += n
	values := present * b.typ.Width()
	if b.typ.IsList() {
		values = 0
		for i := range present {
			values += int(binary.LittleEndian.Uint32(b.lengths[4*i:]))
		}
		b.lengths = b.lengths[4*present:]
	}
	b.values = b.values[values*blockValueSize(b.typ):]
	if b.typ.Kind == vector.Weighted {
		b.scores = b.scores[values*scoreSize(b.typ):]
	}
}

func (b *blockReader) countPresent(n int) int {
	if b.presence == nil {
		return n
	}
	present := 0
	for i := b.row; i < b.row+n; {
		if i&63 == 0 && i+64 <= b.row+n {
			present += bits.OnesCount64(binary.LittleEndian.Uint64(b.presence[i>>3:]))
			i += 64
			continue
		}
		if b.isPresent(i) {
			present++
		}
		i++
	}
	return present
}

// appendRows appends the next n rows to dst, a plain column of the block's type.
func (b *blockReader) appendRows(dst *vector.Column, n int) {
	if b.typ.IsList() {
		b.appendLists(dst, n)
		return
	}
	w := b.typ.Width()
	for n > 0 {
		// The next k rows are all present or all null.
		present := b.isPresent(b.row)
		k := n
		if b.presence != nil {
			for k = 1; k < n && b.isPresent(b.row+k) == present; k++ {
			}
		}
		if !present {
			dst.AppendNulls(k)
		} else {
			b.takeValues(dst, k*w)
			dst.AddPresent(k)
		}
		b.row += k
		n -= k
	}
}

func (b *blockReader) appendLists(dst *vector.Column, n int) {
	end, start := dst.Offsets[dst.Slots], dst.Offsets[dst.Slots]
	present := 0
	if b.presence != nil || dst.Present != nil {
		dst.Present = presentSoFar(dst).Grow(dst.Slots + n)
	}
	for i := range n {
		if b.isPresent(b.row + i) {
			end += int32(binary.LittleEndian.Uint32(b.lengths[4*present:]))
			present++
			if dst.Present != nil {
				dst.Present.Set(dst.Slots + i)
			}
		}
		dst.Offsets = append(dst.Offsets, end)
	}
	b.lengths = b.lengths[4*present:]
	b.takeValues(dst, int(end-start))
	b.row += n
	dst.Rows += n
	dst.Slots += n
}

// presentSoFar returns dst.Present or, when that is nil, a new bitmap in which every row is present.
func presentSoFar(dst *vector.Column) vector.Bitmap {
	if dst.Present != nil {
		return dst.Present
	}
	p := make(vector.Bitmap, vector.BitmapWords(dst.Slots))
	p.SetRange(0, dst.Slots)
	return p
}

// takeValues appends the next n values, with their scores, to dst.
func (b *blockReader) takeValues(dst *vector.Column, n int) {
	w := blockValueSize(b.typ)
	src := b.values[:n*w]
	b.values = b.values[n*w:]
	switch b.typ.Physical() {
	case vector.Float32Values:
		dst.Floats = vector.TakeFloats(dst.Floats, src)
	case vector.Float64Values:
		dst.Doubles = vector.TakeDoubles(dst.Doubles, src)
	case vector.ByteValues:
		dst.Data = append(dst.Data, src...)
	default:
		dst.Ints = takeInts(dst.Ints, src, b.typ.Elem)
	}
	if b.typ.Kind != vector.Weighted {
		return
	}
	w = scoreSize(b.typ)
	scores := b.scores[:n*w]
	b.scores = b.scores[n*w:]
	if b.typ.Score == vector.Float64 {
		dst.ScoreDoubles = vector.TakeDoubles(dst.ScoreDoubles, scores)
	} else {
		dst.ScoreFloats = vector.TakeFloats(dst.ScoreFloats, scores)
	}
}

func takeInts(dst []int64, src []byte, e vector.Elem) []int64 {
	switch e {
	case vector.Bool, vector.Uint8:
		for _, v := range src {
			dst = append(dst, int64(v))
		}
	case vector.Int8:
		for _, v := range src {
			dst = append(dst, int64(int8(v)))
		}
	case vector.Uint16:
		for ; len(src) >= 2; src = src[2:] {
			dst = append(dst, int64(binary.LittleEndian.Uint16(src)))
		}
	case vector.Int16:
		for ; len(src) >= 2; src = src[2:] {
			dst = append(dst, int64(int16(binary.LittleEndian.Uint16(src))))
		}
	case vector.Uint32:
		for ; len(src) >= 4; src = src[4:] {
			dst = append(dst, int64(binary.LittleEndian.Uint32(src)))
		}
	case vector.Int32:
		for ; len(src) >= 4; src = src[4:] {
			dst = append(dst, int64(int32(binary.LittleEndian.Uint32(src))))
		}
	default:
		for ; len(src) >= 8; src = src[8:] {
			dst = append(dst, int64(binary.LittleEndian.Uint64(src)))
		}
	}
	return dst
}
