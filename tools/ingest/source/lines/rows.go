package lines

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A Rows makes batches of rows that are read one after the other, as those of text and of JSON lines are.
type Rows struct {
	Nodes  []*column.Type
	wanted []bool // by column; nil: all
	Target int64  // bytes of a batch
	row    int64  // the next one, of the input
}

func (r *Rows) Columns() []*column.Type { return r.Nodes }

func (r *Rows) Project(wanted []bool) error {
	r.wanted = wanted
	return nil
}

// mostBatches is how many targets of bytes a batch of few rows has at most, since each column costs something for each
// batch.
const mostBatches = 8

// Batch returns the next batch, which ends with the row that makes its text, or its arrays, as large as the target. add
// appends a row to its arrays, of which those of columns that are not wanted are nil.
// It returns the number of the row's first line and about how many bytes it has, and io.EOF after the last row.
func (r *Rows) Batch(ctx context.Context, add func(b *column.Batch) (line, size int64, err error)) (*column.Batch,
	error) {
	b := &column.Batch{RowGroup: -1, Row: r.row, Arrays: make([]*column.Array, len(r.Nodes))}
	perRow := int64(0)
	for i, n := range r.Nodes {
		if r.wanted == nil || r.wanted[i] {
			b.Arrays[i] = column.NewArray(n)
			perRow += n.NullBytes()
		}
	}
	// A row takes memory in every column, also where its text says nothing of most of them.
	perRow = max(1, perRow)
	most := max(1, min(max(r.Target/perRow, min(column.MinRows, mostBatches*r.Target/perRow)), column.MaxRows))
	for size := int64(0); size < r.Target && int64(b.Rows) < most; b.Rows++ {
		if b.Rows%256 == 0 {
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
		b.Lines = append(b.Lines, line)
		size += n
	}
	if b.Rows == 0 {
		return nil, io.EOF
	}
	r.row += int64(b.Rows)
	return b, nil
}
