package versus

import (
	"context"
	"errors"
	"io"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
)

// A Projection is a table of the flags, clustered and ingested, and a share of its features. Close it.
type Projection struct {
	Store *storage.Store
	Table *storage.Table
	Names []string // of the features
}

// OpenProjection makes a table, or takes the one that an earlier run left, and opens it.
func (f *TableFlags) OpenProjection(ctx context.Context, share float64, keep bool) (_ *Projection, err error) {
	truth, err := workload.NewTruth(f.Options(workload.Clustered))
	if err != nil {
		return nil, err
	}
	path, _, err := f.Store(ctx, workload.Clustered, keep, ingest.Options{})
	if err != nil {
		return nil, err
	}
	fs, err := Project(truth, share, f.Seed)
	if err != nil {
		return nil, err
	}
	p := &Projection{Names: names(fs)}
	if p.Store, err = OpenStore(ctx, path); err != nil {
		return nil, err
	}
	if p.Table, err = p.Store.Table(ctx, Table); err != nil {
		return nil, errors.Join(err, p.Store.Close())
	}
	return p, nil
}

// Close closes the store.
func (p *Projection) Close() error { return p.Store.Close() }

// ReadColumns returns the columns of a plan, row by row.
func ReadColumns(ctx context.Context, snap *storage.Snapshot, opts reader.PlanOptions) ([]*vector.Column, error) {
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		return nil, err
	}
	s, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []*vector.Column
	for _, f := range plan.Features {
		out = append(out, vector.NewColumn(f.Type))
	}
	err = Drain(ctx, s, func(b *reader.Batch) error {
		for i, c := range b.Columns {
			out[i].AppendRows(c, 0, b.Rows)
		}
		return nil
	})
	return out, err
}

// Drain reads s to its end and calls each, unless it is nil, with every batch, which is borrowed until it returns.
func Drain(ctx context.Context, s *reader.Scanner, each func(*reader.Batch) error) error {
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if each != nil {
			err = each(b)
		}
		b.Release()
		if err != nil {
			return err
		}
	}
}
