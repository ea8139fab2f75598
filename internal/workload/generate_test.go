package workload

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/dsistore/dsistore/format/vector"
)

// Every value in the files, read by arrow-go's reader, is the Truth's: both orders, both layouts, several files.
func TestFilesHoldTheTruth(t *testing.T) {
	for _, o := range []Options{
		{Rows: 1500, Sparse: 30, Dense: 30},
		{Rows: 1500, Sparse: 30, Dense: 30, Order: Clustered, RowGroupRows: 400},
		{Rows: 1500, Sparse: 30, Dense: 30, Layout: HiveMap, RowGroupRows: 700},
		{Rows: 1501, Sparse: 30, Dense: 30, Layout: HiveMap, Order: Clustered, Partitions: 2, Files: 3, Codec: Snappy},
		{Rows: 1300, Sparse: 7, Dense: 1, Seed: 3, Partitions: 26},
		{Rows: 1, Dense: 2},
		{Rows: 40, Dense: 2, Sparse: 1, Layout: HiveMap},
	} {
		dir := t.TempDir()
		s, err := Generate(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		tr := truth(t, o)
		first, size := int64(0), int64(0)
		for _, f := range s.Files {
			compareFile(t, tr, f.Path, first, f.Rows)
			first += f.Rows
			size += f.Bytes
		}
		if first != o.Rows || s.Rows != o.Rows || s.Bytes != size {
			t.Errorf("options %+v: summary %+v does not add up", o, s)
		}
		if o.Partitions == 26 {
			last := filepath.Join(dir, "ds=2026-11-02", "hr=01", "part-00000.parquet")
			if got := s.Files[len(s.Files)-1].Path; got != last {
				t.Errorf("the last partition's file is %s; want %s", got, last)
			}
		}
	}
}

func compareFile(t *testing.T, tr *Truth, path string, first, rows int64) {
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
	defer table.Release()
	if table.NumRows() != rows {
		t.Fatalf("%s has %d rows; want %d", path, table.NumRows(), rows)
	}
	cols := columns(tr.Features(), tr.Options().Layout)
	for i := range cols {
		field := table.Schema().Field(i)
		if field.Name != cols[i].field.Name {
			t.Fatalf("%s: column %d is %s; want %s", path, i, field.Name, cols[i].field.Name)
		}
		got := make(map[int]*vector.Column)
		for _, f := range cols[i].features {
			got[f] = vector.NewColumn(tr.Features()[f].Type)
		}
		for _, chunk := range table.Column(i).Data().Chunks() {
			if cols[i].mapped {
				appendMaps(got, tr.Features(), cols[i].features, chunk.(*array.Map))
				continue
			}
			c := got[cols[i].features[0]]
			for row := range chunk.Len() {
				appendValue(c, chunk, row)
			}
		}
		for f, c := range got {
			want := values(t, tr, f, first, first+rows)
			for row := range int(rows) {
				if !vector.RowsEqual(c, row, want, row) {
					t.Fatalf("%s: feature %s row %d differs", path, tr.Features()[f].Name, row)
				}
			}
		}
	}
}

func appendMaps(got map[int]*vector.Column, fs []Feature, of []int, m *array.Map) {
	byKey := make(map[int32]int)
	for _, f := range of {
		byKey[fs[f].Key] = f
	}
	for row := range m.Len() {
		lo, hi := m.ValueOffsets(row)
		for at := lo; at < hi; at++ {
			appendValue(got[byKey[m.Keys().(*array.Int32).Value(int(at))]], m.Items(), int(at))
		}
		for _, f := range of {
			if c := got[f]; c.Rows == row {
				c.AppendNulls(1)
			}
		}
	}
}

// appendValue appends one value of an Arrow array to c.
func appendValue(c *vector.Column, a arrow.Array, i int) {
	if a.IsNull(i) {
		c.AppendNulls(1)
		return
	}
	c.AppendNulls(1) // a slot of its own, whose presence and values follow
	c.Present.Set(c.Rows - 1)
	if c.Type.Kind == vector.Dense || c.Type.Kind == vector.Embedding {
		c.Ints, c.Floats, c.Doubles = shrink(c.Ints, c.Type.Width()), shrink(c.Floats, c.Type.Width()),
			shrink(c.Doubles, c.Type.Width())
	}
	appendElements(c, a, i, i+1)
	if c.Type.IsList() {
		c.Offsets[len(c.Offsets)-1] = int32(len(c.Ints))
	}
}

func shrink[T any](s []T, n int) []T { return s[:max(0, len(s)-n)] }

func appendElements(c *vector.Column, a arrow.Array, lo, hi int) {
	for i := lo; i < hi; i++ {
		switch a := a.(type) {
		case *array.Map:
			from, to := a.ValueOffsets(i)
			appendElements(c, a.Keys(), int(from), int(to))
			c.ScoreFloats = append(c.ScoreFloats, a.Items().(*array.Float32).Float32Values()[from:to]...)
		case *array.List:
			from, to := a.ValueOffsets(i)
			appendElements(c, a.ListValues(), int(from), int(to))
		case *array.FixedSizeList:
			from, to := a.ValueOffsets(i)
			appendElements(c, a.ListValues(), int(from), int(to))
		case *array.Struct:
			appendElements(c, a.Field(0), i, i+1)
			c.ScoreFloats = append(c.ScoreFloats, a.Field(1).(*array.Float32).Value(i))
		case *array.Int64:
			c.Ints = append(c.Ints, a.Value(i))
		case *array.Int32:
			c.Ints = append(c.Ints, int64(a.Value(i)))
		case *array.Boolean:
			c.Ints = append(c.Ints, bit(a.Value(i)))
		case *array.Float32:
			c.Floats = append(c.Floats, a.Value(i))
		case *array.Float64:
			c.Doubles = append(c.Doubles, a.Value(i))
		}
	}
}

// The same Options give the same bytes; progress ends at the whole.
func TestFilesAreDeterministic(t *testing.T) {
	for _, o := range []Options{{Rows: 2000}, {Rows: 500, Layout: HiveMap}} {
		var files [2][]byte
		for i := range files {
			var done, total int64
			o.Progress = func(d, n int64) { done, total = d, n }
			s, err := Generate(t.Context(), t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			if done != total || total != s.Rows*int64(s.Features) {
				t.Errorf("progress ended at %d of %d", done, total)
			}
			if files[i], err = os.ReadFile(s.Files[0].Path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("options %+v: two runs gave different files", o)
		}
	}
}

// A run that is stopped leaves no partial file.
func TestCancelledRunLeavesNoFile(t *testing.T) {
	for _, layout := range []Layout{Flat, HiveMap} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Generate(ctx, dir, Options{Rows: 2000, Layout: layout, Progress: func(int64, int64) { cancel() }})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v; want a cancellation that names the file", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("left %v, %v", entries, err)
		}
	}
}
