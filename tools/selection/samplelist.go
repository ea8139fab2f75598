package selection

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/usage"
)

// ListInfo says what a sample list has. Its JSON keys are stable.
type ListInfo struct {
	Table      string `json:"table"`
	Name       string `json:"sample_list"`
	Snapshot   uint64 `json:"snapshot"` // of which the counts are
	Definition string `json:"definition"`
	Added      uint64 `json:"added"` // the snapshot that defined it
	// Rows are those in it that readers see, TableRows all that they see, and Share the one over the other.
	Rows      uint64  `json:"rows"`
	TableRows uint64  `json:"table_rows"`
	Share     float64 `json:"share"`
	// Deleted rows are in the list too, and nobody reads them.
	Deleted  uint64 `json:"rows_deleted"`
	Segments uint64 `json:"segments"` // with such rows
}

// ListReport is what Create says.
type ListReport struct {
	ListInfo
	DryRun   bool       `json:"dry_run"`
	Replaced bool       `json:"replaced"`
	Keys     *KeyReport `json:"keys,omitempty"`
	Attempts int        `json:"attempts"`
}

// Create makes a sample list of the rows of the table's newest snapshot that the query selects, in a new snapshot. Rows
// that are ingested later are not in it. A list may have no rows. storage.ErrExists: there is one of the name, and
// replace is false.
func Create(ctx context.Context, table *storage.Table, name string, q *Query, replace bool,
	opts Options) (*ListReport, error) {
	list := catalog.SampleList{Name: name, Definition: q.String()}
	if err := list.Validate(); err != nil {
		return nil, badQuery("%s", err)
	}
	var report *ListReport
	opts.Read.Usage.Purpose = usage.PurposeSelect
	err := attempts(ctx, table, q, func(snap *storage.Snapshot, attempt int) error {
		c := commit.Change{Operation: "samples", Base: snap.Info().Number,
			Ops: []commit.Operation{commit.DefineLists{list}}}
		switch there, err := snap.SampleList(ctx, name); {
		case err == nil && !replace: // before rows are looked for
			return fmt.Errorf("%w since snapshot %d: use another, or replace it (--replace, in Python "+
				"replace=True)", storage.ErrExists, there.Added)
		case err == nil:
			c.Set(commit.DropLists{name})
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		s, err := q.Find(ctx, snap, opts.Read)
		if err != nil {
			return err
		}
		report = &ListReport{
			ListInfo: ListInfo{
				Table: table.Name(), Name: name, Snapshot: c.Base, Definition: list.Definition, Added: c.Base,
				Rows: s.Rows, TableRows: snap.Info().LiveRows(), Share: share(s.Rows, snap.Info().LiveRows()),
				Segments: uint64(len(s.Segments)),
			},
			DryRun: opts.DryRun, Replaced: len(commit.Op[commit.DropLists](&c)) > 0, Keys: s.Keys, Attempts: attempt,
		}
		if opts.DryRun {
			return nil
		}
		var rows commit.SetListRows
		report.Snapshot, err = commitRows(ctx, table, s, &c, func(segment string, set bitmap.Ref) {
			rows = append(rows, commit.ListRows{List: name, Segment: segment, Rows: set})
			c.Set(rows)
		})
		report.Added = report.Snapshot
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sample list %s: %w", name, err)
	}
	return report, nil
}

func share(rows, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(rows) / float64(of)
}

// Drop removes a sample list, in a new snapshot. Branches that have it keep it.
func Drop(ctx context.Context, table *storage.Table, name string) (*storage.Snapshot, error) {
	var made *storage.Snapshot
	err := attempts(ctx, table, nil, func(snap *storage.Snapshot, _ int) (err error) {
		if _, err = snap.SampleList(ctx, name); err != nil {
			return err
		}
		made, err = table.Commit(ctx, commit.Change{Operation: "samples", Base: snap.Info().Number,
			Ops: []commit.Operation{commit.DropLists{name}}})
		return err
	})
	return made, err
}

// A PartitionShare is how much of a partition is in a sample list.
type PartitionShare struct {
	Partition string  `json:"partition"`
	Rows      uint64  `json:"rows"` // in the list, that readers see
	TableRows uint64  `json:"table_rows"`
	Share     float64 `json:"share"`
}

// Describe counts the rows of a sample list of a snapshot, in all and by partition. It reads bitmaps only of segments
// with both listed and deleted rows.
func Describe(ctx context.Context, snap *storage.Snapshot,
	list catalog.SampleList) (*ListInfo, []PartitionShare, error) {
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	listed, err := snap.ListedRows(ctx, list.Name, segments...)
	if err != nil {
		return nil, nil, err
	}
	deleted, err := snap.DeletionVectors(ctx, segments...)
	if err != nil {
		return nil, nil, err
	}
	gone := make([]uint64, len(segments)) // listed rows that are deleted
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(segmentsAtOnce)
	store := snap.Table().Store()
	for i := range segments {
		if listed[i].IsEmpty() || deleted[i].IsEmpty() {
			continue
		}
		g.Go(func() error {
			rows, err := store.Bitmaps().Read(gctx, listed[i])
			if err != nil {
				return err
			}
			without, err := store.Bitmaps().Read(gctx, deleted[i])
			if err != nil {
				return err
			}
			gone[i] = rows.AndCardinality(without)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	info := snap.Info()
	out := &ListInfo{
		Table: snap.Table().Name(), Name: list.Name, Snapshot: info.Number, Definition: list.Definition,
		Added: list.Added, TableRows: info.LiveRows(),
	}
	partitions := []PartitionShare{}
	for i, d := range segments {
		name := d.Partition.String()
		if k := len(partitions) - 1; k < 0 || partitions[k].Partition != name {
			partitions = append(partitions, PartitionShare{Partition: name})
		}
		p := &partitions[len(partitions)-1]
		rows := listed[i].Count - gone[i]
		out.Rows += rows
		out.Deleted += gone[i]
		p.Rows += rows
		p.TableRows += d.Rows - deleted[i].Count
		if rows > 0 {
			out.Segments++
		}
	}
	for i := range partitions {
		partitions[i].Share = share(partitions[i].Rows, partitions[i].TableRows)
	}
	out.Share = share(out.Rows, out.TableRows)
	return out, partitions, nil
}
