package simulate

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/writer"
)

// This file has compactions and erasures by the real code of package compaction.

// quickly are the options of who writes segments here: one worker, no search for duplicates in two rows, and a
// directory for spill files that is the test's own.
var quickly = writer.Options{Workers: 1, Dedup: writer.DedupOff, TempDir: "."}

// compactTable compacts a table: all segments of a partition into one, whatever their size.
func compactTable(table string) func(m *machine) {
	return func(m *machine) {
		m.do("compact "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			m.r.model.compacting(table)
			return m.compact(ctx, t)
		})
	}
}

func (m *machine) compact(ctx context.Context, t *storage.Table) error {
	opts := compaction.Options{Full: true, Write: quickly}
	plan, err := compaction.NewPlan(ctx, t, opts)
	if err != nil {
		return err
	}
	m.reads(t)
	_, err = compaction.Run(ctx, t, plan, opts)
	return err
}

// eraseRow erases a row of a table, which may be deleted already, or gone: one of a segment of the newest snapshot, or,
// where a number is given, one of the snapshot of that number, which the setup of the world has made.
func eraseRow(table string, number uint64, dropBranches bool) func(m *machine) {
	return func(m *machine) {
		m.do("erase from "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			row, err := m.pickRow(ctx, t, number)
			if err != nil {
				return err
			}
			return m.erase(ctx, t, dropBranches, row)
		})
	}
}

func (m *machine) pickRow(ctx context.Context, t *storage.Table, number uint64) (int64, error) {
	if number > 0 {
		_, v := m.r.model.version(t.Name(), number)
		if v == nil || len(v.state.rows) == 0 {
			return 0, fmt.Errorf("snapshot %d of table %s had no rows", number, t.Name())
		}
		rows := v.state.sortedRows()
		return rows[m.rnd.IntN(len(rows))], nil
	}
	_, d, err := m.pickSegment(ctx, t)
	if err != nil {
		return 0, err
	}
	m.reads(t)
	rows, err := readFeature(ctx, m.store, d, rowFeature)
	if err != nil {
		return 0, err
	}
	return rows[m.rnd.IntN(len(rows))].n, nil
}

// erase erases rows, and looks whether they are gone where that is said.
func (m *machine) erase(ctx context.Context, t *storage.Table, dropBranches bool, rows ...int64) error {
	keys, err := compaction.NewKeys(feature(rowFeature))
	if err != nil {
		return err
	}
	c := vector.NewColumn(feature(rowFeature).Type)
	for _, row := range rows {
		c.Ints = append(c.Ints, row)
		c.AddSlot()
	}
	if err := keys.Add(c, nil); err != nil {
		return err
	}
	e := m.r.model.erasing(t.Name(), rows)
	end := m.at(&intent{
		operation: "erase", table: t.Name(), removals: -1, repeats: true, dropsBranches: dropBranches,
		apply: func(s *state, _ uint64) {
			for _, row := range rows {
				delete(s.rows, row)
			}
		},
	})
	_, err = compaction.Erase(ctx, t, compaction.Erasure{Keys: keys, DropBranches: dropBranches,
		Compact: compaction.Options{Write: quickly}})
	end()
	switch {
	case err == nil:
		m.r.model.erased(e)
	case errors.Is(err, compaction.ErrFound):
		m.r.fail(fmt.Errorf("machine %s: rows %v of table %s were erased, and the erasure found one: %w", m.name(),
			rows, t.Name(), err))
	}
	return err
}
