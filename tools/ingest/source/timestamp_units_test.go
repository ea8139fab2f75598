package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// int96File writes times, "" for null, as INT96: in a column t, in a member s.u, and one by one in lists l.
func int96File(t *testing.T, times ...string) string {
	t.Helper()
	leaf := func(name string) schema.Node { return schema.NewInt96Node(name, parquet.Repetitions.Optional, -1) }
	s, err := schema.NewGroupNode("s", parquet.Repetitions.Required, schema.FieldList{leaf("u")}, -1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := schema.ListOf(schema.NewInt96Node("element", parquet.Repetitions.Required, -1),
		parquet.Repetitions.Required, -1)
	if err != nil {
		t.Fatal(err)
	}
	list, err := schema.NewGroupNodeLogical("l", parquet.Repetitions.Required, schema.FieldList{l.Field(0)},
		schema.NewListLogicalType(), -1)
	if err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{leaf("t"), s, list}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var values []parquet.Int96
	var defs, reps []int16
	for _, text := range times {
		reps = append(reps, 0)
		if text == "" {
			defs = append(defs, 0)
			continue
		}
		at, err := time.Parse("2006-01-02 15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		days := at.Unix() / 86400
		if at.Unix()%86400 < 0 {
			days--
		}
		var v parquet.Int96
		binary.LittleEndian.PutUint64(v[:], uint64((at.Unix()-days*86400)*1e9+int64(at.Nanosecond())))
		binary.LittleEndian.PutUint32(v[8:], uint32(days+2440588))
		values, defs = append(values, v), append(defs, 1)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root)
	g, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		c, err := g.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		r := reps
		if i < 2 {
			r = nil
		}
		if _, err := c.(*file.Int96ColumnChunkWriter).WriteBatch(values, defs, r); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// readTimes returns what became of a dump's column, its logical type first.
func readTimes(t *testing.T, dir, column string, opts Options) string {
	t.Helper()
	var out strings.Builder
	opts.OnBadRow = func(_ Place, column string, err error) { fmt.Fprintf(&out, "bad %s: %v\n", column, err) }
	files, err := Discover(t.Context(), []string{filepath.Join(dir, "d")}, opts)
	if err != nil {
		return err.Error()
	}
	for _, f := range files {
		s, err := f.Open(t.Context())
		if err != nil {
			return err.Error()
		}
		chunks, err := readAll(t, s)
		if err != nil {
			return err.Error()
		}
		for _, field := range s.Fields() {
			if field.Name == column {
				out.WriteString(field.Logical + ":")
			}
		}
		for _, c := range chunks {
			for i, field := range c.Fields {
				for r := range c.Rows {
					if field.Name == column {
						out.WriteString(" " + cellText(c.Columns[i], r))
					}
				}
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestTimestampUnits: timestamps without a unit of their own are read in the one that holds all of the dump, or in the
// one that the mapping file or the table says. None is rounded, none wraps.
func TestTimestampUnits(t *testing.T) {
	lines := func(times []string, form string) string {
		var b strings.Builder
		for _, x := range times {
			if x == "" {
				x = "-"
			}
			b.WriteString(strings.ReplaceAll(form, "T", x) + "\n")
		}
		return b.String()
	}
	table := func(unit string) func() []catalog.Feature {
		return func() []catalog.Feature {
			return []catalog.Feature{{Name: "t", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64},
				Logical: "timestamp[" + unit + "]"}}
		}
	}
	const far, old, fine, plain = "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "2020-01-01 00:00:00.123456789",
		"1970-01-01 00:00:01"
	for _, tc := range []struct {
		name    string
		first   []string
		second  []string
		mapping string
		known   func() []catalog.Feature
		want    string
	}{
		{"in nanoseconds", []string{plain, "", fine}, nil, "", nil,
			"timestamp[ns]: 1000000000 null 1577836800123456789\n"},
		{"far", []string{plain, "", far, old}, nil, "", nil,
			"timestamp[us]: 1000000 null 253402300799999999 -62135596800000000\n"},
		{"far in another file", []string{plain, fine[:26]}, []string{far}, "", nil,
			"timestamp[us]: 1000000 1577836800123456\ntimestamp[us]: 253402300799999999\n"},
		{"the ends of nanoseconds", []string{"1677-09-21 00:12:43.145224192", "2262-04-11 23:47:16.854775807"}, nil, "",
			nil, "timestamp[ns]: -9223372036854775808 9223372036854775807\n"},
		{"far and fine", []string{fine, far}, nil, "", nil,
			"bad t: FAR is not in the years 1677 to 2262 that 64 bits of nanoseconds hold, and the column has " +
				"fractions of microseconds: no unit holds all of it; text and JSON can be read as strings " +
				"(\"type\": \"string\"), and --on-bad-row quarantine leaves such rows out\n" +
				"timestamp[ns]: 1577836800123456789\n"},
		{"far and fine, as the table", []string{fine, far}, nil, "", table("ns"),
			"bad t: FAR is not in the years 1677 to 2262 that 64 bits of nanoseconds hold; {\"timestamp\": \"us\"} " +
				"in a mapping file reads the column in microseconds where none of it is finer, under another name " +
				"(\"rename\") where the table has it in nanoseconds\n" +
				"timestamp[ns]: 1577836800123456789\n"},
		{"far and fine in microseconds", []string{fine, far}, nil, "us", nil,
			"bad t: FINE is no whole number of us\ntimestamp[us]: 253402300799999999\n"},
		{"milliseconds", []string{"9999-12-31 00:00:00", plain}, nil, "ms", nil,
			"timestamp[ms]: 253402214400000 1000\n"},
		{"instants", []string{far}, nil, "us, tz=UTC", nil, "timestamp[us, tz=UTC]: 253402300799999999\n"},
		{"as the table", []string{plain}, nil, "", table("us"), "timestamp[us]: 1000000\n"},
		{"not as the table", []string{far, plain}, nil, "", table("ns"),
			"bad t: FAR is not in the years 1677 to 2262 that 64 bits of nanoseconds hold; {\"timestamp\": \"us\"} " +
				"in a mapping file reads the column in microseconds where none of it is finer, under another name " +
				"(\"rename\") where the table has it in nanoseconds\n" +
				"timestamp[ns]: 1000000000\n"},
	} {
		for form, write := range map[string]func([]string) string{
			"a.parquet": func(x []string) string { return int96File(t, x...) },
			"a.txt":     func(x []string) string { return lines(x, "T") },
			"a.csv":     func(x []string) string { return "t\n" + lines(x, `"T"`) },
			"a.jsonl": func(x []string) string {
				return strings.ReplaceAll(lines(x, `{"t": "T"}`), `"-"`, "null")
			},
		} {
			files := map[string]string{"d/1" + form: write(tc.first)}
			if tc.second != nil {
				files["d/2"+form] = write(tc.second)
			}
			stamp := ""
			if tc.mapping != "" {
				stamp = `"timestamp": "` + tc.mapping + `"`
			}
			mapping := `{"columns": {"t": {"type": "timestamp", ` + stamp + `}}}`
			switch form {
			case "a.parquet":
				mapping = `{"columns": {"t": {` + stamp + `}, "s": {"drop": true}, "l": {"drop": true}}}`
			case "a.txt":
				mapping = `{"text": {"null": "-", "columns": [{"name": "t", "type": "timestamp"}]}, "columns": ` +
					`{"t": {` + stamp + `}}}`
			case "a.csv":
				mapping = `{"text": {"null": "-", "quote": "\"", "header": true, "infer": true}, "columns": ` +
					`{"t": {` + stamp + `}}}`
				if strings.HasPrefix(tc.name, "far and fine") {
					continue // no type of a timestamp holds them: they are strings, or say "type"
				}
				files["d/1"+form] = strings.ReplaceAll(files["d/1"+form], `"-"`, "-")
			}
			mapping = strings.ReplaceAll(mapping, ", }", "}")
			files["m.json"] = mapping
			dir := writeFiles(t, files)
			got := readTimes(t, dir, "t", Options{MappingFile: filepath.Join(dir, "m.json"), Known: tc.known,
				Threads: 2})
			quoted := func(s string) string {
				if form == "a.parquet" {
					return "the timestamp " + s
				}
				return `"` + s + `"`
			}
			want := strings.NewReplacer("FAR", quoted(far), "FINE", quoted(fine)).Replace(tc.want)
			if got != want {
				t.Errorf("%s, %s: got\n%swant\n%s", tc.name, form, got, want)
			}
		}
	}
}

// TestTimestampsWithin: members of structs and elements of lists have units as columns do, each by what is in it.
func TestTimestampsWithin(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"d/a.parquet": int96File(t, "9999-12-31 00:00:00", "1970-01-01 00:00:01"),
		"d/b.parquet": int96File(t, "1970-01-01 00:00:02"),
		"m.json":      `{"columns": {"s.u": {"timestamp": "s"}, "l": {"timestamp": "ms, tz=UTC"}}}`,
	})
	for column, want := range map[string]string{
		"t":   "timestamp[us]: 253402214400000000 1000000\ntimestamp[us]: 2000000\n",
		"s.u": "timestamp[s]: 253402214400 1\ntimestamp[s]: 2\n",
		"l":   "timestamp[ms, tz=UTC]: [253402214400000] [1000]\ntimestamp[ms, tz=UTC]: [2000]\n",
	} {
		if got := readTimes(t, dir, column, Options{MappingFile: filepath.Join(dir, "m.json")}); got != want {
			t.Errorf("%s: got\n%swant\n%s", column, got, want)
		}
	}
	for column, want := range map[string]string{"s.u": "timestamp[us]: 253402214400000000 1000000\ntimestamp[us]: " +
		"2000000\n", "l": "timestamp[us]: [253402214400000000] [1000000]\ntimestamp[us]: [2000000]\n"} {
		if got := readTimes(t, dir, column, Options{}); got != want {
			t.Errorf("%s, by itself: got\n%swant\n%s", column, got, want)
		}
	}
}

// TestFarAndFineCSV: a column of which no unit holds all timestamps is one of strings where types are inferred.
func TestFarAndFineCSV(t *testing.T) {
	dir := writeFiles(t, map[string]string{"d/a.csv": "t\n9999-12-31 00:00:00\n2020-01-01 00:00:00.123456789\n",
		"m.json": `{"text": {"quote": "\"", "header": true, "infer": true}}`})
	if got, want := readTimes(t, dir, "t", Options{MappingFile: filepath.Join(dir, "m.json")}),
		": \"9999-12-31 00:00:00\" \"2020-01-01 00:00:00.123456789\"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFarAndFineAdvice: what the error says to do of a column that no unit holds does it.
func TestFarAndFineAdvice(t *testing.T) {
	const lines = `{"t": "9999-12-31 00:00:00"}` + "\n" + `{"t": "2020-01-01 00:00:00.123456789"}` + "\n"
	const text = "9999-12-31 00:00:00\n2020-01-01 00:00:00.123456789\n"
	for mapping, file := range map[string]string{
		`{"columns": {"t": {"type": "string"}}}`:                           "d/a.jsonl",
		`{"text": {"columns": [{"name": "t", "type": "string"}]}}`:         "d/a.txt",
		`{"text": {"header": true}, "columns": {"t": {"type": "string"}}}`: "d/b.txt",
	} {
		content := map[string]string{"d/a.jsonl": lines, "d/a.txt": text, "d/b.txt": "t\n" + text}[file]
		dir := writeFiles(t, map[string]string{file: content, "m.json": mapping})
		if got, want := readTimes(t, dir, "t", Options{MappingFile: filepath.Join(dir, "m.json")}),
			": \"9999-12-31 00:00:00\" \"2020-01-01 00:00:00.123456789\"\n"; got != want {
			t.Errorf("%s: got %s, want %s", mapping, got, want)
		}
	}
}
