package arrowbatch

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A testFeature is one feature and its three rows: the first has a value, the second is null, the third has another.
type testFeature struct {
	name    string
	typ     vector.Type
	logical string
	origin  [2]string // column and key
	role    catalog.Role
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
	{name: "bool", typ: dense(vector.Bool), fill: ints([]int64{1}, []int64{0}), arrow: "bool",
		want: [2]string{"true", "false"}},
	{name: "i8", typ: dense(vector.Int8), fill: ints([]int64{-128}, []int64{127}), arrow: "int8",
		want: [2]string{"-128", "127"}},
	{name: "i16", typ: dense(vector.Int16), fill: ints([]int64{-3}, []int64{4}), arrow: "int16",
		want: [2]string{"-3", "4"}},
	{name: "i32", typ: dense(vector.Int32), fill: ints([]int64{math.MinInt32}, []int64{4}), arrow: "int32",
		want: [2]string{"-2147483648", "4"}},
	{name: "i64", typ: dense(vector.Int64), fill: ints([]int64{-9}, []int64{1 << 40}), arrow: "int64",
		want: [2]string{"-9", "1099511627776"}},
	{name: "u8", typ: dense(vector.Uint8), fill: ints([]int64{255}, []int64{0}), arrow: "uint8",
		want: [2]string{"255", "0"}},
	{name: "u16", typ: dense(vector.Uint16), fill: ints([]int64{65535}, []int64{0}), arrow: "uint16",
		want: [2]string{"65535", "0"}},
	{name: "u32", typ: dense(vector.Uint32), fill: ints([]int64{math.MaxUint32}, []int64{0}), arrow: "uint32",
		want: [2]string{"4294967295", "0"}},
	{name: "u64", typ: dense(vector.Uint64), fill: ints([]int64{-1}, []int64{0}), arrow: "uint64",
		want: [2]string{"18446744073709551615", "0"}},
	{name: "f32", typ: dense(vector.Float32), fill: floats([]float32{1.5}, []float32{-2}), arrow: "float32",
		want: [2]string{"1.5", "-2"}},
	{name: "f64", typ: dense(vector.Float64), fill: func(c *vector.Column, row int) {
		c.Doubles = append(c.Doubles,
			0.1*float64(row))
	}, arrow: "float64", want: [2]string{"0", "0.2"}},
	{name: "half", typ: dense(vector.Float32), logical: "float16", fill: floats([]float32{1.5}, []float32{-0.25}),
		arrow: "float16", want: [2]string{"1.5", "-0.25"}},
	{name: "date32", typ: dense(vector.Int32), logical: "date32", fill: ints([]int64{1}, []int64{-1}), arrow: "date32",
		want: [2]string{`"1970-01-02"`, `"1969-12-31"`}},
	{name: "date64", typ: dense(vector.Int64), logical: "date64", fill: ints([]int64{86400000}, []int64{0}),
		arrow: "date64", want: [2]string{`"1970-01-02"`, `"1970-01-01"`}},
	{name: "time32s", typ: dense(vector.Int32), logical: "time32[s]", fill: ints([]int64{61}, []int64{0}),
		arrow: "time32[s]", want: [2]string{`"00:01:01"`, `"00:00:00"`}},
	{name: "time64ns", typ: dense(vector.Int64), logical: "time64[ns]", fill: ints([]int64{61e9}, []int64{0}),
		arrow: "time64[ns]", want: [2]string{`"00:01:01"`, `"00:00:00"`}},
	{name: "ts", typ: dense(vector.Int64), logical: "timestamp[us, tz=UTC]", fill: ints([]int64{1e6}, []int64{0}),
		arrow: "timestamp[us, tz=UTC]", want: [2]string{`"1970-01-01T00:00:01Z"`, `"1970-01-01T00:00:00Z"`}},
	{name: "tsns", typ: dense(vector.Int64), logical: "timestamp[ns]", fill: ints([]int64{1}, []int64{0}),
		arrow: "timestamp[ns]", want: [2]string{`"1970-01-01T00:00:00.000000001"`, `"1970-01-01T00:00:00"`}},
	{name: "dur", typ: dense(vector.Int64), logical: "duration[ms]", fill: ints([]int64{5}, []int64{0}),
		arrow: "duration[ms]", want: [2]string{`"5ms"`, `"0ms"`}},
	{name: "dec", typ: dense(vector.Int64), logical: "decimal(10, 2)", fill: ints([]int64{-12345}, []int64{7}),
		arrow: "decimal(10, 2)", want: [2]string{`"-123.45"`, `"0.07"`}},
	{name: "dec30", typ: bytesT, logical: "decimal(30, 1)",
		fill: texts(hexBytes("fffffffffffffffffffffffffffffff6"),
			hexBytes("00000000000000010000000000000000")), arrow: "decimal(30, 1)", want: [2]string{`"-1"`,
			`"1844674407370955161.6"`}},
	{name: "dec50", typ: bytesT, logical: "decimal(50, 0)",
		fill: texts(strings.Repeat("\xff", 32), strings.Repeat("\x00",
			31)+"\x09"), arrow: "decimal256(50, 0)", want: [2]string{`"-1"`, `"9"`}},
	{name: "str", typ: stringT, fill: texts("é", ""), arrow: "utf8", want: [2]string{`"é"`, `""`}},
	{name: "bin", typ: bytesT, fill: texts("\xff", "a"), arrow: "binary", want: [2]string{`"/w=="`, `"YQ=="`}},
	{name: "fixed", typ: bytesT, logical: "fixed_size_binary[2]", fill: texts("ab", "cd"),
		arrow: "fixed_size_binary[2]", want: [2]string{`"YWI="`, `"Y2Q="`}},
	{name: "uuid", typ: bytesT, logical: "uuid", fill: texts(hexBytes("00112233445566778899aabbccddeeff"),
		strings.Repeat("\x00", 16)), arrow: "extension<arrow.uuid>",
		want: [2]string{`"00112233-4455-6677-8899-aabbccddeeff"`, `"00000000-0000-0000-0000-000000000000"`}},
	{name: "js", typ: stringT, logical: "json", fill: texts(`{"a": 1}`, `[]`),
		arrow: "extension<arrow.json[storage_type=utf8]>", want: [2]string{`{"a": 1}`, `[]`}},
	{name: "ids", typ: sparse(vector.Int64), fill: ints([]int64{1, -2}, nil), arrow: "list<item: int64, nullable>",
		want: [2]string{"[1,-2]", "[]"}},
	{name: "ids8", typ: sparse(vector.Uint8), fill: ints([]int64{1, 255}, []int64{3}),
		arrow: "list<item: uint8, nullable>", want: [2]string{"[1,255]", "[3]"}},
	{name: "dates", typ: sparse(vector.Int32), logical: "date32", fill: ints([]int64{0, 1}, nil),
		arrow: "list<item: date32, nullable>", want: [2]string{`["1970-01-01","1970-01-02"]`, "[]"}},
	{name: "halves", typ: sparse(vector.Float32), logical: "float16", fill: floats([]float32{0.5}, nil),
		arrow: "list<item: float16, nullable>", want: [2]string{"[0.5]", "[]"}},
	{name: "emb", typ: vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2},
		fill: floats([]float32{1, 2}, []float32{3,
			4}), arrow: "fixed_size_list<item: float32, nullable>[2]", want: [2]string{"[1,2]", "[3,4]"}},
	{name: "w", typ: weightedT, fill: weighted,
		arrow: "list<item: struct<id: int64 nullable, score: float32 nullable>, nullable>",
		want:  [2]string{`[{"id":5,"score":0.5},{"id":6,"score":1.5}]`, "[]"}},
	{name: "wnamed", typ: weightedT, logical: "struct<item, p>", fill: weighted,
		arrow: "list<item: struct<item: int64 nullable, p: float32 nullable>, nullable>",
		want:  [2]string{`[{"item":5,"p":0.5},{"item":6,"p":1.5}]`, "[]"}},
	{name: "wquoted", typ: weightedT, logical: `struct<"a, b", "c>\"">`, fill: weighted,
		arrow: `list<item: struct<a, b: int64 nullable, c>": float32 nullable>, nullable>`,
		want:  [2]string{`[{"a, b":5,"c\u003e\"":0.5},{"a, b":6,"c\u003e\"":1.5}]`, "[]"}},
	{name: "wmap", typ: weightedT, logical: "map", fill: weighted, arrow: "map<int64, float32, items_nullable>",
		want: [2]string{`[{"key":5,"value":0.5},{"key":6,"value":1.5}]`, "[]"}},
	// A Logical that does not fit the type is not looked at.
	{name: "wide", typ: dense(vector.Int64), logical: "date32", fill: ints([]int64{1}, []int64{2}), arrow: "int64",
		want: [2]string{"1", "2"}},
}

// foldFeatures are a struct in a struct, and a map whose keys have different types.
var foldFeatures = []testFeature{
	{name: "before", typ: dense(vector.Int64), fill: ints([]int64{1}, []int64{2})},
	{name: "user", typ: dense(vector.Bool), logical: "struct", origin: [2]string{"user", ""},
		fill: ints([]int64{1}, []int64{1})},
	{name: "user.age", typ: dense(vector.Int8), origin: [2]string{"user", "age"}, fill: ints([]int64{30}, []int64{40})},
	{name: "user.geo", typ: dense(vector.Bool), logical: "struct", origin: [2]string{"user.geo", ""},
		fill: ints([]int64{1}, []int64{1})},
	{name: "user.geo.city", typ: stringT, origin: [2]string{"user.geo", "city"}, fill: texts("Bern", "Rome")},
	{name: "m", typ: dense(vector.Bool), logical: "map<int64>", origin: [2]string{"m", ""},
		fill: ints([]int64{1}, []int64{1})},
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

// scanRows is scan of as many rows as inverse has entries, which say which of the three they are; nil: those three.
// Lists with an inverse are partial duplicates.
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
	var schema []catalog.Feature
	var names []string
	for _, f := range features {
		schema = append(schema, catalog.Feature{
			ID: catalog.NewFeatureID(f.name,
				1), Name: f.name, Generation: 1, Type: f.typ, Role: f.role, Logical: f.logical,
			OriginColumn: f.origin[0], OriginKey: f.origin[1],
		})
		names = append(names, f.name)
	}
	change := commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures(schema)}}
	for seg, rows := range []uint32{first, 1} {
		w, err := table.NewSegment(ctx, catalog.Partition{{Key: "ds", Value: fmt.Sprint(seg)}}, []uint32{rows},
			segment.Options{})
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
			if err := w.AddFeature(ctx, i, schema[i],
				func(w *format.Writer) error { return w.WriteStripe(c) }); err != nil {
				t.Fatal(err)
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Set(append(commit.Op[commit.AddSegments](&change), d))
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
		if json.Unmarshal([]byte(a[i]), &x) != nil || json.Unmarshal([]byte(b[i]), &y) != nil ||
			!reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
