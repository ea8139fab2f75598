package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
)

// The features of a row as maps from their numbers, as training tables had them in Hive: map<int,float>,
// map<int,list<bigint>> and map<int,map<bigint,float>>. A column that nests stores the keys with the lengths of their
// lists, and the elements of all lists of a row one after the other.
//
//	dense   key, number ...
//	lists   key, length ...     list_ids    id ...
//	scored  key, length ...     scored_ids  id, score ...
//
// A feature that is null has no key.
const (
	mapDense     = "map_dense"
	mapLists     = "map_lists"
	mapListIDs   = "map_list_ids"
	mapScored    = "map_scored"
	mapScoredIDs = "map_scored_ids"
)

var mapNames = []string{mapDense, mapLists, mapListIDs, mapScored, mapScoredIDs}

var (
	pairs = arrow.ListOf(arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "score", Type: arrow.PrimitiveTypes.Float32}))
	mapSchema = arrow.NewSchema([]arrow.Field{{Name: mapDense, Type: pairs}, {Name: mapLists, Type: pairs},
		{Name: mapListIDs, Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}, {Name: mapScored, Type: pairs},
		{Name: mapScoredIDs, Type: pairs}}, nil)
)

// mapRecords reads a table, and gives its rows as maps: an ingest reads it.
type mapRecords struct {
	ctx    context.Context // of the ingest
	rows   *reader.Scanner
	close  func() error
	keys   []int64 // of the columns of rows
	build  *array.RecordBuilder
	record arrow.RecordBatch
	err    error
}

func (f *flags) openMaps(ctx context.Context, t *table, truth *workload.Truth) (*mapRecords, error) {
	var names []string
	for _, w := range truth.Features() {
		if w.MapColumn() != "" {
			names = append(names, w.Name)
		}
	}
	rows, done, err := f.columns(t, names).Open(ctx, f.Threads)
	if err != nil {
		return nil, err
	}
	keys, err := keysOf(rows, truth)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return &mapRecords{ctx: ctx, rows: rows, close: done, keys: keys,
		build: array.NewRecordBuilder(memory.DefaultAllocator, mapSchema)}, nil
}

func (m *mapRecords) Schema() *arrow.Schema          { return mapSchema }
func (m *mapRecords) RecordBatch() arrow.RecordBatch { return m.record }
func (m *mapRecords) Err() error                     { return m.err }

func (m *mapRecords) Release() {
	m.drop()
	m.build.Release()
	m.err = errors.Join(m.err, m.close())
}

func (m *mapRecords) drop() {
	if m.record != nil {
		m.record.Release()
		m.record = nil
	}
}

func (m *mapRecords) Next() bool {
	m.drop()
	batch, err := m.rows.Next(m.ctx)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			m.err = err
		}
		return false
	}
	defer batch.Release()
	dense, lists, listIDs := newPairs(m.build, 0), newPairs(m.build, 1), m.build.Field(2).(*array.ListBuilder)
	scored, scoredIDs := newPairs(m.build, 3), newPairs(m.build, 4)
	ids := listIDs.ValueBuilder().(*array.Int64Builder)
	for row := range batch.Rows {
		dense.Append(true)
		lists.Append(true)
		listIDs.Append(true)
		scored.Append(true)
		scoredIDs.Append(true)
		for i, c := range batch.Columns {
			if c.IsNull(row) {
				continue
			}
			lo, hi := c.RowRange(row)
			switch c.Type.Kind {
			case vector.Dense:
				dense.add(m.keys[i], number(c, lo))
			case vector.Sparse:
				lists.add(m.keys[i], float32(hi-lo))
				ids.AppendValues(c.Ints[lo:hi], nil)
			default:
				scored.add(m.keys[i], float32(hi-lo))
				for at := lo; at < hi; at++ {
					scoredIDs.add(c.Ints[at], c.ScoreFloats[at])
				}
			}
		}
	}
	m.record = m.build.NewRecordBatch()
	return true
}

// A pairsBuilder builds lists of ids with numbers.
type pairsBuilder struct {
	*array.ListBuilder
	entry *array.StructBuilder
	id    *array.Int64Builder
	score *array.Float32Builder
}

func newPairs(b *array.RecordBuilder, field int) *pairsBuilder {
	l := b.Field(field).(*array.ListBuilder)
	e := l.ValueBuilder().(*array.StructBuilder)
	return &pairsBuilder{l, e, e.FieldBuilder(0).(*array.Int64Builder), e.FieldBuilder(1).(*array.Float32Builder)}
}

func (p *pairsBuilder) add(id int64, score float32) {
	p.entry.Append(true)
	p.id.Append(id)
	p.score.Append(score)
}

// number returns a dense value as a tensor has it.
func number(c *vector.Column, at int) float32 {
	switch {
	case c.Type.Elem.IsInteger():
		return float32(c.Ints[at])
	case c.Type.Elem == vector.Float64:
		return float32(c.Doubles[at])
	}
	return c.Floats[at]
}

// keysOf returns the key of each column of a scanner's batches.
func keysOf(s *reader.Scanner, truth *workload.Truth) ([]int64, error) {
	var out []int64
	for _, c := range s.Plan().Features {
		i, err := truth.Feature(c.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, int64(truth.Features()[i].Key))
	}
	return out, nil
}

// checkMaps fails unless the table of maps has the values of some features that another table has, in the same order of
// rows.
func (f *flags) checkMaps(ctx context.Context, t *tables, truth *workload.Truth, features []string) (err error) {
	flat, done, err := f.columns(t.flat, features).Open(ctx, f.Threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	maps, doneMaps, err := f.columns(t.maps, nil).Open(ctx, f.Threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, doneMaps()) }()
	keys, err := keysOf(flat, truth)
	if err != nil {
		return err
	}
	return versus.Drain(ctx, flat, func(want *reader.Batch) error {
		got, err := maps.Next(ctx)
		if err != nil {
			return err
		}
		defer got.Release()
		if got.Rows != want.Rows {
			return fmt.Errorf("the table of maps has other rows")
		}
		for row := range want.Rows {
			m := mapsOf(got, row)
			for i, c := range want.Columns {
				if !m.has(keys[i], c, row) {
					return fmt.Errorf("the maps have another value of feature %d in row %d of a batch", keys[i], row)
				}
			}
		}
		return nil
	})
}

// rowMaps is a row of the table of maps.
type rowMaps struct {
	dense         map[int64]float32
	lists, scored map[int64][2]int // the range of the feature's elements
	ids, pairs    *vector.Column
}

func mapsOf(b *reader.Batch, row int) rowMaps {
	by := map[string]*vector.Column{}
	for i, c := range b.Plan().Features {
		by[c.Name] = b.Columns[i]
	}
	m := rowMaps{dense: map[int64]float32{}, ids: by[mapListIDs], pairs: by[mapScoredIDs]}
	c := by[mapDense]
	for lo, hi := c.RowRange(row); lo < hi; lo++ {
		m.dense[c.Ints[lo]] = c.ScoreFloats[lo]
	}
	ranges := func(keys, elements *vector.Column) map[int64][2]int {
		out := map[int64][2]int{}
		at, _ := elements.RowRange(row)
		for lo, hi := keys.RowRange(row); lo < hi; lo++ {
			n := int(keys.ScoreFloats[lo])
			out[keys.Ints[lo]] = [2]int{at, at + n}
			at += n
		}
		return out
	}
	m.lists, m.scored = ranges(by[mapLists], m.ids), ranges(by[mapScored], m.pairs)
	return m
}

// has reports whether the maps have what a column has in a row.
func (m *rowMaps) has(key int64, c *vector.Column, row int) bool {
	lo, hi := c.RowRange(row)
	if c.Type.Kind == vector.Dense {
		v, ok := m.dense[key]
		return ok == !c.IsNull(row) && (!ok || v == number(c, lo))
	}
	in, elements := m.lists, m.ids
	if c.Type.Kind == vector.Weighted {
		in, elements = m.scored, m.pairs
	}
	r, ok := in[key]
	if !ok || c.IsNull(row) {
		return ok == !c.IsNull(row)
	}
	return slices.Equal(elements.Ints[r[0]:r[1]], c.Ints[lo:hi]) && (c.Type.Kind != vector.Weighted ||
		slices.Equal(elements.ScoreFloats[r[0]:r[1]], c.ScoreFloats[lo:hi]))
}
