package selection

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// Options say how rows are found. They do not change which they are.
type Options struct {
	// Read bounds memory, workers and requests, and says how the reads are recorded. Delete and Create set the purpose.
	Read reader.Options
	// DryRun finds and reports, and commits nothing.
	DryRun bool
}

// A DeleteReport says what was deleted. Its JSON keys are stable.
type DeleteReport struct {
	Table string `json:"table"`
	// Snapshot has the deletes. Where there was nothing to delete, it is the one that was searched.
	Snapshot uint64 `json:"snapshot"`
	DryRun   bool   `json:"dry_run"`
	Deleted  uint64 `json:"rows_deleted"`
	Left     uint64 `json:"rows_left"` // that readers see, of the snapshot that was searched
	// Segments are those with rows that were deleted, in the table's order.
	Segments []SegmentDeletes `json:"segments"`
	Keys     *KeyReport       `json:"keys,omitempty"`
	// Attempts is how often rows were searched: more than 1 after a conflict.
	Attempts int `json:"attempts"`
}

// SegmentDeletes are the deletes of a segment.
type SegmentDeletes struct {
	Segment   string `json:"segment"`
	Partition string `json:"partition"`
	Rows      uint64 `json:"rows"` // deleted ones too
	Deleted   uint64 `json:"rows_deleted"`
	Before    uint64 `json:"rows_deleted_before"`
}

// maxAttempts bounds how often a change is tried that conflicts with others.
const maxAttempts = 10

// Delete deletes the rows of the table's newest snapshot that the query selects, in a new snapshot. Readers of older
// snapshots still see them, and their bytes stay until they are erased. Where the commit conflicts with one that
// removed segments, Delete searches again. Rows that are ingested meanwhile stay. A query that selects no row makes no
// snapshot.
func Delete(ctx context.Context, table *storage.Table, q *Query, opts Options) (*DeleteReport, error) {
	var report *DeleteReport
	opts.Read.Usage.Purpose = usage.PurposeDelete
	err := attempts(ctx, table, q, func(snap *storage.Snapshot, attempt int) error {
		s, err := q.Find(ctx, snap, opts.Read)
		if err != nil {
			return err
		}
		if report, err = deleteReport(ctx, s); err != nil {
			return err
		}
		report.DryRun, report.Attempts = opts.DryRun, attempt
		if opts.DryRun || s.Rows == 0 {
			return nil
		}
		c := commit.Change{Operation: "delete", Base: snap.Info().Number}
		var rows commit.DeleteRows
		report.Snapshot, err = commitRows(ctx, table, s, &c, func(segment string, set bitmap.Ref) {
			rows = append(rows, commit.DeletionVector{Segment: segment, Rows: set})
			c.Set(rows)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("delete: %w", err)
	}
	return report, nil
}

func deleteReport(ctx context.Context, s *Selection) (*DeleteReport, error) {
	info := s.Snapshot.Info()
	r := &DeleteReport{
		Table: s.Snapshot.Table().Name(), Snapshot: info.Number, Deleted: s.Rows, Left: info.LiveRows() - s.Rows,
		Segments: []SegmentDeletes{}, Keys: s.Keys,
	}
	var segments []catalog.SegmentDescriptor
	for _, x := range s.Segments {
		segments = append(segments, x.Segment)
	}
	before, err := s.Snapshot.DeletionVectors(ctx, segments...)
	if err != nil {
		return nil, err
	}
	for i, x := range s.Segments {
		r.Segments = append(r.Segments, SegmentDeletes{
			Segment: x.Segment.ID, Partition: x.Segment.Partition.String(), Rows: x.Segment.Rows, Deleted: x.Count(),
			Before: before[i].Count,
		})
	}
	return r, nil
}

// attempts calls do with the newest snapshot, and again while its commit conflicts with others, unless the query has
// keys that can be read only once. A query of nil has none.
func attempts(ctx context.Context, table *storage.Table, q *Query,
	do func(snap *storage.Snapshot, attempt int) error) error {
	most := maxAttempts
	if q != nil && q.Keys != nil && q.Keys.once() {
		most = 1
	}
	for attempt := 1; ; attempt++ {
		snap, err := table.Latest(ctx)
		if err != nil {
			return err
		}
		if err = do(snap, attempt); !errors.Is(err, storage.ErrConflict) || attempt == most {
			return err
		}
	}
}

// commitRows makes sets of a selection's rows, gives them to add, and commits the change, which add has put them into.
// It returns the number of the snapshot.
func commitRows(ctx context.Context, table *storage.Table, s *Selection, c *commit.Change,
	add func(segment string, rows bitmap.Ref)) (snapshot uint64, err error) {
	store := table.Store()
	var sets []bitmap.Ref
	defer func() {
		// After these errors the commit was not made. After any other it may have been: the sets stay.
		if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrExists) {
			cleanup, cancel := object.Cleanup(ctx)
			defer cancel()
			for _, r := range sets {
				_ = store.Bitmaps().Discard(cleanup, r) // what stays, gc finds
			}
		}
	}()
	for _, x := range s.Segments {
		rows, err := rowsOf(x)
		if err != nil {
			return 0, err
		}
		set, err := store.Bitmaps().Put(ctx, x.Segment.ID, x.Segment.Rows, rows)
		if err != nil {
			return 0, err
		}
		sets = append(sets, set)
		add(x.Segment.ID, set)
	}
	made, err := table.Commit(ctx, *c)
	if err != nil {
		return 0, err
	}
	return made.Info().Number, nil
}
