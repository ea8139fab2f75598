package source

import (
	"context"
	"io"
)

// A rowReader makes batches of rows that are read one after the other, as those of text and of JSON lines are.
type rowReader struct {
	nodes  []*node
	wanted []bool // by column; nil: all
	target int64  // bytes of a batch
	row    int64  // the next one, of the input
}

func (r *rowReader) columns() []*node { return r.nodes }

func (r *rowReader) want(wanted []bool) error {
	r.wanted = wanted
	return nil
}

// batch returns the next batch. add appends a row to its arrays, of which those of columns that are not wanted are nil. It returns
// the number of the row's first line and about how many bytes it has, and io.EOF after the last row.
func (r *rowReader) batch(ctx context.Context, add func(b *batch) (line, size int64, err error)) (*batch, error) {
	b := &batch{rowGroup: -1, row: r.row, arrays: make([]*array, len(r.nodes))}
	for i, n := range r.nodes {
		if r.wanted == nil || r.wanted[i] {
			b.arrays[i] = newArray(n)
		}
	}
	for size := int64(0); size < r.target && b.rows < maxRows; b.rows++ {
		if b.rows%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		line, n, err := add(b)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		b.lines = append(b.lines, line)
		size += n
	}
	if b.rows == 0 {
		return nil, io.EOF
	}
	r.row += int64(b.rows)
	return b, nil
}
