package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/jsonl"
)

// beyondSample is lines of JSON after which a schema is fixed.
func beyondSample(members string) string {
	return strings.Repeat(`{`+members+`, "fill": "`+strings.Repeat("x", jsonl.SampleBytes/4)+`"}`+"\n", 5)
}

// TestJSONShownLate: what a file shows only after its first megabytes counts as what it shows before.
func TestJSONShownLate(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.jsonl": beyondSample(`"i": 1, "n": null, "l": [], "s": {"x": 1}, "u": 1, "k": "a"`) +
			`{"i": 1.5, "n": "late", "l": [7], "s": {"x": 2, "y": true}, "u": 18446744073709551615, "k": "b", ` +
			`"new": [2.5], "fill": null}` + "\n" +
			`{"k": 7, "other": 1}` + "\n" +
			`{"i": 123456789012345678901234567890, "k": "c"}` + "\n",
		"m.json": `{"columns": {"fill": {"drop": true}}}`,
	})
	var bad []string
	chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{
		MappingFile: filepath.Join(dir, "m.json"),
		OnBadRow: func(p Place, column string, err error) {
			bad = append(bad, fmt.Sprint(p.Line, " ", column, ": ",
				err))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const first = "i=1 n=null l=[] s=1 s.x=1 s.y=null u=1 k=\"a\" new=null other=null\n"
	if got, want := dump(chunks), strings.Repeat(first,
		5)+"i=1.5 n=\"late\" l=[7] s=1 s.x=2 s.y=1 u=18446744073709551615 k=\"b\" new=[2.5] other=null\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want := []string{
		"7 k: a number where the schema has string",
		"8 i: the integer 123456789012345678901234567890 is not exact in double; give the column a type in a " +
			"mapping file",
	}
	if len(bad) != 2 || bad[0] != want[0] || !strings.HasPrefix(bad[1],
		"8 i: the integer 123456789012345678901234567890 is not exact") {
		t.Errorf("bad rows: got %q, want %q", bad, want)
	}
}

// TestJSONOfManyFiles: the types are what all files of a dump show, whichever is opened first.
func TestJSONOfManyFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json": `{"columns": {"typed": {"type": "string"}, "s.deep": {"type": "double"}, "m": {"map": ` +
			`"weighted"}, "here": {"role": "user_key"}}}`,
		"d/a.jsonl": `{"price": 1, "l": [1], "typed": 1, "s": {"deep": 1}, "m": {"7": 1}}` + "\n",
		"d/b.jsonl": `{"price": 1.5, "l": [0.5], "here": 9, "typed": "x", "s": {"deep": "2.5"}, "m": {"8": ` +
			`0.5}}` + "\n",
		"d/c.jsonl": "\n",
	})
	files, err := Discover(t.Context(), []string{filepath.Join(dir, "d")},
		Options{MappingFile: filepath.Join(dir, "m.json")})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range slices.Backward(files) {
		s, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := readAll(t, s)
		if err != nil {
			t.Fatal(err)
		}
		got += dump(chunks)
	}
	const want = `price=1.5 l=[0.5] typed="x" s=1 s.deep=2.5 m=[8:0.5] here=9
price=1 l=[1] typed="1" s=1 s.deep=1 m=[7:1] here=null
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestJSONMalformed: what is wrong with a file of malformed lines alone is said of its lines, and not of the columns
// that the mapping file speaks of.
func TestJSONMalformed(t *testing.T) {
	const notThere = "" // of the column
	for lines, want := range map[string]string{
		`{"a": 1, "x": }`:             `line 1: '}' at byte 14 where a value should be`,
		`{"a": 1, "x": 2`:             `line 1: the line ends where , or } should be`,
		`[1, 2]`:                      `line 1: a list where an object should be`,
		"\n7\n{\"a\": 1} {}\n":        `line 2: a number where an object should be`,
		`{"a": 1} {"x": 1}`:           `line 1: '{' at byte 9 where the end of the line should be`,
		`{}`:                          notThere,
		`{"a" 1}` + "\n" + `{"a": 1}`: notThere,
		`{"a": 1}` + "\n" + `{"a" 1}`: notThere,
	} {
		for mapping, is := range map[string]string{
			`{"columns": {"x": {"drop": true}}}`: "the mapping file speaks of a column that " +
				"is not there",
			`{"columns": {"s.y": {"role": "user_key"}}}`: "the mapping file speaks of a column that " +
				"is not there",
			`{"columns": {"a": {"drop": true}}, "partition_by": ["p"]}`: "partition by: no column",
		} {
			dir := writeFiles(t, map[string]string{"a.jsonl": lines, "m.json": mapping})
			for _, path := range []string{filepath.Join(dir, "a.jsonl"), "-"} {
				_, err := readPath(t, path, Options{MappingFile: filepath.Join(dir, "m.json"), Format: "jsonl",
					Stdin: strings.NewReader(lines)})
				if want := cmp.Or(want, is); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s of %q with %s: got %v, want %s", path, lines, mapping, err, want)
				}
			}
		}
	}
}

// TestJSONStreamLineEnds: what ends the lines of a stream is told by its beginning, not again by what follows the lines
// that its types come from.
func TestJSONStreamLineEnds(t *testing.T) {
	line, _, _ := strings.Cut(beyondSample(`"i": 1`), "\n")
	chunks, err := readPath(t, "-", Options{Format: "jsonl",
		Stdin: strings.NewReader(strings.Repeat(line+"\n", 4) + "{\"i\": 2,\r\"fill\": \"\"}")})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, c := range chunks {
		rows += c.Rows
	}
	if rows != 5 {
		t.Errorf("%d rows, want 5", rows)
	}
}

// TestJSONFilesDisagree: the file that does not go with those before it is the one that is refused, before a row of any
// is read, or when it is opened if bad files are left out. It has no say on any column.
func TestJSONFilesDisagree(t *testing.T) {
	for second, want := range map[string]string{
		`{"b": 1, "a": "x"}`: `b.jsonl: column "a": a string where files before it have a number; ` +
			`{"columns": {"a": {"type": "string"}}}`,
		`{"a": 9007199254740993}`: `b.jsonl: column "a": numbers that no type holds together with those of files ` +
			`before it`,
		`{"a": 2, "c": {"x": 1}}`: `b.jsonl: column "c.x": a number where files before it have a boolean`,
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": 1.5, "c": {"x": true}}`, "b.jsonl": second})
		for rows, onBad := range map[string]func(Place, string, error){"": nil,
			"a=1.5 c=1 c.x=1\n": func(Place, string, error) {}} {
			chunks, err := readPath(t, dir, Options{OnBadRow: onBad})
			if got := dump(chunks); err == nil || !strings.Contains(err.Error(), want) || got != rows {
				t.Errorf("%s: got %q, %v; want %q, %s", second, got, err, rows, want)
			}
		}
	}
}

// TestJSONTakesTheTablesFloats: a day of whole numbers goes into the table that had fractions the day before.
func TestJSONTakesTheTablesFloats(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json":  `{"columns": {"a": {"rename": "A"}, "m": {"map": "explode"}}}`,
		"a.jsonl": `{"a": 1, "l": [2], "i": 3, "m": {"k": 4}, "e": 5, "s": {"x": 6}}`,
	})
	dense := func(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Dense, Elem: e} }
	files, err := Discover(t.Context(), []string{filepath.Join(dir, "a.jsonl")}, Options{
		MappingFile: filepath.Join(dir, "m.json"),
		Known: func() []catalog.Feature {
			return []catalog.Feature{
				{Name: "A", Type: dense(vector.Float64)}, {Name: "l", Type: vector.Type{Kind: vector.Sparse,
					Elem: vector.Float64}},
				{Name: "i", Type: dense(vector.Int64)}, {Name: "m.other", Type: dense(vector.Float32),
					OriginColumn: "m", OriginKey: "other"},
				{Name: "s.x", Type: dense(vector.Float32), OriginColumn: "s", OriginKey: "x"},
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, s); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range s.Fields() {
		got += fmt.Sprintf("%s %v, ", f.Name, f.Type)
	}
	if want := "A float64, l list<float64>, i int64, m bool, e int64, s bool, s.x float32, m.k float32, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJSONKeysWithoutEnd: keys that are ids make no schema without bounds.
func TestJSONKeysWithoutEnd(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "{\"scores\": {\"%d\": 0.5}}\n", i)
	}
	dir := writeFiles(t, map[string]string{"a.jsonl": b.String(),
		"m.json": `{"columns": {"scores": {"map": "weighted"}}}`})
	opts := Options{Limits: column.Limits{Columns: 100}}
	if _, err := readPath(t, filepath.Join(dir, "a.jsonl"), opts); err == nil ||
		!strings.Contains(err.Error(), `more than 100 different keys, the last "scores.99": where keys are ids`) {
		t.Errorf("got %v", err)
	}
	opts.MappingFile = filepath.Join(dir, "m.json")
	if _, err := readPath(t, filepath.Join(dir, "a.jsonl"), opts); err != nil {
		t.Error(err)
	}
}

// TestJSONInterrupted: the context ends the first reading too, and what was interrupted is done again.
func TestJSONInterrupted(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": 1}`})
	files, err := Discover(t.Context(), []string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files[0].Open(ctx); err == nil {
		t.Fatal("opened after its context ended")
	}
	s, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c, err := s.Next(t.Context()); err != nil || c.Rows != 1 {
		t.Errorf("got %v", err)
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Errorf("got %v", err)
	}
}
