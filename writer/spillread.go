package writer

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// section returns the section of a feature, the zero section if the run has none.
func (r *run) section(number int) section {
	if number < len(r.sections) {
		return r.sections[number]
	}
	return section{}
}

// A runReader reads a range of rows of one feature of a run, in order. reset makes it read another range.
type runReader struct {
	run     *run
	sec     section
	row     int // next
	end     int
	index   []byte
	first   int // block of index[0]
	loaded  int // block in raw, or -1
	raw     []byte
	decoder blockReader
	free    *[][]byte // where raw comes from, and goes to
}

// reset makes r read rows [lo, hi) of the feature, which has a section.
func (r *runReader) reset(src *run, sec section, lo, hi int) error {
	r.release()
	r.run, r.sec, r.row, r.end, r.loaded = src, sec, lo, hi, -1
	r.first = lo / int(sec.blockRows)
	last := (hi + int(sec.blockRows) - 1) / int(sec.blockRows)
	r.index = vector.Resize(r.index, (last-r.first)*indexEntryBytes)
	if _, err := src.file.ReadAt(r.index, sec.index+int64(r.first)*indexEntryBytes); err != nil {
		return fmt.Errorf("reading a spill file: %w", err)
	}
	return nil
}

// release gives the block's memory to other readers. The next row is read again.
func (r *runReader) release() {
	if r.raw != nil {
		*r.free = append(*r.free, r.raw)
	}
	r.raw, r.loaded, r.decoder = nil, -1, blockReader{}
}

// load reads the block of the next row, unless it is loaded. stored is false if all rows of the block are null; left is
// how many of its rows are left, from the next row on.
func (r *runReader) load() (stored bool, left int, err error) {
	per := int(r.sec.blockRows)
	block := r.row / per
	rows := min(per, r.run.rows-block*per)
	left = block*per + rows - r.row
	e := r.index[(block-r.first)*indexEntryBytes:]
	length := int(binary.LittleEndian.Uint32(e[8:]))
	if length == 0 {
		return false, left, nil
	}
	if block == r.loaded {
		return true, left, nil
	}
	if free := *r.free; r.raw == nil && len(free) > 0 {
		r.raw, *r.free = free[len(free)-1], free[:len(free)-1]
	}
	r.raw = vector.Resize(r.raw, length)
	err = r.run.file.ReadBlock(r.raw, int64(binary.LittleEndian.Uint64(e)), binary.LittleEndian.Uint32(e[12:]))
	if err != nil {
		r.loaded = -1
		return false, 0, err
	}
	r.decoder.reset(r.sec.typ, r.raw, rows)
	if skip := r.row - block*per; skip > 0 {
		r.decoder.skip(skip)
	}
	r.loaded = block
	return true, left, nil
}

// appendRows appends the next n rows to dst, a plain column of the section's type.
func (r *runReader) appendRows(dst *vector.Column, n int) error {
	for n > 0 {
		stored, left, err := r.load()
		if err != nil {
			return err
		}
		k := min(n, left)
		if stored {
			r.decoder.appendRows(dst, k)
		} else {
			dst.AppendNulls(k)
		}
		r.row += k
		n -= k
	}
	return nil
}

// seek moves the next row forward to row.
func (r *runReader) seek(row int) {
	if r.loaded >= 0 && row/int(r.sec.blockRows) == r.loaded && row > r.row {
		r.decoder.skip(row - r.row)
	}
	r.row = row
}

// anyPresent reports whether any of the next n rows is not null. The reader must be reset afterwards.
func (r *runReader) anyPresent(n int) (bool, error) {
	for n > 0 {
		stored, left, err := r.load()
		if err != nil {
			return false, err
		}
		k := min(n, left)
		if stored {
			if r.decoder.anyPresent(k) {
				return true, nil
			}
			r.decoder.skip(k)
		}
		r.row += k
		n -= k
	}
	return false, nil
}
