package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/format/vector"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
)

// A reading is all that a source says.
type reading struct {
	fields, rows, bad []string
	sum               string
}

func (r *reading) equal(o *reading) bool {
	return slices.Equal(r.fields, o.fields) && slices.Equal(r.rows, o.rows) && slices.Equal(r.bad, o.bad) &&
		r.sum == o.sum
}

// TestThreadsReadTheSame: chunks, the order in which features are found, bad rows and fingerprints do not depend on
// threads.
func TestThreadsReadTheSame(t *testing.T) {
	number := arrow.PrimitiveTypes.Int64
	entries := arrow.MapOf(arrow.BinaryTypes.String, number)
	var fields []arrow.Field
	for i := range 8 {
		fields = append(fields,
			arrow.Field{Name: fmt.Sprintf("n%d", i), Type: number, Nullable: true},
			arrow.Field{Name: fmt.Sprintf("list%d", i), Type: arrow.ListOf(number), Nullable: true},
			arrow.Field{Name: fmt.Sprintf("map%d", i), Type: entries, Nullable: true},
			arrow.Field{Name: fmt.Sprintf("struct%d", i), Nullable: true, Type: arrow.StructOf(
				arrow.Field{Name: "x", Type: number, Nullable: true}, arrow.Field{Name: "m", Type: entries,
					Nullable: true})})
	}
	schema := arrow.NewSchema(fields, nil)
	read := func(threads int) *reading {
		var records []arrow.RecordBatch
		for batch := range 3 {
			var rows strings.Builder
			for row := range 40 {
				for i := range 8 {
					k := batch*40 + row*7 + i
					list := fmt.Sprint(k)
					if k%11 == 0 {
						list = "null" // a null inside a list: a bad row
					}
					key := fmt.Sprintf("%q", fmt.Sprintf("k%d", k%5))
					if k%31 == 0 {
						key = `""` // an empty key: a bad row, too
					}
					comma, end := ",", ""
					if i == 0 {
						comma = "{"
					}
					if i == 7 {
						end = "}"
					}
					fmt.Fprintf(&rows, `%s"n%d": %d, "list%d": [1, %s], "map%d": [{"key": %s, "value": %d}], `+
						`"struct%d": {"x": %d, "m": [{"key": "s%d", "value": 1}]}%s`,
						comma, i, k, i, list, i, key, k, i, k, k%3, end)
				}
				if row < 39 {
					rows.WriteByte(',')
				}
			}
			rec, _, err := arrowarray.RecordFromJSON(memory.DefaultAllocator, schema,
				strings.NewReader("["+rows.String()+"]"))
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, rec)
		}
		from, err := arrowarray.NewRecordReader(schema, records)
		if err != nil {
			t.Fatal(err)
		}
		in := arrowsource.NewRecords(from, true)
		defer in.Close()
		out := &reading{}
		s, err := fromStdin(t, nil, Options{Format: "arrow", Records: in, Threads: threads, OnBadRow: func(p Place,
			column string, err error) {
			out.bad = append(out.bad, fmt.Sprint(p, column, err))
		}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			c, err := s.Next(t.Context())
			if err != nil {
				break
			}
			for i, f := range c.Fields {
				for row := range c.Rows {
					one := vector.NewColumn(c.Columns[i].Type)
					one.AppendRows(c.Columns[i], row, row+1)
					out.rows = append(out.rows, fmt.Sprint(f.Name, one.IsNull(0), one.Ints))
				}
			}
			c.Release()
		}
		for _, f := range s.Fields() {
			out.fields = append(out.fields, f.Name)
		}
		if out.sum, err = in.Sum(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := read(1)
	if len(want.bad) == 0 || len(want.rows) == 0 || !slices.Contains(want.fields, "map3.k4") {
		t.Fatalf("%d bad rows, %d values, %d features: the test says nothing", len(want.bad), len(want.rows),
			len(want.fields))
	}
	for _, threads := range []int{2, 3, 16} {
		if got := read(threads); !got.equal(want) {
			t.Errorf("%d threads read something else than one", threads)
		}
	}
}

// TestColumnsMayShareArrays: the race detector finds that a column writes to what another one reads, if it does.
func TestColumnsMayShareArrays(t *testing.T) {
	number := arrow.PrimitiveTypes.Int64
	const unknown = arrowarray.UnknownNullCount
	values := arrowarray.NewData(number, 6, []*memory.Buffer{
		memory.NewBufferBytes([]byte{0xff}), memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{1, 2, 3, 4, 5,
			6})),
	}, nil, unknown, 0)
	list := arrow.ListOf(number)
	// The list in the middle is null and has values all the same.
	data := arrowarray.NewData(list, 3, []*memory.Buffer{
		memory.NewBufferBytes([]byte{0b101}), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2, 4, 6})),
	}, []arrow.ArrayData{values}, unknown, 0)
	column := arrowarray.MakeFromData(data)
	var fields []arrow.Field
	var columns []arrow.Array
	for i := range 32 {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: list, Nullable: true})
		columns = append(columns, column)
	}
	schema := arrow.NewSchema(fields, nil)
	from, err := arrowarray.NewRecordReader(schema, []arrow.RecordBatch{arrowarray.NewRecordBatch(schema, columns, 3)})
	if err != nil {
		t.Fatal(err)
	}
	in := arrowsource.NewRecords(from, true)
	defer in.Close()
	s, err := fromStdin(t, nil, Options{Format: "arrow", Records: in, Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := readAll(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range joined(chunks) {
		if c.Rows != 3 || !c.IsNull(1) || !slices.Equal(c.Ints, []int64{1, 2, 5, 6}) {
			t.Errorf("%s: %d rows, values %v", name, c.Rows, c.Ints)
		}
	}
}
