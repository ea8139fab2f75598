package arrowbatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
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
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// Every type goes into JSON lines, an object per row.
func TestJSONLines(t *testing.T) {
	var buf bytes.Buffer
	rows, err := Write(t.Context(), &buf, JSONLines, scan(t, testFeatures, 3), Options{})
	if err != nil || rows != 4 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	var lines []map[string]json.RawMessage
	for line := range strings.Lines(buf.String()) {
		var row map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, row)
	}
	for _, f := range testFeatures {
		var got []string
		for _, row := range lines {
			got = append(got, string(row[f.name]))
		}
		if want := []string{f.want[0], "null", f.want[1], "null"}; !sameJSON(got, want) {
			t.Errorf("%s: %v, want %v", f.name, got, want)
		}
	}
}

// Every type goes through Parquet; those that Parquet lacks come back through the Arrow schema stored beside.
func TestParquet(t *testing.T) {
	var buf bytes.Buffer
	// arrow-go itself does not read durations, and reads JSON as bytes.
	features := slices.DeleteFunc(slices.Clone(testFeatures),
		func(f testFeature) bool { return f.name == "dur" || f.name == "js" })
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
		arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String,
			arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Duration_s))},
	)
	const want = "struct<l: list<item: int64, nullable>, m: map<utf8, list<item: int64, nullable>, items_nullable>>"
	if got := parquetType(typ).String(); got != want {
		t.Error(got)
	}
	duration := testFeatures[slices.IndexFunc(testFeatures, func(f testFeature) bool { return f.name == "dur" })]
	list := testFeature{name: "durs", typ: sparse(vector.Int64), logical: "duration[us]",
		fill: ints([]int64{1, 2}, nil)}
	var buf bytes.Buffer
	if _, err := Write(context.Background(), &buf, Parquet, scan(t, []testFeature{duration, list}, 2),
		Options{}); err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if n, want := pf.NumRows(), int64(4); n != want ||
		pf.MetaData().KeyValueMetadata().FindValue("ARROW:schema") == nil {
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
		{`[{"key": 7, "value": [1, 2]}, {"key": -12, "value": []}]`, "null",
			`[{"key": 7, "value": []}, {"key": -12, "value": [3]}]`, "null"},
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
		if rows, err := Write(context.Background(), &buf, f, scan(t, foldFeatures, 10),
			Options{Fold: true}); err != nil || rows != 4 {
			t.Errorf("%v: %d rows, %v", f, rows, err)
		}
	}
}

// What folds and what does not when only a part of a struct or map is read, and where names look like paths.
func TestFoldEdges(t *testing.T) {
	marker := func(name, logical string) testFeature {
		return testFeature{
			name: name, typ: dense(vector.Bool), logical: logical, origin: [2]string{name, ""}, fill: ints([]int64{1},
				[]int64{1}),
		}
	}
	leaf := func(name, column, key string) testFeature {
		return testFeature{name: name, typ: dense(vector.Int64), origin: [2]string{column, key},
			fill: ints([]int64{3}, []int64{4})}
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
			"a struct of which only the marker of a struct in it is read", []testFeature{marker("s", "struct"),
				marker("s.t", "struct")},
			"s: type=struct<t: bool nullable>", `{"t": true}`,
		},
		{
			"a member two structs down, the one between not read", []testFeature{marker("s", "struct"),
				leaf("s.t.x", "s.t", "x")},
			"s: type=bool, s.t.x: type=int64", `true, 3`,
		},
		{
			"two maps, the name of one begins the other's",
			[]testFeature{
				marker("m", "map<int64>"), leaf("m.1", "m", "1"), marker("m.n", "map<int64>"), leaf("m.n.2", "m.n",
					"2"),
				marker("mm", "map<int64>"), leaf("mm.3", "mm", "3"),
			},
			"m: type=map<int64, int64, items_nullable>, m.n: type=map<int64, int64, items_nullable>, mm: " +
				"type=map<int64, int64, items_nullable>",
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
		if _, err := Write(context.Background(), &out, Parquet, scan(t, c.features, 10),
			Options{Fold: true}); err != nil {
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
	if halfBits(float32(inf)) != 0x7c00 || halfBits(float32(-inf)) != 0xfc00 || halfBits(65520) != 0x7c00 ||
		halfBits(65519) != 0x7bff {
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
	for name, want := range map[string]Format{"a/b.parquet": Parquet, "x.ARROW": IPCFile, "x.arrows": IPCStream,
		"-": IPCStream, "x.jsonl": JSONLines} {
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
	f := catalog.Feature{
		ID: catalog.NewFeatureID("n", 1), Name: "n", Generation: 1, Type: vector.Type{Kind: vector.Dense,
			Elem: vector.Int64},
	}
	change := commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures{f}}}
	for i, directory := range []string{"ds=2026-11-01/hr=00", "ds=2026-11-01/hr=__HIVE_DEFAULT_PARTITION__",
		"ds=a b%2Fc/hr=", "ds=z"} {
		p, err := catalog.ParsePartition(directory)
		if err != nil {
			t.Fatal(err)
		}
		w, err := table.NewSegment(ctx, p, []uint32{2}, segment.Options{})
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
		change.Set(append(commit.Op[commit.AddSegments](&change), d))
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
