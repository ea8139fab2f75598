package overlay

import (
	"bytes"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// held are the rows of files in memory, under a hash table of their keys. Rows are numbered as in files.
type held struct {
	files *files
	parts []*filePart

	hashes []uint64
	keys   []byte   // of all rows, one after the other
	ends   []uint64 // of each row's key in keys
	at     []uint32 // the place of each row: its part, and
	row    []uint32 // its row of it
	// table is open addressing by hash: a row's number + 1, or 0. Its length is a power of two, more than half of it free.
	table []uint32

	columns [][]*vector.Column // by place among the overlay's features, then by part; nil: null in every row
}

// maxHeldRows keeps a row's number + 1 inside the table.
const maxHeldRows = math.MaxUint32 - 1

// heldRowBytes is what a row takes besides its key and values: hash, end, part, row, and at most four places of the table.
const heldRowBytes = 8 + 8 + 4 + 4 + 16

// bytes returns what is held, and would be with so many rows more, whose keys take about as much as those that are there.
func (h *held) bytes(more int) int64 {
	n := int64(cap(h.keys)) + int64(len(h.hashes)+more)*heldRowBytes
	if rows := len(h.hashes); rows > 0 {
		n += int64(len(h.keys)) / int64(rows) * int64(more)
	}
	return n
}

// key returns the canonical key of a row. Borrowed.
func (h *held) key(row uint64) []byte {
	from := uint64(0)
	if row > 0 {
		from = h.ends[row-1]
	}
	return h.keys[from:h.ends[row]]
}

// add takes a part over. A key that is there already is an error.
func (h *held) add(p *filePart) error {
	part := uint32(len(h.parts))
	h.parts = append(h.parts, p)
	hash := h.files.opts.hash
	err := h.files.canonical(p, func(row int, key []byte) error {
		n := len(h.hashes)
		if 2*(n+1) > len(h.table) {
			h.grow()
		}
		sum := hash(key)
		i, other := h.find(sum, key)
		if other >= 0 {
			return h.files.twice(uint64(other), uint64(n), key)
		}
		h.table[i] = uint32(n + 1)
		h.hashes = append(h.hashes, sum)
		h.keys = append(h.keys, key...)
		h.ends = append(h.ends, uint64(len(h.keys)))
		h.at, h.row = append(h.at, part), append(h.row, uint32(row))
		return nil
	})
	p.keys = nil
	return err
}

// find returns the row that has a key, or -1, and the place in the table where the search ended.
func (h *held) find(sum uint64, key []byte) (place int, row int64) {
	mask := uint64(len(h.table) - 1)
	for i := sum & mask; ; i = (i + 1) & mask {
		r := h.table[i]
		if r == 0 {
			return int(i), -1
		}
		if h.hashes[r-1] == sum && bytes.Equal(h.key(uint64(r-1)), key) {
			return int(i), int64(r - 1)
		}
	}
}

func (h *held) grow() {
	h.table = make([]uint32, max(1024, 2*len(h.table)))
	mask := uint64(len(h.table) - 1)
	for r, sum := range h.hashes {
		i := sum & mask
		for h.table[i] != 0 {
			i = (i + 1) & mask
		}
		h.table[i] = uint32(r + 1)
	}
}

// seal brings the columns into the types that the overlay's features turned out to have.
func (h *held) seal(features []*fileFeature) error {
	place := make(map[*fileFeature]int, len(features))
	h.columns = make([][]*vector.Column, len(features))
	for i, f := range features {
		place[f] = i
		h.columns[i] = make([]*vector.Column, len(h.parts))
	}
	for k, p := range h.parts {
		for i, f := range p.features {
			c, err := vector.Convert(p.columns[i], f.Type)
			if err != nil {
				return fmt.Errorf("feature %s: %w", f.Name, err)
			}
			h.columns[place[f]][k] = c
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
			c, row := columns[h.at[r]], int(h.row[r])
			switch {
			case c == nil || c.IsNull(row):
				dst.AppendNulls(1)
			case dst.Type.Kind != vector.Dense:
				dst.AppendRow(c, row)
			case dst.Type.Elem == vector.Float32:
				dst.Floats = append(dst.Floats, c.Floats[row])
				addPresent(dst, 1)
			case dst.Type.Elem == vector.Float64:
				dst.Doubles = append(dst.Doubles, c.Doubles[row])
				addPresent(dst, 1)
			default:
				dst.Ints = append(dst.Ints, c.Ints[row])
				addPresent(dst, 1)
			}
		}
		rows = rows[n:]
		return nil
	}
}
