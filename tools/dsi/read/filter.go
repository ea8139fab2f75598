package read

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// filterJSON is what --where took. Stripes are of the segments that it left to look into.
type filterJSON struct {
	Where            string  `json:"where"`
	Rows             uint64  `json:"rows"`
	RowsSelected     uint64  `json:"rows_selected"`
	Segments         uint64  `json:"segments"`
	SegmentsPruned   uint64  `json:"segments_pruned"`
	SegmentsWhole    uint64  `json:"segments_whole"`
	StripesPruned    uint64  `json:"stripes_pruned"`
	StripesWhole     uint64  `json:"stripes_whole"`
	StripesEvaluated uint64  `json:"stripes_evaluated"`
	BytesNeeded      uint64  `json:"bytes_needed"`
	BytesUnneeded    uint64  `json:"bytes_unneeded"`
	Requests         uint64  `json:"requests"`
	Seconds          float64 `json:"seconds"`
}

// newFilterJSON returns what a filter took; nil: there is none.
func newFilterJSON(where string, p *reader.Pruning) *filterJSON {
	if p == nil {
		return nil
	}
	return &filterJSON{
		Where: where, Rows: p.Rows, RowsSelected: p.RowsSelected, Segments: p.Segments, SegmentsPruned: p.SegmentsNever,
		SegmentsWhole: p.SegmentsAlways, StripesPruned: p.StripesNever, StripesWhole: p.StripesAlways,
		StripesEvaluated: p.StripesEvaluated, BytesNeeded: p.BytesNeeded, BytesUnneeded: p.BytesUnneeded,
		Requests: p.Requests, Seconds: p.Seconds,
	}
}

func (f *filterJSON) facts() [][2]string {
	if f == nil {
		return nil
	}
	share := float64(f.RowsSelected) / float64(max(f.Rows, 1))
	return [][2]string{
		{"filter", fmt.Sprintf("%s of %s (%s), in %.3f s", terminal.Count(f.RowsSelected), terminal.Plural(f.Rows,
			"row"),
			terminal.Percent(share), f.Seconds)},
		{"pruned", fmt.Sprintf("%s of %s; of the others %s by statistics", terminal.Count(f.SegmentsPruned),
			terminal.Plural(f.Segments, "segment"), terminal.Plural(f.StripesPruned, "stripe"))},
		{"evaluated", fmt.Sprintf("%s, %s read in %s", terminal.Plural(f.StripesEvaluated, "stripe"),
			terminal.Bytes(f.BytesNeeded+f.BytesUnneeded), terminal.Plural(f.Requests, "request"))},
	}
}

// printFiltered prints what a plan's filter, sample list and downsampling leave to read, of what the plan would read
// without them.
func printFiltered(ctx context.Context, e *app.Env, snap *storage.Snapshot, p *reader.Plan) error {
	if p.Filter == "" && p.SampleList == "" && p.Downsample == "" {
		return nil
	}
	var costs [2]reader.Cost
	var rows [2]uint64
	for i, plan := range []*reader.Plan{p, p.AllRows()} {
		l, err := reader.NewLayout(ctx, snap, plan)
		if err != nil {
			return err
		}
		if i == 0 {
			e.PrintFacts(newFilterJSON(plan.Filter, l.Pruning()).facts()...)
		}
		rows[i] = l.Rows()
		if costs[i], err = l.Cost(ctx, reader.Options{}); err != nil {
			return err
		}
	}
	if p.SampleList != "" || p.Downsample != "" { // else the filter has said it
		e.PrintFacts([2]string{"rows", fmt.Sprintf("%s of %s (%s)", terminal.Count(rows[0]), terminal.Count(rows[1]),
			terminal.Percent(float64(rows[0])/float64(max(rows[1], 1))))})
	}
	e.PrintFacts([2]string{"fetched", fmt.Sprintf("%s of %s, %s of %s",
		terminal.Count(costs[0].Stripes), terminal.Plural(costs[1].Stripes, "stripe"),
		terminal.Bytes(costs[0].BytesNeeded+costs[0].BytesUnneeded), terminal.Bytes(
			costs[1].BytesNeeded+costs[1].BytesUnneeded))})
	return nil
}
