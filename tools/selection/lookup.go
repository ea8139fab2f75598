package selection

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// Found is the rows that have one of the given keys. Its JSON keys are stable.
type Found struct {
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	Rows     uint64 `json:"rows"`
	// Segments are those that have such rows, in the table's order.
	Segments []FoundRows `json:"segments"`
	Keys     *KeyReport  `json:"keys"`
}

// FoundRows are rows of a segment, ascending.
type FoundRows struct {
	Segment   string   `json:"segment"`
	Partition string   `json:"partition"`
	Rows      []uint32 `json:"rows"` // numbered from 0 in the segment
	// Positions are where the rows come in the order of the table, without those that are deleted: what reader.Taker
	// takes.
	Positions []uint64 `json:"positions"`
}

// Lookup finds the rows of a view that have one of the keys. Of large segments it reads the key table, and the
// stripes of the key feature that it names; of other segments it reads all of the key feature. The reads are recorded
// with the purpose of counting.
func Lookup(ctx context.Context, v *storage.View, keys *KeySource, read reader.Options) (*Found, error) {
	if err := keys.validate(); err != nil {
		return nil, err
	}
	read.Usage.Purpose = usage.PurposeCount
	rows, layout, report, err := keys.find(ctx, v, "", read)
	if err != nil {
		return nil, fmt.Errorf("lookup: %w", err)
	}
	out := &Found{Table: v.Snapshot.Table().Name(), Snapshot: v.Snapshot.Info().Number, Segments: []FoundRows{},
		Keys: report}
	first := uint64(0)
	for _, s := range layout.Matched() {
		if set := rows[s.Segment.ID]; set != nil {
			f := FoundRows{Segment: s.Segment.ID, Partition: s.Segment.Partition.String(), Rows: set.ToArray()}
			for _, row := range f.Rows {
				at := uint64(row)
				if s.Rows != nil {
					at = s.Rows.Rank(row) - 1
				}
				f.Positions = append(f.Positions, first+at)
			}
			out.Rows += uint64(len(f.Rows))
			out.Segments = append(out.Segments, f)
		}
		first += s.Count()
	}
	return out, nil
}
