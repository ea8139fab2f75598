package versus

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/dsistore/dsistore/bench/parquetscan"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// Each is called with every batch of an epoch. The tensors are borrowed until it returns.
type Each func(t *reader.Tensors, rows int) error

// An Engine reads all rows of the same features into tensors, with presence.
type Engine interface {
	Name() string
	// Epoch reads all rows once, opening what it needs.
	Epoch(ctx context.Context, threads int, each Each) error
	// Bytes returns the stored bytes that an epoch reads.
	Bytes(ctx context.Context) (int64, error)
}

// StoreEngine reads a table with package reader.
type StoreEngine struct {
	Label     string
	Dir       string
	Blobs     object.Store // where the store is; nil: in Dir
	Features  []workload.Feature
	BatchSize int
	Dedup     reader.Dedup
	Output    reader.Output // 0: tensors
	Bare      bool          // without presence

	// Stats are of the last epoch.
	Stats reader.Stats

	bytes int64 // that the last epoch read
}

func (s *StoreEngine) Name() string { return s.Label }

// Epoch opens the store and the table's latest snapshot, and scans it with as many workers as threads. Memory is used
// again from one epoch to the next.
func (s *StoreEngine) Epoch(ctx context.Context, threads int, each Each) (err error) {
	sc, closeAll, err := s.Open(ctx, threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	err = Drain(ctx, sc, func(b *reader.Batch) error { return each(b.Tensors, b.Rows) })
	s.Stats = sc.Stats()
	s.bytes = int64(s.Stats.BytesNeeded + s.Stats.BytesUnneeded)
	return err
}

// Open returns a scanner of the table's latest snapshot, and what closes it and the store.
func (s *StoreEngine) Open(ctx context.Context, threads int) (_ *reader.Scanner, closeAll func() error, err error) {
	layout, closeStore, err := s.Layout(ctx)
	if err != nil {
		return nil, nil, err
	}
	sc, err := layout.Open(reader.Options{Workers: threads, Presence: !s.Bare, Reuse: true, RoundIntegers: true})
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return sc, func() error { return errors.Join(sc.Close(), closeStore()) }, nil
}

// Layout returns the plan put against the table's latest snapshot, and what closes the store.
func (s *StoreEngine) Layout(ctx context.Context) (_ *reader.Layout, closeStore func() error, err error) {
	blobs := s.Blobs
	if blobs == nil {
		if blobs, err = object.NewLocal(s.Dir); err != nil {
			return nil, nil, err
		}
	}
	store, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	_, snap, err := store.Newest(ctx, Table)
	if err != nil {
		return nil, nil, err
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{
		Features: names(s.Features), BatchSize: s.BatchSize, Output: cmp.Or(s.Output, reader.OutputTensors),
		Dedup: s.Dedup,
	})
	if err != nil {
		return nil, nil, err
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		return nil, nil, err
	}
	return layout, store.Close, nil
}

func (s *StoreEngine) Bytes(ctx context.Context) (int64, error) {
	if s.bytes > 0 {
		return s.bytes, nil
	}
	err := s.Epoch(ctx, 1, func(*reader.Tensors, int) error { return nil })
	return s.bytes, err
}

func names(fs []workload.Feature) []string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = f.Name
	}
	return out
}

// ParquetEngine reads Parquet files with arrow-go.
type ParquetEngine struct {
	Label     string
	Paths     []string
	Features  []workload.Feature
	BatchSize int
}

func (p *ParquetEngine) Name() string { return p.Label }

func (p *ParquetEngine) Epoch(ctx context.Context, threads int, each Each) (err error) {
	columns := make([]parquetscan.Column, len(p.Features))
	for i, f := range p.Features {
		columns[i] = parquetscan.Column{Name: f.Name, Type: f.Type}
	}
	sc, err := parquetscan.Open(p.Paths, columns, parquetscan.Options{BatchSize: p.BatchSize, Threads: threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sc.Close()) }()
	for {
		t, rows, err := sc.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(t, rows); err != nil {
			return err
		}
	}
}

// Bytes adds up the column chunks of the features.
func (p *ParquetEngine) Bytes(context.Context) (n int64, err error) {
	wanted := make(map[string]bool, len(p.Features))
	for _, f := range p.Features {
		wanted[f.Name] = true
	}
	for _, path := range p.Paths {
		f, err := file.OpenParquetFile(path, false)
		if err != nil {
			return 0, err
		}
		m := f.MetaData()
		for g := range f.NumRowGroups() {
			for c := range m.Schema.NumColumns() {
				if wanted[m.Schema.ColumnRoot(c).Name()] {
					chunk, err := m.RowGroup(g).ColumnChunk(c)
					if err != nil {
						return 0, errors.Join(err, f.Close())
					}
					n += chunk.TotalCompressedSize()
				}
			}
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return n, nil
}
