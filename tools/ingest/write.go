package ingest

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/writer"
)

// write puts the rows in order and writes them as segments. The segments that it returns exist even when there is an
// error.
func (e *engine) write(ctx context.Context) ([]catalog.SegmentDescriptor, error) {
	e.progress.start(PhaseWrite, e.report.BytesRaw)
	dropped := make([]bool, len(e.files))
	for i, f := range e.fileOf {
		dropped[i] = f.dropped
	}
	out, err := e.sorter.Write(ctx, writer.Job{
		Target: e.target, Features: e.schema.packOrder(e.opts.Popularity), Dropped: dropped,
		Partition: func(number uint32) catalog.Partition { return e.parts[number].partition },
		Wrote:     e.progress.add,
	})
	e.report.Stripes, e.report.Duplicates = out.Stripes, out.Duplicates
	return out.Segments, err
}
