package simulate

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
)

// This file has what machines do to the rows of a table. Each action says to the model what its commit is to do before
// it tries.

// handle returns the handle of a table that the machine keeps: it may know an old state.
func (m *machine) handle(name string) (*storage.Table, error) {
	if t := m.tables[name]; t != nil {
		return t, nil
	}
	t, err := m.store.NewTable(m.ctx, name)
	if err == nil {
		m.tables[name] = t
	}
	return t, err
}

// latest returns the handle of a table and its newest snapshot, as far as the handle knows.
func (m *machine) latest(ctx context.Context, name string) (*storage.Table, *storage.Snapshot, error) {
	t, err := m.handle(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.Latest(ctx)
	return t, s, err
}

// excused reports whether an error says only that the adversary was there, or that the machine has stopped.
func excused(err error) bool {
	return errors.Is(err, errFault) || errors.Is(err, errStopped) || errors.Is(err, context.Canceled)
}

// commit tries a change and tells the model before and after.
func (m *machine) commit(ctx context.Context, t *storage.Table, what string, c commit.Change, apply func(*state,
	uint64)) (*storage.Snapshot, error) {
	m.commits++
	i := &intent{operation: fmt.Sprintf("%s %s%d", what, m.name(), m.commits), table: t.Name(), apply: apply}
	c.Operation = i.operation
	i.removals = -1
	if n, ok := m.used[t]; ok {
		i.removals = n
	}
	m.r.model.intend(i)
	s, err := t.Commit(ctx, c)
	var number uint64
	if err == nil {
		number = s.Info().Number
	}
	m.r.model.committed(i, number, err, excused(err))
	if err == nil {
		m.reads(t)
	}
	return s, err
}

// reads notes that a handle was used, and fails when that was for a table that was removed since.
func (m *machine) reads(t *storage.Table) {
	x, _ := m.r.model.version(t.Name(), 0)
	n, ok := m.used[t]
	if !ok {
		m.used[t] = x.removals
	} else if n != x.removals {
		m.r.fail(fmt.Errorf("machine %s: a handle of table %s, which was removed since, reads the new one",
			m.name(), t.Name()))
	}
}

// newRows returns numbers for n new rows.
func (m *machine) newRows(n int) []int64 {
	var out []int64
	for range n {
		m.rows++
		out = append(out, int64(m.index+1)*1000+m.rows)
	}
	return out
}

func partition(name string) catalog.Partition {
	if name == "" {
		return nil
	}
	return catalog.Partition{{Key: "p", Value: name}}
}

func addRows(p catalog.Partition, rows []int64) func(*state, uint64) {
	return func(s *state, _ uint64) {
		for _, row := range rows {
			s.rows[row] = rowModel{partition: p.String()}
		}
	}
}

// appendRows ingests a segment.
func appendRows(table, part string, n int) func(m *machine) {
	return func(m *machine) {
		m.do("append to "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			rows, p := m.newRows(n), partition(part)
			d, err := m.newSegment(ctx, t, p, rows)
			if err != nil {
				return err
			}
			_, err = m.commit(ctx, t, "append",
				commit.Change{Ops: []commit.Operation{commit.AddFeatures{feature(rowFeature)}, commit.AddSegments{d}}},
				addRows(p, rows))
			return err
		})
	}
}

// overwritePartition replaces the rows of a partition.
func overwritePartition(table, part string, n int) func(m *machine) {
	return func(m *machine) {
		m.do("overwrite "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			base := uint64(0)
			s, err := t.Latest(ctx)
			if err == nil {
				base = s.Info().Number
			} else if !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			rows, p := m.newRows(n), partition(part)
			d, err := m.newSegment(ctx, t, p, rows)
			if err != nil {
				return err
			}
			add := addRows(p, rows)
			_, err = m.commit(ctx, t, "overwrite", commit.Change{Base: base,
				Ops: []commit.Operation{commit.AddFeatures{feature(rowFeature)}, commit.AddSegments{d},
					commit.OverwritePartitions{p}}}, func(s *state, number uint64) {
				s.emptyPartition(p)
				add(s, number)
			})
			return err
		})
	}
}

// pickSegment returns a segment of the newest snapshot.
func (m *machine) pickSegment(ctx context.Context, t *storage.Table) (*storage.Snapshot, catalog.SegmentDescriptor,
	error) {
	s, err := t.Latest(ctx)
	if err != nil {
		return nil, catalog.SegmentDescriptor{}, err
	}
	all, err := s.Segments(ctx, nil)
	if err == nil && len(all) == 0 {
		err = errors.New("the table is empty")
	}
	if err != nil {
		return nil, catalog.SegmentDescriptor{}, err
	}
	return s, all[m.rnd.IntN(len(all))], nil
}

// deleteRow deletes a row of a segment, which may be deleted already.
func deleteRow(table string) func(m *machine) {
	return func(m *machine) {
		m.do("delete from "+table, func(ctx context.Context) error {
			t, err := m.handle(table)
			if err != nil {
				return err
			}
			s, d, err := m.pickSegment(ctx, t)
			if err != nil {
				return err
			}
			rows, err := readFeature(ctx, m.store, d, rowFeature)
			if err != nil {
				return err
			}
			at := m.rnd.IntN(len(rows))
			set, err := m.store.Bitmaps().Put(ctx, d.ID, d.Rows, roaring.BitmapOf(uint32(at)))
			if err != nil {
				return err
			}
			_, err = m.commit(ctx, t, "delete", commit.Change{Base: s.Info().Number,
				Ops: []commit.Operation{commit.DeleteRows{{Segment: d.ID, Rows: set}}}}, func(s *state,
				_ uint64) {
				delete(s.rows, rows[at].n)
			})
			return err
		})
	}
}

// rewriteSegments makes all segments of a partition into one, without the rows that are deleted, and keeps the order of
// what a compaction does: it reads, writes, commits against what it has read.
func rewriteSegments(table, part string) func(m *machine) {
	return func(m *machine) {
		m.do("rewrite "+table, func(ctx context.Context) error {
			t, s, err := m.latest(ctx, table)
			if err != nil {
				return err
			}
			old, err := s.Partition(ctx, partition(part))
			if err != nil {
				return err
			}
			c := commit.Change{Base: s.Info().Number, Ops: []commit.Operation{commit.AddFeatures{feature(rowFeature)}}}
			rows, err := m.liveRows(ctx, s, old)
			if err != nil {
				return err
			}
			for _, d := range old {
				c.Set(append(commit.Op[commit.RemoveSegments](&c), d.ID))
			}
			if len(commit.Op[commit.RemoveSegments](&c)) == 0 {
				return nil
			}
			if len(rows) > 0 {
				d, err := m.newSegment(ctx, t, partition(part), rows)
				if err != nil {
					return err
				}
				c.Set(commit.AddSegments{d})
			}
			_, err = m.commit(ctx, t, "rewrite", c, func(s *state, _ uint64) { s.bare(rows) })
			if err != nil && !excused(err) && len(commit.Op[commit.AddSegments](&c)) > 0 {
				// Refused for certain.
				return errors.Join(err, m.store.Segments().Discard(ctx, commit.Op[commit.AddSegments](&c)[0]))
			}
			return err
		})
	}
}

// liveRows reads the rows of segments that are not deleted.
func (m *machine) liveRows(ctx context.Context, s *storage.Snapshot, segments []catalog.SegmentDescriptor) ([]int64,
	error) {
	deleted, err := s.DeletionVectors(ctx, segments...)
	if err != nil {
		return nil, err
	}
	var out []int64
	for i, d := range segments {
		rows, err := readFeature(ctx, m.store, d, rowFeature)
		if err != nil {
			return nil, err
		}
		gone, err := m.store.Bitmaps().Read(ctx, deleted[i])
		if err != nil {
			return nil, err
		}
		for k, row := range rows {
			if !gone.Contains(uint32(k)) {
				out = append(out, row.n)
			}
		}
	}
	return out, nil
}

// removeTable takes all objects of a table away, as somebody does by hand who wants it gone and has stopped its
// writers. Handles stay open.
func removeTable(table string) func(m *machine) {
	return func(m *machine) {
		m.do("remove "+table, func(context.Context) error {
			delete(m.tables, table)
			return m.ask(&operation{kind: opRemove, name: "tables/" + table + "/"})
		})
	}
}

// shareSegment adds a segment of one table to another.
func shareSegment(from, to string) func(m *machine) {
	return func(m *machine) {
		m.do("share a segment of "+from+" with "+to, func(ctx context.Context) error {
			a, err := m.handle(from)
			if err != nil {
				return err
			}
			_, d, err := m.pickSegment(ctx, a)
			if err != nil {
				return err
			}
			rows, err := readFeature(ctx, m.store, d, rowFeature)
			if err != nil {
				return err
			}
			b, err := m.handle(to)
			if err != nil {
				return err
			}
			var numbers []int64
			for _, row := range rows {
				numbers = append(numbers, row.n)
			}
			_, err = m.commit(ctx, b, "share",
				commit.Change{Ops: []commit.Operation{commit.AddFeatures{feature(rowFeature)}, commit.AddSegments{d}}},
				addRows(d.Partition, numbers))
			return err
		})
	}
}
