package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// told collects what is said of inferred types.
func told(into *[]string) func(Inferred) {
	return func(i Inferred) {
		s := fmt.Sprintf("%d rows of %d files", i.Rows, i.Files)
		if i.Sample {
			s = "the first " + s
		}
		if i.Layout != "" {
			s += " (" + i.Layout + ")"
		}
		for _, c := range i.Columns {
			s += ", " + c.Name + " " + c.Type
			if c.Because != "" {
				s += " because of " + filepath.Base(c.Because)
			}
			if c.Hint != "" {
				s += "; " + c.Hint
			}
		}
		*into = append(*into, s)
	}
}

// TestPlainCSV: a file with names in its first line is read without a mapping file, whatever is between its columns.
func TestPlainCSV(t *testing.T) {
	long := "a,b\n" + strings.Repeat("1,x y\n", 400_000) // more than is looked at for the layout
	for _, tc := range []struct{ name, file, mapping, text, told, want string }{
		{"commas", "", "", "id,name\n1,x\n2,\n", "2 rows of 1 files (commas), id int64, name string",
			"id=1 name=\"x\"\nid=2 name=null\n"},
		{"tabs", "f.tsv", "", "id\tname\n1\tx, y\n", "1 rows of 1 files (tabs), id int64, name string",
			"id=1 name=\"x, y\"\n"},
		{"semicolons and decimal commas", "", "", "id;price\n1;2,5\n", "1 rows of 1 files (semicolons), id int64, " +
			"price string", "id=1 price=\"2,5\"\n"},
		{"bars", "f.psv", "", "a|b\n1|2\n", "1 rows of 1 files (bars), a int64, b int64", "a=1 b=2\n"},
		{"one column", "", "", "id\n1\n2\n", "2 rows of 1 files (one column), id int64", "id=1\nid=2\n"},
		{"one column with commas here and there", "", "", "title\nHello\nHello, world\nYes\n",
			"3 rows of 1 files (one column), title string",
			"title=\"Hello\"\ntitle=\"Hello, world\"\ntitle=\"Yes\"\n"},
		{"empty lines alone", "", "", "\n\n", "", ""},
		{"names with blanks around them", "", "", "id, name ,\" c \"\n1, x ,2\n",
			"1 rows of 1 files (commas), id int64, name string,  c  int64", "id=1 name=\" x \"  c =2\n"},
		{"what Excel is told of the delimiter", "", "", "sep=;\na;b,c\n1;2\n", "1 rows of 1 files (semicolons), " +
			"a int64, b,c int64", "a=1 b,c=2\n"},
		{"names twice, and others for them", "",
			`{"text": {"skip_lines": 1, "columns": [{"name": "a"}, {"name": "b"}]}}`, "a,a\n1,2\n",
			"1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"names alone", "", "", "a;b\n", "0 rows of 1 files (semicolons), a null, b null", ""},
		{"quotes", "", "", "\"a\",\"b, c\"\n\"x \"\"y\"\"\",\"1,\n2\"\n",
			"1 rows of 1 files (commas), a string, b, c string", "a=\"x \\\"y\\\"\" b, c=\"1,\\n2\"\n"},
		{"quotes beside a bad row", "", `{"text": {"extra": "ignore"}}`, "\"a\",\"b, c\"\n\"x\",\"1, 2\"\n1,2,3\n",
			"2 rows of 1 files (commas), a string, b, c string", "a=\"x\" b, c=\"1, 2\"\na=\"1\" b, c=\"2\"\n"},
		{"apostrophes as quotes", "", "", "a,b\n'x, y',1\n'z',2\n", "2 rows of 1 files (commas, quotes '), a string, " +
			"b int64", "a=\"x, y\" b=1\na=\"z\" b=2\n"},
		{"apostrophes as text", "", "", "a,b\n'tis,1\nz,2\n'x',3\n", "3 rows of 1 files (commas), a string, b int64",
			"a=\"'tis\" b=1\na=\"z\" b=2\na=\"'x'\" b=3\n"},
		{"a quote that is text", "", "", "a\tb\n\"x\t1\ny\t2\nz\t3\n",
			"3 rows of 1 files (tabs, no quotes), a string, b int64", "a=\"\\\"x\" b=1\na=\"y\" b=2\na=\"z\" b=3\n"},
		{"a quote that is missing", "", "", "a,b\n" + strings.Repeat("\"x\",\"y\"\n", 20) + "\"x,\"y\"\n",
			"20 rows of 1 files (commas), a string, b string", `line 22: 'y' after the closing quote of column 1`},
		{"quotes that a backslash escapes", "", "", "a,b\n\"{\\\"k\\\": \\\"x, y\\\"}\",1\n\"\\\\\",2\n",
			"2 rows of 1 files (commas, escapes \\), a string, b int64",
			"a=\"{\\\"k\\\": \\\"x, y\\\"}\" b=1\na=\"\\\\\" b=2\n"},
		{"backslashes before quotes that end", "", "", "a,b\n\"C:\\\",1\n", "1 rows of 1 files (commas), a string, " +
			"b int64", "a=\"C:\\\\\" b=1\n"},
		{"a quoted column longer than a sample", "", "", "a,b\n\"z\",1\n\"" + strings.Repeat("x\n", 1<<20) + "\",2\n",
			"2 rows of 1 files (commas), a string, b int64", "-"},
		{"what others write for null", "", "", "a,b,c,d\n1,NA,x,NULL\nNA,2,NA,\n\"NA\",,,\n",
			"3 rows of 1 files (commas), " +
				"a string because of f.csv, line 4: \"NA\", " +
				"b string because of f.csv, line 2: \"NA\"; {\"text\": {\"null\": \"NA\"}} in a mapping file takes " +
				"it for null, c string, d string", "-"},
		{"inches", "", "", "a,b\n5\" pipe,1\n", "1 rows of 1 files (commas), a string, b int64",
			"a=\"5\\\" pipe\" b=1\n"},
		{"a byte order mark and \\r\\n", "", "", "\xef\xbb\xbfa,b\r\n1,2\r\n",
			"1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"lines that end with \\r", "", "", "a,b\r1,2\r", "1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"empty lines", "", "", "\n\na,b\n\n1,2\n\n", "1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"an index without a name", "", "", ",a\n0,x\n", "1 rows of 1 files (commas), _c0 int64, a string",
			"_c0=0 a=\"x\"\n"},
		{"a delimiter at the end", "", "", "a,b\n1,2,\n", "1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"no suffix, --format text", "f", "", "a,b\n1,2\n", "1 rows of 1 files (commas), a int64, b int64",
			"a=1 b=2\n"},
		{"what breaks a type", "", "", "a,b,c\n1,2020-01-02,1.5\n2,x,9007199254740993\nx,y,2\n",
			"3 rows of 1 files (commas), a string because of f.csv, line 4: \"x\", b string because of f.csv, " +
				"line 3: \"x\", c string because of f.csv, line 3: \"9007199254740993\"",
			"a=\"1\" b=\"2020-01-02\" c=\"1.5\"\na=\"2\" b=\"x\" c=\"9007199254740993\"\na=\"x\" b=\"y\" c=\"2\"\n"},
		{"leading zeros, large and small", "", "", "zip,big,e,n\n00123,99999999999999999999,1e5,NaN\n,1,2,\n",
			"2 rows of 1 files (commas), zip string, big string, e float64, n float64",
			"zip=\"00123\" big=\"99999999999999999999\" e=100000 n=NaN\nzip=null big=\"1\" e=2 n=null\n"},
		{"a value that is the name of its column", "", "", "id,tag,n\n1,tag,2\n",
			"1 rows of 1 files (commas), id int64, tag string, n int64", "id=1 tag=\"tag\" n=2\n"},
		{"lists are text", "", "", "a,b\n\"[1, 2]\",1|2\n", "1 rows of 1 files (commas), a string; looks " +
			`like lists: {"columns": {"a": {"type": "array<bigint>"}}} in a mapping file (--mapping) reads them, b ` +
			`string; looks like lists: {"columns": {"b": {"type": "array<bigint>"}}, "text": {"items": "|"}} in a ` +
			"mapping file (--mapping) reads them",
			"a=\"[1, 2]\" b=\"1|2\"\n"},
		{"lists where the mapping file says so", "", `{"text": {"items": "|"}, "columns": {"a": {"type": ` +
			`"array<bigint>"}, "b": {"type": "array<int>"}}}`, "a,b,c\n\"[1, 2]\",1|2,3\n[],,4\n",
			"2 rows of 1 files (commas), c int64", "a=[1,2] b=[1,2] c=3\na=[] b=null c=4\n"},
		{"a type that the mapping file says", "", `{"columns": {"a": {"type": "string"}}}`, "a,b\n1,2\n",
			"1 rows of 1 files (commas), b int64", "a=\"1\" b=2\n"},
		{"strings", "", `{"text": {"infer": false}}`, "a;b\n1;2\n", "", "a=\"1\" b=\"2\"\n"},
		{"a delimiter that the mapping file says", "", `{"text": {"delimiter": "::"}}`, "a::b\n1::2\n",
			`1 rows of 1 files ("::"), a int64, b int64`, "a=1 b=2\n"},
		{"a null that the mapping file says", "", `{"text": {"null": "NA"}}`, "a,b\n1,NA\nNA,x\n",
			"2 rows of 1 files (commas), a int64, b string", "a=1 b=null\na=null b=\"x\"\n"},
		{"lines to pass over", "", `{"text": {"skip_lines": 1}}`, "A report\na,b\n1,2\n",
			"1 rows of 1 files (commas), a int64, b int64", "a=1 b=2\n"},
		{"names that look like values", "", `{"text": {"header": true}}`, "2020,2021\n1,2\n",
			"1 rows of 1 files (commas), 2020 int64, 2021 int64", "2020=1 2021=2\n"},
		{"names that the mapping file gives", "", `{"text": {"columns": [{"name": "a"}, {"name": "b"}]}}`,
			"1;x\n\n2;\"y;z\"\n", "2 rows of 1 files (semicolons), a int64, b string", "a=1 b=\"x\"\na=2 b=\"y;z\"\n"},
		{"short rows that the mapping file takes", "", `{"text": {"short": "null"}}`, "a,b\n1,2\n3\n",
			"2 rows of 1 files (commas), a int64, b int64", "a=1 b=2\na=3 b=null\n"},
		{"latin1", "", `{"text": {"encoding": "latin1"}}`, "caf\xe9,b\n1,\xe9\n",
			"1 rows of 1 files (commas), café int64, b string", "café=1 b=\"é\"\n"},
		{"more than a sample", "", "", long + "x,y\n", "400001 rows of 1 files (commas), a string because of f.csv, " +
			"line 400002: \"x\", b string", "-"},
		// What is refused says what to do.
		{"no names", "", "", "1,x\n2,y\n", "", `f.csv: line 1 looks like values, not names: it has "1". A file ` +
			`without names gets them with {"text": {"columns": [{"name": "..."}, ...]}} in a mapping file ` +
			`(--mapping), one for each of its ` +
			`columns, of which it has 2; if the line has the names, say {"text": {"header": true}}`},
		{"no names and no numbers", "", "", "red,x\nblue,y\nred,z\n", "",
			`line 1 looks like values, not names: its "red" is a value of the same column in line 3`},
		{"a date among the names", "", "", "a,2020-01-02\nx,y\n", "", `it has "2020-01-02"`},
		{"UTF-16 without its mark", "", "", "a\x00,\x00b\x00\n\x00", "", `its first line has bytes that are 0, as ` +
			`UTF-16 has: say {"text": {"encoding": "utf-16le"}}`},
		{"not UTF-8", "", "", "a,b\n\xe9,2\n", "1 rows of 1 files (commas), a string, b int64", `a string that is ` +
			`not UTF-8; in a mapping file "kind": "bytes" takes any bytes, and {"text": {"encoding": "latin1"}} says`},
		{"names twice", "", "", "a,a\n1,2\n", "", `line 1: two columns have the name "a"`},
		{"a title", "", "", "A report\na,b\n1,2\n", "", `line 1 is one column, and the lines below it have 2 between ` +
			`commas: if it is a title, pass over it with {"text": {"skip_lines": 1}}`},
		{"names of rows, as R writes them", "", "", "a,b\n\"r1\",1,2\n\"r2\",3,4\n", "",
			`, or give all columns names with {"text": {"skip_lines": 1, "columns": `},
		{"files put together", "", "", "a,b\n1,x\na,b\n2,y\n", "", `line 3 has the names of line 1 again`},
		{"a title with a comma", "", "", "A report, short\na,b,c\n1,2,3\n4,5,6\n", "",
			"line 1 has 2 columns between commas, and most lines below it have another number"},
		{"Hive's text", "000000_0", "", "1\x01x\n", "", "its first line has Hive's delimiter ^A"},
		{"a short row", "", "", "a,b\n1,2\n3\n", "1 rows of 1 files (commas), a int64, b int64",
			`line 3: 1 column, the schema has 2: leave such rows out with --on-bad-row quarantine; if they are ` +
				`whole, "text": {"short": "null"}`},
		{"a long row", "", "", "a,b\n1,2\n3,4,5\n", "1 rows of 1 files (commas), a int64, b int64",
			`line 3: 3 columns, the schema has 2`},
		{"no such line end", "", "", "a" + strings.Repeat(",b", 1<<20), "",
			"line 1: the names do not end within 1048576"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "f.csv"
			}
			dir := writeFiles(t, map[string]string{"m.json": tc.mapping, file: tc.text})
			var said []string
			opts := Options{Inferred: told(&said)}
			if tc.mapping != "" {
				opts.MappingFile = filepath.Join(dir, "m.json")
			}
			if !strings.Contains(file, ".") {
				opts.Format = "text"
			}
			chunks, err := readPath(t, filepath.Join(dir, file), opts)
			if got := strings.Join(said, "; "); got != tc.told {
				t.Errorf("told %s, want %s", got, tc.told)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) || tc.want == "" {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if got := dump(chunks); got != tc.want && tc.want != "-" {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestPlainCSVFiles: several files are one dump, each with its own layout and order of columns, and types are those of
// all of them. JSON lines are told of, too.
func TestPlainCSVFiles(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte("b,a\nx,3\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{
		"t/ds=1/a.csv": "a,b\n1,x\n2,\n", "t/ds=1/b.csv.gz": zipped.String(), "t/ds=2/c.tsv": "a\tb\n4.5\ty\n",
		"t/ds=3/d.jsonl": "{\"a\": 7, \"b\": \"z\"}\n",
	})
	var said []string
	chunks, err := readPath(t, filepath.Join(dir, "t"), Options{Inferred: told(&said)})
	want := "ds=1: a=1 b=\"x\"\nds=1: a=2 b=null\nds=1: b=\"x\" a=3\nds=2: a=4.5 b=\"y\"\nds=3: a=7 b=\"z\"\n"
	if got := dump(chunks); err != nil || got != want {
		t.Errorf("%v, got\n%swant\n%s", err, got, want)
	}
	if got, want := strings.Join(said, "; "), "4 rows of 3 files, a float64, b string; 1 rows of 1 files, a int64, "+
		"b string"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	// Which file makes text of a column.
	for _, files := range []map[string]string{
		{"t/a.csv": "a\n1\n", "t/b.csv": "a\nx\n"}, {"t/a.csv": "a\nx\n", "t/b.csv": "a\n1\n"},
		{"t/a.csv": "a\n2020-01-02\n", "t/b.csv": "a\n1\n"},
	} {
		said = nil
		if _, err := readPath(t, filepath.Join(writeFiles(t, files), "t"), Options{Inferred: told(&said)}); err != nil {
			t.Error(err)
		}
		if !strings.Contains(said[0], "a string because of ") {
			t.Errorf("%v: told %s", files, said)
		}
	}
}

// TestPlainCSVOfStreams: a stream is read once. Its first values say the types; others are bad rows that say what to
// write.
func TestPlainCSVOfStreams(t *testing.T) {
	text := "a,b,c\n" + strings.Repeat("1,2,x\n", 200_000) + "x,2.5,y\n"
	var said, bad []string
	chunks, err := readPath(t, "-", Options{Format: "text", Stdin: strings.NewReader(text), Inferred: told(&said),
		OnBadRow: func(p Place, column string, err error) {
			bad = append(bad, fmt.Sprintf("%v, column %s: %v", p, column, err))
		}})
	rows := 0
	for _, c := range chunks {
		rows += c.Rows
	}
	if err != nil || rows != 200_000 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "the first 1") ||
		!strings.HasSuffix(said[0], "(commas), a int64, b int64, c string") {
		t.Errorf("told %s", said)
	}
	const want = `-, line 200002, column a: "x" is no int64, which is what the stream's first values ` +
		`are; {"columns": {"a": {"type": "string"}}} in a mapping file takes both`
	if len(bad) != 1 || bad[0] != want {
		t.Errorf("bad rows: %s, want %s", bad, want)
	}
	chunks, err = readPath(t, "-", Options{Format: "text", Stdin: strings.NewReader("a\n1.5\n\n")})
	if got := dump(chunks); err != nil || got != "a=1.5\na=null\n" {
		t.Errorf("%v, %s", err, got)
	}
}
