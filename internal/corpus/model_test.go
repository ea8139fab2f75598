package corpus

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// A cell is one value of the model: nil is null, int64 for every integer, bool, timestamp; float64 for every float;
// string; []any for lists; []pair for weighted lists.
type cell any

type pair struct {
	id    int64
	score float64
}

// A model holds a source table row by row, read by arrow-go's table reader, which ingest does not use.
type model struct {
	columns map[string][]cell
	rows    int
}

// readModel reads Parquet files one after another. A map column becomes a marker of its own name (true or null) and a
// column a key, as ingest explodes it.
func readModel(t *testing.T, paths ...string) *model {
	t.Helper()
	m := &model{columns: map[string][]cell{}}
	for _, path := range paths {
		table := readTable(t, path)
		n := int(table.NumRows())
		for i, f := range table.Schema().Fields() {
			row := m.rows
			for _, chunk := range table.Column(i).Data().Chunks() {
				for r := range chunk.Len() {
					m.put(f.Name, row, chunk, r)
					row++
				}
			}
		}
		m.rows += n
		table.Release()
	}
	for name, c := range m.columns {
		m.columns[name] = append(c, make([]cell, m.rows-len(c))...)
	}
	return m
}

func readTable(t *testing.T, path string) arrow.Table {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (m *model) set(name string, row int, v cell) {
	c := m.columns[name]
	for len(c) <= row {
		c = append(c, nil)
	}
	c[row] = v
	m.columns[name] = c
}

func (m *model) put(name string, row int, a arrow.Array, r int) {
	mp, ok := a.(*array.Map)
	if !ok {
		m.set(name, row, cellOf(a, r))
		return
	}
	if a.IsNull(r) {
		m.set(name, row, nil)
		return
	}
	m.set(name, row, int64(1))
	lo, hi := mp.ValueOffsets(r)
	for e := int(lo); e < int(hi); e++ {
		m.set(fmt.Sprintf("%s.%v", name, cellOf(mp.Keys(), e)), row, cellOf(mp.Items(), e))
	}
}

func cellOf(a arrow.Array, r int) cell {
	if a.IsNull(r) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(r))
	case *array.Int16:
		return int64(a.Value(r))
	case *array.Int32:
		return int64(a.Value(r))
	case *array.Int64:
		return a.Value(r)
	case *array.Timestamp:
		return int64(a.Value(r))
	case *array.Float32:
		return float64(a.Value(r))
	case *array.Float64:
		return a.Value(r)
	case *array.String:
		return a.Value(r)
	case *array.List:
		lo, hi := a.ValueOffsets(r)
		if s, ok := a.ListValues().(*array.Struct); ok {
			out := []pair{}
			for e := int(lo); e < int(hi); e++ {
				out = append(out, pair{cellOf(s.Field(0), e).(int64), cellOf(s.Field(1), e).(float64)})
			}
			return out
		}
		out := []any{}
		for e := int(lo); e < int(hi); e++ {
			out = append(out, cellOf(a.ListValues(), e))
		}
		return out
	}
	panic(fmt.Sprintf("the model has no cell for %v", a.DataType()))
}

// equal compares cells: floats bit by bit.
func equal(a, b cell) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return equal(x, y) })
	case []pair:
		b, ok := b.([]pair)
		return ok && slices.EqualFunc(a, b, func(x, y pair) bool { return x.id == y.id && equal(x.score, y.score) })
	}
	return a == b
}

// hiveFiles returns the Parquet files under dir in path order.
func hiveFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// names returns the model's columns in order, without those that skip names.
func (m *model) names(skip ...string) []string {
	var out []string
	for n := range m.columns {
		if !slices.ContainsFunc(skip, func(s string) bool { return strings.HasPrefix(n, s) }) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
