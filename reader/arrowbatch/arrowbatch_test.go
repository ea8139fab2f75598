package arrowbatch

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A testFeature is one feature and its three rows: the first has a value, the second is null, the third has another.
type testFeature struct {
	name    string
	typ     vector.Type
	logical string
	origin  [2]string // column and key
	role    storage.Role
	fill    func(c *vector.Column, row int) // of rows 0 and 2; nil: null
	arrow   string
	want    [2]string // JSON of rows 0 and 2
}

func ints(a, b []int64) func(*vector.Column, int) {
	return func(c *vector.Column, row int) { c.Ints = append(c.Ints, [][]int64{a, nil, b}[row]...) }
}

func floats(a, b []float32) func(*vector.Column, int) {
	return func(c *vector.Column, row int) { c.Floats = append(c.Floats, [][]float32{a, nil, b}[row]...) }
}

func texts(a, b string) func(*vector.Column, int) {
	return func(c *vector.Column, row int) { c.Data = append(c.Data, []string{a, "", b}[row]...) }
}

func hexBytes(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func dense(e vector.Elem) vector.Type  { return vector.Type{Kind: vector.Dense, Elem: e} }
func sparse(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Sparse, Elem: e} }

var (
	bytesT    = vector.Type{Kind: vector.Bytes}
	stringT   = vector.Type{Kind: vector.String}
	weightedT = vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}
)

func weighted(c *vector.Column, row int) {
	if row == 0 {
		c.Ints, c.ScoreFloats = append(c.Ints, 5, 6), append(c.ScoreFloats, 0.5, 1.5)
	}
}

var testFeatures = []testFeature{
	{name: "bool", typ: dense(vector.Bool), fill: ints([]int64{1}, []int64{0}), arrow: "bool", want: [2]string{"true", "false"}},
	{name: "i8", typ: dense(vector.Int8), fill: ints([]int64{-128}, []int64{127}), arrow: "int8", want: [2]string{"-128", "127"}},
	{name: "i16", typ: dense(vector.Int16), fill: ints([]int64{-3}, []int64{4}), arrow: "int16", want: [2]string{"-3", "4"}},
	{name: "i32", typ: dense(vector.Int32), fill: ints([]int64{math.MinInt32}, []int64{4}), arrow: "int32", want: [2]string{"-2147483648", "4"}},
	{name: "i64", typ: dense(vector.Int64), fill: ints([]int64{-9}, []int64{1 << 40}), arrow: "int64", want: [2]string{"-9", "1099511627776"}},
	{name: "u8", typ: dense(vector.Uint8), fill: ints([]int64{255}, []int64{0}), arrow: "uint8", want: [2]string{"255", "0"}},
	{name: "u16", typ: dense(vector.Uint16), fill: ints([]int64{65535}, []int64{0}), arrow: "uint16", want: [2]string{"65535", "0"}},
	{name: "u32", typ: dense(vector.Uint32), fill: ints([]int64{math.MaxUint32}, []int64{0}), arrow: "uint32", want: [2]string{"4294967295", "0"}},
	{name: "u64", typ: dense(vector.Uint64), fill: ints([]int64{-1}, []int64{0}), arrow: "uint64", want: [2]string{"18446744073709551615", "0"}},
	{name: "f32", typ: dense(vector.Float32), fill: floats([]float32{1.5}, []float32{-2}), arrow: "float32", want: [2]string{"1.5", "-2"}},
	{name: "f64", typ: dense(vector.Float64), fill: func(c *vector.Column, row int) { c.Doubles = append(c.Doubles, 0.1*float64(row)) }, arrow: "float64", want: [2]string{"0", "0.2"}},
	{name: "half", typ: dense(vector.Float32), logical: "float16", fill: floats([]float32{1.5}, []float32{-0.25}), arrow: "float16", want: [2]string{"1.5", "-0.25"}},
	{name: "date32", typ: dense(vector.Int32), logical: "date32", fill: ints([]int64{1}, []int64{-1}), arrow: "date32", want: [2]string{`"1970-01-02"`, `"1969-12-31"`}},
	{name: "date64", typ: dense(vector.Int64), logical: "date64", fill: ints([]int64{86400000}, []int64{0}), arrow: "date64", want: [2]string{`"1970-01-02"`, `"1970-01-01"`}},
	{name: "time32s", typ: dense(vector.Int32), logical: "time32[s]", fill: ints([]int64{61}, []int64{0}), arrow: "time32[s]", want: [2]string{`"00:01:01"`, `"00:00:00"`}},
	{name: "time64ns", typ: dense(vector.Int64), logical: "time64[ns]", fill: ints([]int64{61e9}, []int64{0}), arrow: "time64[ns]", want: [2]string{`"00:01:01"`, `"00:00:00"`}},
	{name: "ts", typ: dense(vector.Int64), logical: "timestamp[us, tz=UTC]", fill: ints([]int64{1e6}, []int64{0}), arrow: "timestamp[us, tz=UTC]", want: [2]string{`"1970-01-01T00:00:01Z"`, `"1970-01-01T00:00:00Z"`}},
	{name: "tsns", typ: dense(vector.Int64), logical: "timestamp[ns]", fill: ints([]int64{1}, []int64{0}), arrow: "timestamp[ns]", want: [2]string{`"1970-01-01T00:00:00.000000001"`, `"1970-01-01T00:00:00"`}},
	{name: "dur", typ: dense(vector.Int64), logical: "duration[ms]", fill: ints([]int64{5}, []int64{0}), arrow: "duration[ms]", want: [2]string{`"5ms"`, `"0ms"`}},
	{name: "dec", typ: dense(vector.Int64), logical: "decimal(10, 2)", fill: ints([]int64{-12345}, []int64{7}), arrow: "decimal(10, 2)", want: [2]string{`"-123.45"`, `"0.07"`}},
	{name: "dec30", typ: bytesT, logical: "decimal(30, 1)", fill: texts(hexBytes("fffffffffffffffffffffffffffffff6"), hexBytes("00000000000000010000000000000000")), arrow: "decimal(30, 1)", want: [2]string{`"-1"`, `"1844674407370955161.6"`}},
	{name: "dec50", typ: bytesT, logical: "decimal(50, 0)", fill: texts(strings.Repeat("\xff", 32), strings.Repeat("\x00", 31)+"\x09"), arrow: "decimal256(50, 0)", want: [2]string{`"-1"`, `"9"`}},
	{name: "str", typ: stringT, fill: texts("é", ""), arrow: "utf8", want: [2]string{`"é"`, `""`}},
	{name: "bin", typ: bytesT, fill: texts("\xff", "a"), arrow: "binary", want: [2]string{`"/w=="`, `"YQ=="`}},
	{name: "fixed", typ: bytesT, logical: "fixed_size_binary[2]", fill: texts("ab", "cd"), arrow: "fixed_size_binary[2]", want: [2]string{`"YWI="`, `"Y2Q="`}},
	{name: "uuid", typ: bytesT, logical: "uuid", fill: texts(hexBytes("00112233445566778899aabbccddeeff"), strings.Repeat("\x00", 16)), arrow: "extension<arrow.uuid>", want: [2]string{`"00112233-4455-6677-8899-aabbccddeeff"`, `"00000000-0000-0000-0000-000000000000"`}},
	{name: "js", typ: stringT, logical: "json", fill: texts(`{"a": 1}`, `[]`), arrow: "extension<arrow.json[storage_type=utf8]>", want: [2]string{`{"a": 1}`, `[]`}},
	{name: "ids", typ: sparse(vector.Int64), fill: ints([]int64{1, -2}, nil), arrow: "list<item: int64, nullable>", want: [2]string{"[1,-2]", "[]"}},
	{name: "ids8", typ: sparse(vector.Uint8), fill: ints([]int64{1, 255}, []int64{3}), arrow: "list<item: uint8, nullable>", want: [2]string{"[1,255]", "[3]"}},
	{name: "dates", typ: sparse(vector.Int32), logical: "date32", fill: ints([]int64{0, 1}, nil), arrow: "list<item: date32, nullable>", want: [2]string{`["1970-01-01","1970-01-02"]`, "[]"}},
	{name: "halves", typ: sparse(vector.Float32), logical: "float16", fill: floats([]float32{0.5}, nil), arrow: "list<item: float16, nullable>", want: [2]string{"[0.5]", "[]"}},
	{name: "emb", typ: vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2}, fill: floats([]float32{1, 2}, []float32{3, 4}), arrow: "fixed_size_list<item: float32, nullable>[2]", want: [2]string{"[1,2]", "[3,4]"}},
	{name: "w", typ: weightedT, fill: weighted, arrow: "list<item: struct<id: int64 nullable, score: float32 nullable>, nullable>", want: [2]string{`[{"id":5,"score":0.5},{"id":6,"score":1.5}]`, "[]"}},
	{name: "wnamed", typ: weightedT, logical: "struct<item, p>", fill: weighted, arrow: "list<item: struct<item: int64 nullable, p: float32 nullable>, nullable>", want: [2]string{`[{"item":5,"p":0.5},{"item":6,"p":1.5}]`, "[]"}},
	{name: "wquoted", typ: weightedT, logical: `struct<"a, b", "c>\"">`, fill: weighted, arrow: `list<item: struct<a, b: int64 nullable, c>": float32 nullable>, nullable>`, want: [2]string{`[{"a, b":5,"c\u003e\"":0.5},{"a, b":6,"c\u003e\"":1.5}]`, "[]"}},
	{name: "wmap", typ: weightedT, logical: "map", fill: weighted, arrow: "map<int64, float32, items_nullable>", want: [2]string{`[{"key":5,"value":0.5},{"key":6,"value":1.5}]`, "[]"}},
	// A Logical that does not fit the type is not looked at.
	{name: "wide", typ: dense(vector.Int64), logical: "date32", fill: ints([]int64{1}, []int64{2}), arrow: "int64", want: [2]string{"1", "2"}},
}

// foldFeatures are a struct in a struct, and a map whose keys have different types.
var foldFeatures = []testFeature{
	{name: "before", typ: dense(vector.Int64), fill: ints([]int64{1}, []int64{2})},
	{name: "user", typ: dense(vector.Bool), logical: "struct", origin: [2]string{"user", ""}, fill: ints([]int64{1}, []int64{1})},
	{name: "user.age", typ: dense(vector.Int8), origin: [2]string{"user", "age"}, fill: ints([]int64{30}, []int64{40})},
	{name: "user.geo", typ: dense(vector.Bool), logical: "struct", origin: [2]string{"user.geo", ""}, fill: ints([]int64{1}, []int64{1})},
	{name: "user.geo.city", typ: stringT, origin: [2]string{"user.geo", "city"}, fill: texts("Bern", "Rome")},
	{name: "m", typ: dense(vector.Bool), logical: "map<int64>", origin: [2]string{"m", ""}, fill: ints([]int64{1}, []int64{1})},
	{name: "m.7", typ: sparse(vector.Int32), origin: [2]string{"m", "7"}, fill: ints([]int64{1, 2}, nil)},
	{name: "renamed", typ: sparse(vector.Int64), origin: [2]string{"m", "-12"}, fill: ints(nil, []int64{3})},
	{name: "alone.x", typ: dense(vector.Int64), origin: [2]string{"alone", "x"}, fill: ints([]int64{8}, []int64{9})},
}

// scan writes the features as two segments, of three rows and of one row where every feature is missing, and opens a
// scanner of everything.
func scan(t *testing.T, features []testFeature, batch int) *reader.Scanner {
	t.Helper()
	return scanRows(t, features, nil, reader.PlanOptions{BatchSize: batch})
}

// scanRows is scan of as many rows as inverse has entries, which say which of the three they are; nil: those three. Lists
// with an inverse are partial duplicates.
func scanRows(t *testing.T, features []testFeature, inverse []int32, opts reader.PlanOptions) *reader.Scanner {
	t.Helper()
	first := uint32(3)
	if inverse != nil {
		first = uint32(len(inverse))
	}
	ctx := context.Background()
	store, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table, err := store.NewTable(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	var schema []storage.Feature
	var names []string
	for _, f := range features {
		schema = append(schema, storage.Feature{
			ID: storage.NewFeatureID(f.name, 1), Name: f.name, Generation: 1, Type: f.typ, Role: f.role, Logical: f.logical,
			OriginColumn: f.origin[0], OriginKey: f.origin[1],
		})
		names = append(names, f.name)
	}
	change := storage.Change{Operation: "ingest", Features: schema}
	for seg, rows := range []uint32{first, 1} {
		w, err := table.NewSegment(ctx, storage.Partition{{Key: "ds", Value: fmt.Sprint(seg)}}, []uint32{rows}, storage.SegmentOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range features {
			if seg == 1 {
				w.Skip(i)
				continue
			}
			c := vector.NewColumn(f.typ)
			for row := range 3 {
				if row == 1 {
					c.AppendNulls(1)
					continue
				}
				f.fill(c, row)
				c.AddSlot()
			}
			if inverse != nil {
				c.Inverse, c.Rows = inverse, len(inverse)
				if f.typ.Kind == vector.Sparse || f.typ.Kind == vector.Weighted {
					for s := range 3 {
						c.Lengths = append(c.Lengths, c.Offsets[s+1]-c.Offsets[s])
					}
					c.Offsets = c.Offsets[:3]
				}
			}
			if err := w.AddFeature(ctx, i, schema[i], func(w *format.Writer) error { return w.WriteStripe(c) }); err != nil {
				t.Fatal(err)
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Add = append(change.Add, d)
	}
	snap, err := table.Commit(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	opts.Features = names
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		t.Fatal(err)
	}
	s, err := reader.OpenPlan(ctx, store, plan, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rowsOf returns the JSON of every row of a column.
func rowsOf(t *testing.T, records []arrow.RecordBatch, column int) []string {
	t.Helper()
	var out []string
	for _, r := range records {
		data, err := json.Marshal(r.Column(column))
		if err != nil {
			t.Fatal(err)
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(data, &rows); err != nil {
			t.Fatal(err)
		}
		for _, x := range rows {
			out = append(out, string(x))
		}
	}
	return out
}

func checkRecords(t *testing.T, schema *arrow.Schema, records []arrow.RecordBatch) {
	t.Helper()
	for i, f := range testFeatures {
		if got := schema.Field(i).Type.String(); got != f.arrow {
			t.Errorf("%s: type %s, want %s", f.name, got, f.arrow)
		}
		want := []string{f.want[0], "null", f.want[1], "null"}
		if got := rowsOf(t, records, i); !sameJSON(got, want) {
			t.Errorf("%s: %v, want %v", f.name, got, want)
		}
	}
}

func sameJSON(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		var x, y any
		if json.Unmarshal([]byte(a[i]), &x) != nil || json.Unmarshal([]byte(b[i]), &y) != nil || !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// Every type goes through IPC with its Arrow type, values and nulls.
func TestIPC(t *testing.T) {
	for _, f := range []Format{IPCStream, IPCFile} {
		for _, batch := range []int{1, 3, 100} {
			var buf bytes.Buffer
			rows, err := Write(context.Background(), &buf, f, scan(t, testFeatures, batch), Options{})
			if err != nil || rows != 4 {
				t.Fatalf("%d rows, %v", rows, err)
			}
			var records []arrow.RecordBatch
			var schema *arrow.Schema
			if f == IPCStream {
				r, err := ipc.NewReader(&buf)
				if err != nil {
					t.Fatal(err)
				}
				schema = r.Schema()
				for r.Next() {
					rec := r.RecordBatch()
					rec.Retain()
					records = append(records, rec)
				}
				if r.Err() != nil {
					t.Fatal(r.Err())
				}
			} else {
				r, err := ipc.NewFileReader(bytes.NewReader(buf.Bytes()))
				if err != nil {
					t.Fatal(err)
				}
				schema = r.Schema()
				for i := range r.NumRecords() {
					rec, err := r.RecordBatchAt(i)
					if err != nil {
						t.Fatal(err)
					}
					records = append(records, rec)
				}
			}
			checkRecords(t, schema, records)
		}
	}
}

// Every type goes through Parquet; those that Parquet lacks come back through the Arrow schema stored beside.
func TestParquet(t *testing.T) {
	var buf bytes.Buffer
	// arrow-go itself does not read durations, and reads JSON as bytes.
	features := slices.DeleteFunc(slices.Clone(testFeatures), func(f testFeature) bool { return f.name == "dur" || f.name == "js" })
	if _, err := Write(context.Background(), &buf, Parquet, scan(t, features, 2), Options{}); err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var records []arrow.RecordBatch
	tr := array.NewTableReader(table, 100)
	for tr.Next() {
		rec := tr.RecordBatch()
		rec.Retain()
		records = append(records, rec)
	}
	for i, f := range features {
		want := []string{f.want[0], "null", f.want[1], "null"}
		if got := rowsOf(t, records, i); !sameJSON(got, want) {
			t.Errorf("%s (%v): %v, want %v", f.name, table.Schema().Field(i).Type, got, want)
		}
	}
}

// A duration is an integer in Parquet, wherever it is in a type.
func TestParquetDurations(t *testing.T) {
	typ := arrow.StructOf(
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.FixedWidthTypes.Duration_ms)},
		arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Duration_s))},
	)
	const want = "struct<l: list<item: int64, nullable>, m: map<utf8, list<item: int64, nullable>, items_nullable>>"
	if got := parquetType(typ).String(); got != want {
		t.Error(got)
	}
	duration := testFeatures[slices.IndexFunc(testFeatures, func(f testFeature) bool { return f.name == "dur" })]
	list := testFeature{name: "durs", typ: sparse(vector.Int64), logical: "duration[us]", fill: ints([]int64{1, 2}, nil)}
	var buf bytes.Buffer
	if _, err := Write(context.Background(), &buf, Parquet, scan(t, []testFeature{duration, list}, 2), Options{}); err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if n, want := pf.NumRows(), int64(4); n != want || pf.MetaData().KeyValueMetadata().FindValue("ARROW:schema") == nil {
		t.Errorf("%d rows, want %d, or no Arrow schema", n, want)
	}
}

func TestFold(t *testing.T) {
	s := scan(t, foldFeatures, 10)
	c, err := NewConverter(s.Plan(), Options{Fold: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = `schema:
  fields: 4
    - before: type=int64, nullable
    - user: type=struct<age: int8 nullable, geo: struct<city: utf8 nullable> nullable>, nullable
    - m: type=map<int64, list<item: int64, nullable>, items_nullable>, nullable
    - alone.x: type=int64, nullable`
	if got := strings.TrimSpace(c.Schema().String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := c.Record(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{
		{"1", "null", "2", "null"},
		{`{"age": 30, "geo": {"city": "Bern"}}`, "null", `{"age": 40, "geo": {"city": "Rome"}}`, "null"},
		{`[{"key": 7, "value": [1, 2]}, {"key": -12, "value": []}]`, "null", `[{"key": 7, "value": []}, {"key": -12, "value": [3]}]`, "null"},
		{"8", "null", "9", "null"},
	} {
		if got := rowsOf(t, []arrow.RecordBatch{rec}, i); !sameJSON(got, want) {
			t.Errorf("column %d: %v, want %v", i, got, want)
		}
	}
	rec.Release()
	b.Release()
	for _, f := range []Format{Parquet, IPCFile, IPCStream} {
		var buf bytes.Buffer
		if rows, err := Write(context.Background(), &buf, f, scan(t, foldFeatures, 10), Options{Fold: true}); err != nil || rows != 4 {
			t.Errorf("%v: %d rows, %v", f, rows, err)
		}
	}
}

// What folds and what does not when only a part of a struct or map is read, and where names look like paths.
func TestFoldEdges(t *testing.T) {
	marker := func(name, logical string) testFeature {
		return testFeature{
			name: name, typ: dense(vector.Bool), logical: logical, origin: [2]string{name, ""}, fill: ints([]int64{1}, []int64{1}),
		}
	}
	leaf := func(name, column, key string) testFeature {
		return testFeature{name: name, typ: dense(vector.Int64), origin: [2]string{column, key}, fill: ints([]int64{3}, []int64{4})}
	}
	for _, c := range []struct {
		what     string
		features []testFeature
		want     string // fields
		rows     string // JSON of row 0 of each
	}{
		{
			"a map of which no key is read", []testFeature{marker("m", "map<string>")},
			"m: type=map<utf8, double, items_nullable>", `[]`,
		},
		{
			"a struct of which no member is read", []testFeature{marker("s", "struct"), leaf("x", "x", "")},
			"s: type=bool, x: type=int64", "true, 3",
		},
		{
			"a struct of which only the marker of a struct in it is read", []testFeature{marker("s", "struct"), marker("s.t", "struct")},
			"s: type=struct<t: bool nullable>", `{"t": true}`,
		},
		{
			"a member two structs down, the one between not read", []testFeature{marker("s", "struct"), leaf("s.t.x", "s.t", "x")},
			"s: type=bool, s.t.x: type=int64", `true, 3`,
		},
		{
			"two maps, the name of one begins the other's",
			[]testFeature{
				marker("m", "map<int64>"), leaf("m.1", "m", "1"), marker("m.n", "map<int64>"), leaf("m.n.2", "m.n", "2"),
				marker("mm", "map<int64>"), leaf("mm.3", "mm", "3"),
			},
			"m: type=map<int64, int64, items_nullable>, m.n: type=map<int64, int64, items_nullable>, mm: type=map<int64, int64, items_nullable>",
			`[{"key": 1, "value": 3}], [{"key": 2, "value": 3}], [{"key": 3, "value": 3}]`,
		},
		{
			"a name with a dot beside a struct and by itself",
			[]testFeature{leaf("a.b", "a.b", ""), marker("s", "struct"), leaf("s.x", "s", "x"), leaf("s.y", "s.y", "")},
			"a.b: type=int64, s: type=struct<x: int64 nullable>, s.y: type=int64", `3, {"x": 3}, 3`,
		},
	} {
		s := scan(t, c.features, 10)
		conv, err := NewConverter(s.Plan(), Options{Fold: true})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		b, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rec, err := conv.Record(b)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		var fields, rows []string
		for i, f := range conv.Schema().Fields() {
			fields = append(fields, fmt.Sprintf("%s: type=%v", f.Name, f.Type))
			rows = append(rows, rowsOf(t, []arrow.RecordBatch{rec}, i)[0])
		}
		got := strings.ReplaceAll(strings.Join(fields, ", "), "float64", "double")
		if got != c.want || !sameJSON([]string{"[" + strings.Join(rows, ",") + "]"}, []string{"[" + c.rows + "]"}) {
			t.Errorf("%s: %s: %v, want %s: %s", c.what, got, rows, c.want, c.rows)
		}
		rec.Release()
		b.Release()
		var out bytes.Buffer
		if _, err := Write(context.Background(), &out, Parquet, scan(t, c.features, 10), Options{Fold: true}); err != nil {
			t.Errorf("%s: %v", c.what, err)
		} else if pf, err := file.NewParquetReader(bytes.NewReader(out.Bytes())); err != nil || pf.NumRows() != 4 {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// halfBits gives back every half from its exact value, which is worked out here from the definition, and rounds to the
// nearest in between.
func TestHalfBits(t *testing.T) {
	value := func(h int) float32 {
		exponent, fraction := h>>10, float64(h&0x3ff)
		if exponent == 0 {
			return float32(math.Ldexp(fraction, -24))
		}
		return float32(math.Ldexp(1024+fraction, exponent-25))
	}
	for h := range 0x7c00 {
		v := value(h)
		if got := halfBits(v); int(got) != h {
			t.Fatalf("%04x became %04x", h, got)
		}
		if got := halfBits(-v); int(got) != h|0x8000 {
			t.Fatalf("-%04x became %04x", h, got)
		}
		if h+1 < 0x7c00 {
			even := h + h&1
			if got := halfBits((v + value(h+1)) / 2); int(got) != even {
				t.Fatalf("the middle of %04x and the next became %04x", h, got)
			}
		}
	}
	inf := math.Inf(1)
	if halfBits(float32(inf)) != 0x7c00 || halfBits(float32(-inf)) != 0xfc00 || halfBits(65520) != 0x7c00 || halfBits(65519) != 0x7bff {
		t.Error("infinity")
	}
	if n := halfBits(float32(math.NaN())); n&0x7c00 != 0x7c00 || n&0x3ff == 0 {
		t.Errorf("NaN became %04x", n)
	}
}

// A value of the wrong length for its fixed-size type is an error with the column, not a shifted column.
func TestWrongWidth(t *testing.T) {
	features := []testFeature{{name: "fixed", typ: bytesT, logical: "fixed_size_binary[2]", fill: texts("ab", "abc")}}
	var buf bytes.Buffer
	_, err := Write(context.Background(), &buf, IPCStream, scan(t, features, 10), Options{})
	if err == nil || !strings.Contains(err.Error(), `column "fixed"`) {
		t.Fatal(err)
	}
}

func TestParseFormat(t *testing.T) {
	for name, want := range map[string]Format{"a/b.parquet": Parquet, "x.ARROW": IPCFile, "x.arrows": IPCStream, "-": IPCStream} {
		if got, err := ParseFormat(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := ParseFormat("x.csv"); err == nil {
		t.Error("csv is accepted")
	}
}

// Every row has the values of its partition, as files of a Hive table would be read.
func TestPartitionKeys(t *testing.T) {
	ctx := context.Background()
	store, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.NewTable(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	f := storage.Feature{
		ID: storage.NewFeatureID("n", 1), Name: "n", Generation: 1, Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64},
	}
	change := storage.Change{Operation: "ingest", Features: []storage.Feature{f}}
	for i, directory := range []string{"ds=2026-11-01/hr=00", "ds=2026-11-01/hr=__HIVE_DEFAULT_PARTITION__", "ds=a b%2Fc/hr=", "ds=z"} {
		p, err := storage.ParsePartition(directory)
		if err != nil {
			t.Fatal(err)
		}
		w, err := table.NewSegment(ctx, p, []uint32{2}, storage.SegmentOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := vector.NewColumn(f.Type)
		for r := range 2 {
			c.Ints = append(c.Ints, int64(2*i+r))
			c.AddSlot()
		}
		if err := w.AddFeature(ctx, 0, f, func(w *format.Writer) error { return w.WriteStripe(c) }); err != nil {
			t.Fatal(err)
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Add = append(change.Add, d)
	}
	snap, err := table.Commit(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"0", "1", "2", "3", "4", "5", "6", "7"},
		{`"2026-11-01"`, `"2026-11-01"`, `"2026-11-01"`, `"2026-11-01"`, `"a b/c"`, `"a b/c"`, `"z"`, `"z"`},
		{`"00"`, `"00"`, "null", "null", `""`, `""`, "null", "null"},
	}
	for _, batch := range []int{1, 3, 8} {
		plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"@all"}, BatchSize: batch})
		if err != nil {
			t.Fatal(err)
		}
		s, err := reader.Open(ctx, snap, plan, reader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := Write(ctx, &out, IPCStream, s, Options{Fold: true}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		r, err := ipc.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Schema().Fields()[2].Name, r.Schema().Fields()[2].Type); got != "hrutf8" {
			t.Fatal(got)
		}
		var records []arrow.RecordBatch
		for r.Next() {
			r.RecordBatch().Retain()
			records = append(records, r.RecordBatch())
		}
		for i := range want {
			if got := rowsOf(t, records, i); !sameJSON(got, want[i]) {
				t.Errorf("batches of %d: %s: %v, want %v", batch, r.Schema().Field(i).Name, got, want[i])
			}
		}
		for _, rec := range records {
			rec.Release()
		}
		r.Release()
	}
}
