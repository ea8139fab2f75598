package overlay

import (
	"bytes"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// held are the rows of files in memory, under a hash table of their keys. Rows are numbered as in files.
//
// What takes the time of a join is waiting for memory: a key that is looked up finds its row by one access to the
// table, and is compared with one to the keys. Look-ups go batch by batch, all accesses of a kind after each other, so
// that many are under way at once.
type held struct {
	files *files
	parts []*filePart

	keys      []byte   // of all rows, one after the other
	ends      []uint64 // of each row's key in keys
	width     int      // of every key; -1: they differ
	positions []uint64 // of each row: its part << 32 | its row of that
	// table is open addressing by hash: the upper half of the hash << 32 | a row's number + 1, or 0. Its length is a
	// power of two, more than half of it free.
	table []uint64

	columns [][]*vector.Column // by position among the overlay's features, then by part; nil: null in every row
	batch   keyBatch
}

// maxHeldRows keeps a row's number + 1 inside the table.
const maxHeldRows = math.MaxUint32 - 1

// heldRowBytes is what a row takes besides its key and values: end, position, and at most four slots of the table.
const heldRowBytes = 8 + 8 + 32

// A keyBatch is the keys of some rows, and their hashes.
type keyBatch struct {
	keys []byte
	ends []int32
	sums []uint64
	rows []int32 // that have one: those whose key is null have none
}

func (b *keyBatch) reset() {
	b.keys, b.ends, b.sums, b.rows = b.keys[:0], b.ends[:0], b.sums[:0], b.rows[:0]
}

// add appends the key of a row, which lies at the end of keys.
func (b *keyBatch) add(row int) {
	b.ends, b.rows = append(b.ends, int32(len(b.keys))), append(b.rows, int32(row))
}

// key returns the i-th key.
func (b *keyBatch) key(i int) []byte {
	from := int32(0)
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.keys[from:b.ends[i]]
}

// hash hashes all keys.
func (b *keyBatch) hash(hash func([]byte) uint64) {
	for i := range b.ends {
		b.sums = append(b.sums, hash(b.key(i)))
	}
}

// bytes returns what is held, and would be with so many rows more, whose keys take about as much as those that are
// there.
func (h *held) bytes(more int) int64 {
	rows := len(h.positions)
	n := int64(cap(h.keys)) + int64(rows+more)*heldRowBytes
	if rows > 0 {
		n += int64(len(h.keys)) / int64(rows) * int64(more)
	}
	return n
}

// key returns the canonical key of a row. Borrowed.
func (h *held) key(row uint64) []byte {
	if h.width >= 0 {
		return h.keys[row*uint64(h.width) : (row+1)*uint64(h.width)]
	}
	from := uint64(0)
	if row > 0 {
		from = h.ends[row-1]
	}
	return h.keys[from:h.ends[row]]
}

// tag is what the table has of a hash.
func tag(sum uint64) uint64 { return sum &^ math.MaxUint32 }

// add takes a part over. A key that is there already is an error.
func (h *held) add(p *filePart) error {
	part := uint64(len(h.parts)) << 32
	h.parts = append(h.parts, p)
	b := &h.batch
	b.reset()
	err := h.files.canonical(p, func(row int, key []byte) error {
		b.keys = append(b.keys, key...)
		b.add(row)
		return nil
	})
	p.keys = nil
	b.hash(h.files.opts.hash)
	for 2*(len(h.positions)+len(b.rows)+1) > len(h.table) {
		h.grow()
	}
	for i, sum := range b.sums {
		n, key := len(h.positions), b.key(i)
		if n == 0 {
			h.width = len(key)
		} else if len(key) != h.width {
			h.width = -1
		}
		at, other := h.find(sum, key)
		if other >= 0 {
			return h.files.twice(uint64(other), uint64(n), key)
		}
		h.table[at] = tag(sum) | uint64(n+1)
		h.keys = append(h.keys, key...)
		h.ends = append(h.ends, uint64(len(h.keys)))
		h.positions = append(h.positions, part|uint64(b.rows[i]))
	}
	return err // of a null key, which comes after those before it
}

// find returns the row that has a key, or -1, and the slot of the table where the search ended.
func (h *held) find(sum uint64, key []byte) (slot int, row int64) {
	mask := uint64(len(h.table) - 1)
	for i := sum & mask; ; i = (i + 1) & mask {
		e := h.table[i]
		if e == 0 {
			return int(i), -1
		}
		if tag(e) == tag(sum) {
			if r := e&math.MaxUint32 - 1; bytes.Equal(h.key(r), key) {
				return int(i), int64(r)
			}
		}
	}
}

// findAll sets found to the row that has each key of a batch, or -1.
func (h *held) findAll(found []int64, b *keyBatch) []int64 {
	found = found[:0]
	if len(h.table) == 0 { // no file has a row
		for range b.sums {
			found = append(found, -1)
		}
		return found
	}
	mask := uint64(len(h.table) - 1)
	for _, sum := range b.sums {
		found = append(found, int64(h.table[sum&mask]))
	}
	for i, sum := range b.sums {
		switch e := uint64(found[i]); {
		case e == 0:
			found[i] = -1
		case tag(e) == tag(sum) && bytes.Equal(h.key(e&math.MaxUint32-1), b.key(i)):
			found[i] = int64(e&math.MaxUint32 - 1)
		default:
			_, found[i] = h.find(sum, b.key(i))
		}
	}
	return found
}

func (h *held) grow() {
	h.table = make([]uint64, max(1024, 2*len(h.table)))
	mask := uint64(len(h.table) - 1)
	for r := range h.positions {
		sum := h.files.opts.hash(h.key(uint64(r)))
		i := sum & mask
		for h.table[i] != 0 {
			i = (i + 1) & mask
		}
		h.table[i] = tag(sum) | uint64(r+1)
	}
}

// seal brings the columns into the types that the overlay's features turned out to have.
func (h *held) seal(features []*fileFeature) error {
	position := make(map[*fileFeature]int, len(features))
	h.columns = make([][]*vector.Column, len(features))
	for i, f := range features {
		position[f] = i
		h.columns[i] = make([]*vector.Column, len(h.parts))
	}
	for k, p := range h.parts {
		for i, f := range p.features {
			c, err := vector.Convert(p.columns[i], f.Type)
			if err != nil {
				return fmt.Errorf("feature %s: %w", f.Name, err)
			}
			h.columns[position[f]][k] = c
		}
		p.columns = nil
	}
	return nil
}

// release gives back what the columns borrow.
func (h *held) release() {
	for _, p := range h.parts {
		p.chunk.Release()
	}
	h.parts, h.columns = nil, nil
}

// gather returns what appends feature f of rows, which are borrowed for as long.
func (h *held) gather(f int, rows []uint32) appender {
	columns := h.columns[f]
	return func(dst *vector.Column, n int) error {
		for _, r := range rows[:n] {
			at := h.positions[r]
			c, row := columns[at>>32], int(uint32(at))
			switch {
			case c == nil || c.IsNull(row):
				dst.AppendNulls(1)
			case dst.Type.Kind != vector.Dense:
				dst.AppendRow(c, row)
			case dst.Type.Elem == vector.Float32:
				dst.Floats = append(dst.Floats, c.Floats[row])
				dst.AddSlot()
			case dst.Type.Elem == vector.Float64:
				dst.Doubles = append(dst.Doubles, c.Doubles[row])
				dst.AddSlot()
			default:
				dst.Ints = append(dst.Ints, c.Ints[row])
				dst.AddSlot()
			}
		}
		rows = rows[n:]
		return nil
	}
}
