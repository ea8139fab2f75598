package source

import (
	"context"

	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// open opens the reader of an input, whose timestamps have their units. records are what it gives instead; nil: none.
func (d *discovery) open(ctx context.Context, in input.File, records *arrowsource.Records) (column.Reader, error) {
	r, err := d.reader(ctx, in, records)
	if err != nil {
		return nil, err
	}
	if err := d.timestamps.choose(ctx, r, in.Stream != nil || records != nil); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// reader opens the reader of an input.
func (d *discovery) reader(ctx context.Context, in input.File, records *arrowsource.Records) (column.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if records != nil && in.Format == arrowsource.Format.Name {
		return arrowsource.OpenRecords(ctx, records, &d.ReadOptions)
	}
	return d.openers[in.Format](ctx, in)
}
