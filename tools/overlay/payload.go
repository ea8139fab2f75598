package overlay

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
)

// A value in a spill file, little-endian, of a type that its reader knows:
//
//	0                                       null
//	1 | Width numbers                       dense, embedding
//	1 | how many (varint) | numbers, or bytes | scores     a list, a string
//
// Integers are of 8 bytes. Spill files are read by the process that wrote them: the layout may change at any time.

// appendValue appends the value of a row of a plain column.
func appendValue(dst []byte, c *vector.Column, row int) []byte {
	if c.IsNull(row) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	lo, hi := c.SlotRange(row)
	if c.Type.IsList() {
		dst = binary.AppendUvarint(dst, uint64(hi-lo))
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		for _, v := range c.Ints[lo:hi] {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	case vector.Float32Values:
		dst = vector.AppendFloats(dst, c.Floats[lo:hi])
	case vector.Float64Values:
		dst = vector.AppendDoubles(dst, c.Doubles[lo:hi])
	case vector.ByteValues:
		dst = append(dst, c.Data[lo:hi]...)
	}
	switch c.Type.Score {
	case vector.Float32:
		dst = vector.AppendFloats(dst, c.ScoreFloats[lo:hi])
	case vector.Float64:
		dst = vector.AppendDoubles(dst, c.ScoreDoubles[lo:hi])
	}
	return dst
}

// numberBytes is what a number takes.
func numberBytes(e vector.Elem) int {
	switch e.Physical() {
	case vector.Float32Values:
		return 4
	case vector.NoPhysical: // bytes and strings
		return 1
	}
	return 8
}

// scoreBytes is what a score takes, 0 where there are none.
func scoreBytes(t vector.Type) int {
	if t.Score == vector.NoElem {
		return 0
	}
	return numberBytes(t.Score)
}

// head takes flag and number of values off a value of type t.
func head(b []byte, t vector.Type) (present bool, n int, rest []byte) {
	if b[0] == 0 {
		return false, 0, b[1:]
	}
	if !t.IsList() {
		return true, t.Width(), b[1:]
	}
	count, size := binary.Uvarint(b[1:])
	return true, int(count), b[1+size:]
}

// widenValue appends the first value of b, of type from, as one of type to, which from widens to, and returns what
// follows it.
func widenValue(dst, b []byte, from, to vector.Type) (out, rest []byte) {
	present, n, rest := head(b, from)
	if !present {
		return append(dst, 0), rest
	}
	numbers, scores := n*numberBytes(from.Elem), n*scoreBytes(from)
	if from.Physical() == to.Physical() && from.Score == to.Score {
		whole := len(b) - len(rest) + numbers + scores
		return append(dst, b[:whole]...), b[whole:]
	}
	dst = append(dst, b[:len(b)-len(rest)]...)
	dst = widenNumbers(dst, rest[:numbers], from.Elem, to.Elem)
	dst = widenNumbers(dst, rest[numbers:numbers+scores], from.Score, to.Score)
	return dst, rest[numbers+scores:]
}

func widenNumbers(dst, b []byte, from, to vector.Elem) []byte {
	if from.Physical() == to.Physical() {
		return append(dst, b...)
	}
	size := numberBytes(from)
	for ; len(b) > 0; b = b[size:] {
		switch {
		case from.Physical() == vector.Float32Values: // to float64
			dst = binary.LittleEndian.AppendUint64(dst,
				math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))))
		case to == vector.Float32:
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(int64(binary.LittleEndian.Uint64(b)))))
		default:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(int64(binary.LittleEndian.Uint64(b)))))
		}
	}
	return dst
}

// takeValue appends the first value of b to a column of its type, and returns what follows it.
func takeValue(c *vector.Column, b []byte) []byte {
	present, n, b := head(b, c.Type)
	if !present {
		c.AppendNulls(1)
		return b
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		for i := range n {
			c.Ints = append(c.Ints, int64(binary.LittleEndian.Uint64(b[8*i:])))
		}
	case vector.Float32Values:
		c.Floats = vector.TakeFloats(c.Floats, b[:4*n])
	case vector.Float64Values:
		c.Doubles = vector.TakeDoubles(c.Doubles, b[:8*n])
	case vector.ByteValues:
		c.Data = append(c.Data, b[:n]...)
	}
	b = b[n*numberBytes(c.Type.Elem):]
	switch c.Type.Score {
	case vector.Float32:
		c.ScoreFloats = vector.TakeFloats(c.ScoreFloats, b[:4*n])
	case vector.Float64:
		c.ScoreDoubles = vector.TakeDoubles(c.ScoreDoubles, b[:8*n])
	}
	c.AddSlot()
	return b[n*scoreBytes(c.Type):]
}

// Payloads are the values of one row, in the order of a shape:
//
//	shape (varint) | a value for each of the shape's features

// A shape is what features the rows of some parts of files have, and of what types.
type shape struct {
	features []*fileFeature
	types    []vector.Type
}

// A transposer takes the payloads of a segment's covered rows, in order, and gives the values of one feature after the
// other. What is more than its memory goes to disk, a block a feature at a time.
type transposer struct {
	features []*fileFeature // the overlay's
	place    map[*fileFeature]int
	memory   int64
	dir      func() (string, error)

	values [][]byte // by feature: of the rows since the last flush
	held   int64
	have   []bool // scratch
	file   *spill.File
	blocks [][]block
}

// A block is where some of a feature's values are on disk.
type block struct {
	at  int64
	n   int
	sum uint32
}

func newTransposer(features []*fileFeature, memory int64, dir func() (string, error)) *transposer {
	t := &transposer{
		features: features, place: map[*fileFeature]int{}, memory: memory, dir: dir,
		values: make([][]byte, len(features)), have: make([]bool, len(features)),
		blocks: make([][]block, len(features)),
	}
	for i, f := range features {
		t.place[f] = i
	}
	return t
}

// reset turns t to another segment.
func (t *transposer) reset() {
	t.held = 0
	if t.file != nil {
		t.file.Rewind()
	}
	for i := range t.values {
		t.values[i], t.blocks[i] = t.values[i][:0], t.blocks[i][:0]
	}
}

// add takes the payload of the next covered row.
func (t *transposer) add(shapes []shape, payload []byte) error {
	number, size := binary.Uvarint(payload)
	s, rest := &shapes[number], payload[size:]
	clear(t.have)
	for i, f := range s.features {
		p := t.place[f]
		before := len(t.values[p])
		t.values[p], rest = widenValue(t.values[p], rest, s.types[i], f.Type)
		t.held += int64(len(t.values[p]) - before)
		t.have[p] = true
	}
	for p, have := range t.have {
		if !have {
			t.values[p] = append(t.values[p], 0)
			t.held++
		}
	}
	if t.held < t.memory {
		return nil
	}
	return t.flush()
}

// flush puts what is in memory on disk.
func (t *transposer) flush() error {
	if t.file == nil {
		dir, err := t.dir()
		if err != nil {
			return err
		}
		if t.file, err = spill.Create(dir); err != nil {
			return err
		}
	}
	for i, v := range t.values {
		if len(v) == 0 {
			continue
		}
		at, err := t.file.Append(v)
		if err != nil {
			return err
		}
		t.blocks[i] = append(t.blocks[i], block{at, len(v), spill.Checksum(v)})
		t.values[i] = v[:0]
	}
	t.held = 0
	return nil
}

func (t *transposer) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// read returns what appends the values of feature f.
func (t *transposer) read(f int) appender {
	blocks := t.blocks[f]
	var rest, buffer []byte
	last := false
	return func(dst *vector.Column, n int) error {
		for range n {
			for len(rest) == 0 {
				switch {
				case len(blocks) > 0:
					b := blocks[0]
					blocks = blocks[1:]
					if cap(buffer) < b.n {
						buffer = make([]byte, b.n)
					}
					buffer = buffer[:b.n]
					if err := t.file.ReadBlock(buffer, b.at, b.sum); err != nil {
						return err
					}
					rest = buffer
				case !last:
					last, rest = true, t.values[f]
				default:
					return fmt.Errorf("feature %s: fewer values than covered rows", t.features[f].Name)
				}
			}
			rest = takeValue(dst, rest)
		}
		return nil
	}
}
