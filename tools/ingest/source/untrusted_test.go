package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/jsonl"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
	"github.com/dsistore/dsistore/tools/ingest/source/text"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOddJSON reads lines that are JSON, or nearly.
func TestOddJSON(t *testing.T) {
	for _, tc := range []struct{ name, text, want, err string }{
		{"byte order mark", "\xef\xbb\xbf{\"a\":1}\n{\"a\":2}", "a=1\na=2\n", ""},
		{"exponent", `{"a":1e3}`, "a=1000\n", ""},
		{"too large", `{"a":1e400}`, "", "out of range"},
		{"not a number", `{"a":NaN}` + "\n" + `{"a":1}`, "a=NaN\na=1\n", ""},
		{"infinities", `{"a":[-Infinity, Infinity]}`, "a=[-Inf,+Inf]\n", ""},
		{"no infinity", `{"a":-Infinite}`, "", "where Infinity should be"},
		{"no number", `{"a":-NaN}`, "", "where a digit should be"},
		{"not a number among ids", `{"a":9007199254740993}` + "\n" + `{"a":NaN}`, "",
			"9007199254740993 is not exact in float64"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "", "not UTF-8"},
		{"a cut line has no say in the schema", "{\"a\":1}\n{\"a\":\"x\"", "", "line 2"},
		{"twice", `{"a":1,"a":2}`, "", "twice"},
		{"only empty lines", "\n\n", "", ""},
		{"several members", zipped(t, "{\"a\":1}\n") + zipped(t, "{\"a\":2}\n"), "a=1\na=2\n", ""},
		{"cut gzip", zipped(t, "{\"a\":1}\n")[:26], "", "cut short"},
		{"more after gzip", zipped(t, "{\"a\":1}\n") + "garbage", "", "cut short or damaged"},
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": tc.text})
		chunks, err := readPath(t, dir, Options{})
		if tc.err == "" && (err != nil || dump(chunks) != tc.want) || tc.err != "" && (err == nil ||
			!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got %q, %v; want %q, %q", tc.name, dump(chunks), err, tc.want, tc.err)
		}
	}
}

// TestBadFirstLine: a line that is no JSON is left out, and the types come from the others.
func TestBadFirstLine(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": "{\"a\":\"x\"\n{\"a\":1}\n"})
	bad := 0
	chunks, err := readPath(t, dir, Options{OnBadRow: func(Place, string, error) { bad++ }})
	if got := dump(chunks); err != nil || bad != 1 || got != "a=1\n" {
		t.Errorf("got %q, %d bad, %v", got, bad, err)
	}
}

func TestOddPartitions(t *testing.T) {
	for name, want := range map[string]string{
		"ds=1/DS=2": "given twice", "ds=%zz": "ds=%25zz: a=1\n", "ds=100%": "ds=100%25: a=1\n",
		"ds=%3D%2": "ds=%3D%252: a=1\n", "ds=%FF": "not UTF-8", "ds=a=b": "ds=a%3Db: a=1\n",
		"ds=": "ds=: a=1\n", "ds=\u65e5": "ds=\u65e5: a=1\n", "ds=1/.tmp=2": "no files with data",
	} {
		dir := writeFiles(t, map[string]string{name + "/a.jsonl": `{"a":1}`})
		chunks, err := readPath(t, dir, Options{})
		if got := dump(chunks); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
}

// TestHiveCorpus reads the files of Hive's own tests, which its expected results spell out.
func TestHiveCorpus(t *testing.T) {
	root := filepath.Join(corpusRoot(t), "hive", "hive-0.10-text")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus has no files of Hive's")
	}
	dir := writeFiles(t, map[string]string{
		"kv.sql":      "CREATE TABLE src (key INT, value STRING)",
		"nested.json": `{"columns": {"b": {"kind": "sparse", "hash": true}, "c": {"drop": true}, "d": {"drop": true}}}`,
	})
	chunks, err := readPath(t, filepath.Join(root, "data/files/kv1.txt"),
		Options{DDLFile: filepath.Join(dir, "kv.sql")})
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(chunks); strings.Count(got, "\n") != 500 ||
		!strings.HasPrefix(got, "key=238 value=\"val_238\"\nkey=86 value=\"val_86\"\n") {
		t.Errorf("got %.100s", got)
	}
	nested := filepath.Join(root, "data/files/create_nested_type.txt")
	query, err := os.ReadFile(filepath.Join(root, "ql/src/test/queries/clientpositive/create_nested_type.q"))
	if err != nil {
		t.Fatal(err)
	}
	statement, _, _ := strings.Cut(string(query), ";")
	ddl := filepath.Join(dir, "nested.sql")
	if err := os.WriteFile(ddl, []byte(statement), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPath(t, nested, Options{DDLFile: ddl}); err == nil ||
		!strings.Contains(err.Error(), `column "b"`) {
		t.Errorf("lists of strings: got %v, want a refusal by name", err)
	}
	chunks, err = readPath(t, nested, Options{DDLFile: ddl, MappingFile: filepath.Join(dir, "nested.json")})
	if err != nil {
		t.Fatal(err)
	}
	// The expected rows are a0 [b00, b01], a1 [b10], a2 [], a3 null.
	var got []string
	for r := range chunks[0].Rows {
		a, b := chunks[0].Columns[0], chunks[0].Columns[1]
		lo, hi := b.RowRange(r)
		cell := strings.Repeat("#", hi-lo)
		if b.IsNull(r) {
			cell = "null"
		}
		got = append(got, cellText(a, r)+" "+cell)
	}
	if s := strings.Join(got, ", "); s != `"a0" ##, "a1" #, "a2" , "a3" null` {
		t.Errorf("got %s", s)
	}
}

func FuzzText(f *testing.F) {
	f.Add("1|a\\|b|1,2|k:1.5|30,Rome|12.50|2026-11-01\n", false)
	f.Add("1,\"x \"\"y\nz\",\\N", true)
	f.Add("1|\\|b|v\xf1\x1f1,2|k:155\x9f", true)
	ddl, err := hive.ParseTable(testDDL, 32)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string, csv bool) {
		opts := &column.ReadOptions{ChunkBytes: 1 << 20, Limits: column.Limits{}.WithDefaults()}
		layout := ddl.Text
		layout.CSV = csv
		r, err := text.NewReader(newLines(t, s, opts), ddl.Columns, &layout, nil, opts)
		if err != nil {
			return
		}
		drain(t, r)
	})
}

// FuzzPlainCSV finds the layout and the types of any text. Rows are read or bad, and no more than there are lines.
func FuzzPlainCSV(f *testing.F) {
	f.Add("a,b\n1,\"x \"\"y\nz\"\n")
	f.Add("a;'b'\n1;'x'\n2\n")
	f.Add("\n\n\xef\xbb\xbfa\tb\r\"1\t2")
	f.Fuzz(func(t *testing.T, s string) {
		bad, rows := 0, 0
		chunks, _ := readPath(t, "-", Options{Format: "text", Stdin: strings.NewReader(s),
			OnBadRow: func(Place, string, error) { bad++ }})
		for _, c := range chunks {
			rows += c.Rows
		}
		if most := strings.Count(s, "\n") + strings.Count(s, "\r"); rows+bad > most {
			t.Errorf("%d rows and %d bad ones of %d lines", rows, bad, most)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":1,"b":[1,2.5],"c":{"x":"\ud83d\ude00"}}` + "\n" + `{"a":null,"b":[]}`)
	f.Add(`{"a":1e400}` + "\n" + `{"a":[[[{}]]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d := &input.Set{Mapping: &mapping.Mapping{}, ReadOptions: column.ReadOptions{ChunkBytes: 1 << 20,
			Limits: column.Limits{}.WithDefaults()}}
		r, err := jsonl.NewStream(t.Context(), newLines(t, text, &d.ReadOptions), d)
		if err != nil {
			return
		}
		drain(t, r)
	})
}

func newLines(t *testing.T, text string, opts *column.ReadOptions) *lines.Reader {
	lines, err := lines.Open("", io.NopCloser(strings.NewReader(text)), lines.UTF8, &opts.Limits)
	if err != nil {
		t.Skip(err)
	}
	return lines
}

// drain reads to the end; every array is what the comment of array says.
func drain(t *testing.T, r column.Reader) {
	for {
		b, err := r.Next(context.Background())
		if err != nil {
			return
		}
		for _, a := range b.Arrays {
			if a == nil {
				continue
			}
			if err := a.Check(); err != nil || a.Len != b.Rows {
				t.Fatalf("%d rows in a batch of %d: %v", a.Len, b.Rows, err)
			}
		}
	}
}

func FuzzParquet(f *testing.F) {
	var rows []modelRow
	for i := range 12 {
		rows = append(rows, genRow([]string{"a", "b"}).Example(i))
	}
	rec := modelRecord(rows)
	defer rec.Release()
	for _, props := range [][]parquet.WriterProperty{
		{parquet.WithDataPageSize(32), parquet.WithBatchSize(3)},
		{parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Snappy)},
		{parquet.WithDictionaryDefault(false), parquet.WithMaxRowGroupLength(5)},
		{parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray),
			parquet.WithEncodingFor("i", parquet.Encodings.DeltaBinaryPacked), parquet.WithEncodingFor("f",
				parquet.Encodings.ByteStreamSplit)},
	} {
		data, err := writeParquet(rec, append(props, parquet.WithStats(false))...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { _ = readDamaged(t, "x.parquet", data) })
}

func FuzzArrow(f *testing.F) {
	f.Add(smallStream(f))
	f.Fuzz(func(t *testing.T, data []byte) { _ = readDamaged(t, "x.arrows", data) })
}

// TestGivenUpValues: what was appended of a nested value before it turned out to be bad leaves nothing in the rows
// after it.
func TestGivenUpValues(t *testing.T) {
	for name, lines := range map[string][]string{
		"a.txt": {
			"1|a|1,2|k:1.5,l:2|30,Rome|1.50|2026-11-01", "!1|b|3,4,x|k:1|1,Bern|1|2026-11-01",
			"3|c|5|k:7|3,Oslo|1|2026-11-01",
			"!4|d|6|k:1,l:x|4,Bonn|1|2026-11-01", "!5|e|7|k:1|x,Bonn|1|2026-11-01", "!6|f|8|k:1|1,Bonn|x|2026-11-01",
			"7|g|9|k:9|7,Rome|1|2026-11-01",
		},
		"a.jsonl": {
			`{"l":[1,2],"m":{"k":[1.5],"l":[2.5]}}`, `!{"l":[3,4,"x"],"m":{"k":[1.5]}}`, `{"l":[5],"m":{"k":[7.5]}}`,
			`!{"l":[6],"m":{"k":[1.5],"l":[2.5,"x"]}}`, `!{"l":[6],"m":{"k":[1.5],"l":[2.5}`,
			`{"l":[7],"m":{"k":[9.5]}}`,
		},
	} {
		var all, good []string
		for _, l := range lines {
			whole, bad := strings.CutPrefix(l, "!")
			all = append(all, whole)
			if !bad {
				good = append(good, l)
			}
		}
		read := func(lines []string) (string, int) {
			dir := writeFiles(t, map[string]string{name: strings.Join(lines, "\n") + "\n", "t.sql": testDDL,
				"m.json": `{"columns": {"l": {"type": "array<bigint>"}, "m": {"type": "map<string,array<double>>"}}}`})
			bad := 0
			opts := Options{OnBadRow: func(Place, string, error) { bad++ }}
			if strings.HasSuffix(name, ".txt") {
				opts.DDLFile = filepath.Join(dir, "t.sql")
			} else {
				opts.MappingFile = filepath.Join(dir, "m.json")
			}
			chunks, err := readPath(t, filepath.Join(dir, name), opts)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return dump(chunks), bad
		}
		want, _ := read(good)
		if got, bad := read(all); got != want || bad != len(all)-len(good) {
			t.Errorf("%s: %d bad rows, got\n%swant\n%s", name, bad, got, want)
		}
	}
}
