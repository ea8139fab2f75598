package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// csvWords are values of a CSV, and what a file of nothing else makes of them: "x" is text.
var csvWords = map[string][]string{
	"int":   {"0", "1", "-1", "5", "127", "300", " 7 ", "70000", "16777216"},
	"large": {"9007199254740993", "16777217", "-9223372036854775808", "18446744073709551615"},
	"float": {"2.5", "0.1", "1e300", "NaN", "-inf", "3.0", ".5", "5.", "1e3", "1e-400"},
	"bool":  {"true", "FALSE"},
	"date":  {"2026-11-01", "1969-12-31", "9999-12-31"},
	"time":  {"2026-11-01 10:00:00", "2026-11-01T10:00:00.5Z", "2026-11-01 10:00", "2026-11-01 10:00:00.123456789+01"},
	"none":  {"", `""`, "  "},
	"text": {"x", "12x", "007", "+5", "00.5", "1_000", "0x10", `"1,000"`, "1e999", "123456789012345678901", "-", "--1",
		"9007199254740993.0", "2026-13-01", "01/11/2026", "10:00", "1|2", `"[1, 2]"`, "yes", "12 34", `"a ""b"""`},
}

// csvTables are the types of scalars in a table.
var csvTables = []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
	arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
	arrow.FixedWidthTypes.Date32, &arrow.TimestampType{Unit: arrow.Second},
	&arrow.TimestampType{Unit: arrow.Millisecond},
	&arrow.TimestampType{Unit: arrow.Nanosecond}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}

// A csvRow is a value of a column and its id.
type csvRow struct {
	id    int
	value string
}

// storeOf returns a store whose table has one row of a type.
func storeOf(t *testing.T, of arrow.DataType) *storage.Store {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: of}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).AppendEmptyValue()
	b.Field(1).AppendEmptyValue()
	record := b.NewRecordBatch()
	defer record.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "first.arrow")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := storage.Create(t.Context(), object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := Run(t.Context(), s, "ads", []string{path}, Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// A csvOutcome is what a table is after an ingest.
type csvOutcome struct {
	values map[string][]string
	types  string
	bad    int64
	err    error
}

// ingestCSV ingests files of rows into a table of a type.
func ingestCSV(t *testing.T, of arrow.DataType, files [][]csvRow, opts Options) csvOutcome {
	t.Helper()
	dir, s := t.TempDir(), storeOf(t, of)
	for i, rows := range files {
		text := "id,v\n"
		for _, r := range rows {
			text += fmt.Sprintf("%d,%s\n", r.id, r.value)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if opts.OnBadRow == BadRowQuarantine {
		opts.BadRowReport = filepath.Join(t.TempDir(), "bad.jsonl")
	}
	report, err := Run(t.Context(), s, "ads", []string{dir}, opts)
	values, problems, _ := storedBits(t, s)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return csvOutcome{values, storedTypes(t, s), report.BadRows, err}
}

// without returns files without the rows of some values.
func without(files [][]csvRow, left func(value string) bool) (out [][]csvRow) {
	for _, rows := range files {
		out = append(out, slices.DeleteFunc(slices.Clone(rows), func(r csvRow) bool { return left(r.value) }))
	}
	return out
}

// TestTextIsLeftOut: with quarantine, a table of scalars is what it is where the rows with text were taken out of the
// files before. What is text is what alone in a file makes a string of its column; -0 is it among integers.
func TestTextIsLeftOut(t *testing.T) {
	for kind, values := range csvWords {
		for _, v := range values {
			s, path := openStore(t, t.TempDir()), filepath.Join(t.TempDir(), "one.csv")
			if err := os.WriteFile(path, fmt.Appendf(nil, "id,v\n1,%s\n", v), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), s, "ads", []string{path}, Options{}); err != nil {
				t.Fatal(err)
			}
			if isText := strings.Contains(storedTypes(t, s), "v string"); kind != "none" && isText != (kind == "text") {
				t.Errorf("%q is text: %v", v, isText)
			}
		}
	}
	cases := 400
	if testing.Short() || race.Enabled {
		cases = 40
	}
	ingested, mixed := 0, 0
	for seed := range cases {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		of := csvTables[rng.IntN(len(csvTables))]
		kinds := []string{"int", "float", "large", "bool", "date", "time"}
		switch { // mostly such as the table has
		case rng.IntN(4) == 0:
		case of.ID() == arrow.BOOL:
			kinds = []string{"bool"}
		case of.ID() == arrow.DATE32:
			kinds = []string{"date"}
		case of.ID() == arrow.TIMESTAMP:
			kinds = []string{"date", "time"}
		default:
			kinds = kinds[:1+rng.IntN(3)]
		}
		files := make([][]csvRow, 1+rng.IntN(3))
		for id := 1; id < 2+rng.IntN(8)*rng.IntN(4); id++ {
			kind := kinds[rng.IntN(len(kinds))]
			switch rng.IntN(8) {
			case 0, 1:
				kind = "text"
			case 2:
				kind = "none"
			}
			r := csvRow{id, csvWords[kind][rng.IntN(len(csvWords[kind]))]}
			if rng.IntN(15) == 0 {
				r.value = "-0"
			}
			file := rng.IntN(len(files))
			files[file] = append(files[file], r)
		}
		isText := func(v string) bool { return slices.Contains(csvWords["text"], v) }
		isValue := func(v string) bool { return !slices.Contains(csvWords["none"], v) }
		got := ingestCSV(t, of, files, Options{OnBadRow: BadRowQuarantine})
		clean := without(files, isText)
		isFloat := of.ID() == arrow.FLOAT32 || of.ID() == arrow.FLOAT64
		if !isFloat && slices.ContainsFunc(slices.Concat(clean...), func(r csvRow) bool { return r.value == "-0" }) &&
			ingestCSV(t, of, clean, Options{}).err != nil {
			clean = without(clean, func(v string) bool { return v == "-0" })
		}
		want := ingestCSV(t, of, clean, Options{OnBadRow: BadRowQuarantine})
		want.bad += int64(len(slices.Concat(files...)) - len(slices.Concat(clean...)))
		rows := slices.Concat(clean...)
		switch {
		case len(rows) == 0: // an ingest of nothing but names is one, of nothing but bad rows is none
			want.err, want.bad = got.err, got.bad
		case got.err != nil && want.err == nil && strings.Contains(got.err.Error(), "looks like") &&
			!slices.ContainsFunc(rows, func(r csvRow) bool { return isValue(r.value) }):
			continue // a mapping file that reads them is better
		}
		if got.err == nil {
			ingested++
		} else {
			mixed++
		}
		if (got.err == nil) != (want.err == nil) || got.err == nil && got.bad != want.bad || got.types != want.types ||
			!reflect.DeepEqual(got.values, want.values) {
			t.Fatalf("seed %d, %v, %+v:\n%+v, want\n%+v", seed, of, files, got, want)
		}
	}
	if ingested < cases/3 || mixed < cases/10 {
		t.Errorf("%d were ingested, %d did not mix", ingested, mixed)
	}
}
