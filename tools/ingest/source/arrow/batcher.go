package arrow

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A batcher cuts records into batches.
type batcher struct {
	nodes  []*column.Type
	wanted []bool // by column; nil: all
	target int64  // bytes of a batch
	conv   recordConverter

	rec   arrow.RecordBatch // at hand, or nil
	at    int64             // its next row
	rows  int64             // of a batch of it
	row   int64             // of the input, the next one
	batch int               // records begun
}

func newBatcher(opts *column.ReadOptions) batcher {
	return batcher{target: opts.ChunkBytes, conv: recordConverter{limits: &opts.Limits, threads: opts.Threads}}
}

func (b *batcher) setSchema(schema *arrow.Schema) {
	for _, f := range schema.Fields() {
		b.nodes = append(b.nodes, fieldType(f, 1))
	}
}

// Columns returns the types of the records' columns.
func (b *batcher) Columns() []*column.Type { return b.nodes }

// Project leaves columns unread.
func (b *batcher) Project(wanted []bool) error {
	b.wanted = wanted
	return nil
}

// begin makes rec, of so many bytes, the record at hand. 0 bytes: its batches are as large as can be.
func (b *batcher) begin(rec arrow.RecordBatch, bytes int64) {
	b.rec, b.at, b.rows = rec, 0, column.MaxRows
	b.conv.begin(len(b.nodes))
	if n := rec.NumRows(); n > 0 && bytes > 0 {
		b.rows = max(column.MinRows, min(column.MaxRows, b.target/max(1, bytes/n)))
	}
	b.batch++
}

// more reports whether the record at hand has rows that were not given.
func (b *batcher) more() bool { return b.rec != nil && b.at < b.rec.NumRows() }

// next returns the next rows of the record at hand; made is called with each of their arrays, see recordConverter.
func (b *batcher) next(ctx context.Context, made func(i int, a *column.Array)) (*column.Batch, error) {
	n := min(b.rows, b.rec.NumRows()-b.at)
	part := b.rec.NewSlice(b.at, b.at+n)
	out := &column.Batch{Rows: int(n), RowGroup: -1, Row: b.row, Arrays: make([]*column.Array, len(b.nodes))}
	err := b.conv.convert(ctx, out.Arrays, part, b.nodes, b.wanted, made)
	if err == nil && b.conv.borrow {
		out.Hold = part
	} else {
		part.Release()
	}
	if err != nil {
		return nil, fmt.Errorf("record batch %d, %w", b.batch-1, err)
	}
	b.at += n
	b.row += n
	return out, nil
}
