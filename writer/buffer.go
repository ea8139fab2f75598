package writer

import (
	"slices"
	"sort"
	"unsafe"

	"github.com/dsistore/dsistore/format/vector"
)

// A buffer holds Rows unchanged, one chunk for each Rows, and a record for each row. Sorting moves only the records.
// Afterwards each feature is gathered once, to a spill file or to a stripe.
//
//	records   sorted:  (chunk 2, row 7) (chunk 0, row 1) (chunk 2, row 8) ...
//	features  number → the chunks that have it, and their columns
//
// A feature costs a buffer nothing for the chunks that lack it.
type buffer struct {
	records []record
	chunks  int
	columns [][]chunkColumn // by feature number
	bytes   int64           // memory held, records included
	release []func()        // Rows.Release of each chunk
	// Of each row, the size in its largest feature: the largest one, and the sum.
	largest, sizes int64
}

// fillsBlock reports whether a block of a spill file (spillGrain rows of a feature at least) may grow beyond
// maxBlockBytes by more rows, given the largest of their sizes and the sum. There are such rows of many megabytes, and
// room for many of them where memory is large.
func (b *buffer) fillsBlock(largest, all int64) bool {
	return min(spillGrain*max(b.largest, largest), b.sizes+all) > maxBlockBytes
}

type chunkColumn struct {
	chunk int
	col   *vector.Column
}

// columnOverhead is the memory of a column without its values, in bytes, with the buffer's entry for it.
const columnOverhead = int64(unsafe.Sizeof(vector.Column{})+unsafe.Sizeof(chunkColumn{})) + 64

// add appends rows as a chunk and owns them. bytes is the memory of their columns. recs has a record for each row: add
// sets its chunk and row, and copies it.
func (b *buffer) add(recs []record, rows *Rows, bytes int64) {
	for i := range recs {
		recs[i].chunk, recs[i].row = uint32(b.chunks), uint32(i)
	}
	before := cap(b.records)
	b.records = append(b.records, recs...)
	b.bytes += int64(cap(b.records)-before) * int64(unsafe.Sizeof(record{}))
	for i, number := range rows.Numbers {
		for len(b.columns) <= number {
			b.columns = append(b.columns, nil)
		}
		b.columns[number] = append(b.columns[number], chunkColumn{b.chunks, rows.Columns[i]})
	}
	b.bytes += bytes
	b.release = append(b.release, rows.Release)
	b.chunks++
}

// free releases all rows and leaves the buffer empty.
func (b *buffer) free() {
	for _, release := range b.release {
		release()
	}
	*b = buffer{}
}

// sort puts the records in order.
func (b *buffer) sort() {
	slices.SortFunc(b.records, func(x, y record) int { return compareRecords(&x, &y) })
}

// has reports whether any chunk has the feature.
func (b *buffer) has(number int) bool { return number < len(b.columns) && len(b.columns[number]) > 0 }

// sources returns the feature's columns in the given chunks, nil where a chunk lacks the feature, in dst's memory. A
// column of another type is converted to t and replaced in the buffer. One goroutine at a time for each feature.
//
// It takes the time of the given chunks, not of all: there are many partitions of a few chunks each.
func (b *buffer) sources(dst []*vector.Column, number int, t vector.Type, chunks []runRange) ([]*vector.Column,
	error) {
	dst = vector.Resize(dst, len(chunks))
	clear(dst)
	if !b.has(number) {
		return dst, nil
	}
	have := b.columns[number] // ascending by chunk
	at := 0
	for i, g := range chunks {
		chunk := int(g.run)
		if len(have) == b.chunks {
			at = chunk
		} else if at == len(have) || have[at].chunk != chunk { // chunks mostly ascend: it is often the next one
			at = sort.Search(len(have), func(k int) bool { return have[k].chunk >= chunk })
			if at == len(have) || have[at].chunk != chunk {
				continue
			}
		}
		e := &have[at]
		if e.col.Type != t {
			c, err := vector.Convert(e.col, t)
			if err != nil {
				return nil, err
			}
			e.col = c
		}
		dst[i] = e.col
		at++
	}
	return dst, nil
}

// allChunks returns all chunks, for sources.
func (b *buffer) allChunks() []runRange {
	all := make([]runRange, b.chunks)
	for i := range all {
		all[i].run = uint32(i)
	}
	return all
}

// appendPieces appends the pieces for records [lo, hi). No piece crosses a multiple of grain records.
func (b *buffer) appendPieces(dst []piece, lo, hi, grain int) []piece {
	for i := lo; i < hi; i++ {
		r := &b.records[i]
		if n := len(dst); i > lo && i%grain != 0 {
			if p := &dst[n-1]; p.src == r.chunk && p.row+p.n == r.row {
				p.n++
				continue
			}
		}
		dst = append(dst, piece{src: r.chunk, row: r.row, n: 1})
	}
	return dst
}
