package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// TestNamesAgain: a line with the names again, as where files were put together, is a bad row wherever it is, and takes
// no part in the types.
func TestNamesAgain(t *testing.T) {
	for _, tc := range []struct{ names, row, again string }{
		{"user,item", "1,2", "user,item"},
		{"\"user\", item", "1,2", "\"user\", item"},
		{",user", "0,7", ",user"}, // an index of pandas
	} {
		var bad, said []string
		long := strings.Repeat(tc.row+"\n", 300_000)
		c := textCase{text: tc.names + "\n" + long + tc.again + "\n" + tc.row + "\n"}
		got, err := c.read(t, Options{Inferred: told(&said), OnBadRow: func(p Place, _ string, err error) {
			bad = append(bad, fmt.Sprintf("%v: %v", p, err))
		}})
		if err != nil || strings.Count(got, "\n") != 300_001 {
			t.Fatalf("%v, %d rows", err, strings.Count(got, "\n"))
		}
		if len(bad) != 1 || !strings.Contains(bad[0], "line 300002: the names of the columns again") {
			t.Errorf("%s: %q", tc.names, bad)
		}
		if len(said) != 1 || strings.Contains(said[0], "string") {
			t.Errorf("%s: %q", tc.names, said)
		}
	}
}

// TestGivenNamesInFile: names from the mapping file are not taken for those of a file that has them in its first line.
func TestGivenNamesInFile(t *testing.T) {
	const columns = `"columns": [{"name": "user"}, {"name": "item"}]`
	c := textCase{mapping: `{"text": {` + columns + `}}`, text: "User, item\n1,2\n"}
	if _, err := c.read(t, Options{}); err == nil ||
		!strings.Contains(err.Error(), `line 1 has the names that text.columns of the mapping file gives: say `+
			`{"text": {"header": true}} there too`) {
		t.Errorf("got %v", err)
	}
	c = textCase{mapping: `{"text": {"header": true, ` + columns + `}}`, text: "user,item\n1,2\n"}
	if got, err := c.read(t, Options{}); err != nil || got != "user=1 item=2\n" {
		t.Errorf("%v, got %s", err, got)
	}
	c = textCase{mapping: `{"text": {` + columns + `}}`, text: "1,2\nuser,item\n"}
	if got, err := c.read(t, Options{}); err != nil || got != "user=\"1\" item=\"2\"\nuser=\"user\" item=\"item\"\n" {
		t.Errorf("%v, got %s", err, got)
	}
}

// TestTextTakesTableTypes: text and JSON lines whose values fit take a uint64 and a timestamp that the table has, where
// their own values show less: hashes that are all small, times that are all midnights.
func TestTextTakesTableTypes(t *testing.T) {
	known := func() []catalog.Feature {
		return []catalog.Feature{
			{Name: "hash", Type: vector.Type{Kind: vector.Dense, Elem: vector.Uint64}},
			{Name: "at", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}, Logical: "timestamp[us]"},
		}
	}
	for file, tc := range map[string]struct{ text, want string }{
		"a.csv":   {"hash,at\n7,2026-11-01\n", "hash uint64 , at int64 timestamp[us], "},
		"n.csv":   {"hash,at\n-7,x\n", "hash int64 , at string , "},
		"a.jsonl": {`{"hash": 7}`, "hash uint64 , "},
		"n.jsonl": {`{"hash": -7}`, "hash int64 , "},
	} {
		dir := writeFiles(t, map[string]string{file: tc.text})
		files, err := Discover(t.Context(), []string{filepath.Join(dir, file)}, Options{Known: known})
		if err != nil {
			t.Fatal(err)
		}
		s, err := files[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range s.Fields() {
			got += fmt.Sprintf("%s %v %s, ", f.Name, f.Type, f.Logical)
		}
		if err := s.Close(); err != nil || got != tc.want {
			t.Errorf("%s: %v, got %s, want %s", file, err, got, tc.want)
		}
	}
}

// TestNullWithBlanks: blanks around a word for null do not count, and the hint names the word alone.
func TestNullWithBlanks(t *testing.T) {
	const text = "a,b\n 35, 1\n NA,     NA\nNA,2\n"
	var said []string
	c := textCase{text: text}
	if _, err := c.read(t, Options{Inferred: told(&said)}); err != nil || len(said) != 1 ||
		strings.Count(said[0], `{"text": {"null": "NA"}}`) != 2 {
		t.Errorf("%v: %q", err, said)
	}
	c = textCase{mapping: `{"text": {"null": "NA"}}`, text: text}
	if got, err := c.read(t, Options{}); err != nil || got != "a=35 b=1\na=null b=null\na=null b=2\n" {
		t.Errorf("%v, got %s", err, got)
	}
}

// TestFilesOfOtherTables: a file that shares no column with those before it is refused by name.
func TestFilesOfOtherTables(t *testing.T) {
	dir := writeFiles(t, map[string]string{"README.txt": "Summary\n=======\nThis dataset\n", "a.csv": "u,i\n1,2\n",
		"b.csv": "i,r\n1,2\n"})
	bad := map[string]bool{}
	var onBad func(place Place, column string, err error)
	read := func(names ...string) (err error) {
		paths := []string{dir}
		if len(names) > 0 {
			paths = nil
		}
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		files, err := Discover(t.Context(), paths, Options{OnBadRow: onBad})
		for i := 0; err == nil && i < len(files); i++ {
			s, oerr := files[i].Open(t.Context())
			switch {
			case oerr != nil && onBad != nil:
				bad[filepath.Base(files[i].Path)] = true
			case oerr != nil:
				return oerr
			default:
				err = s.Close()
			}
		}
		return err
	}
	if err := read(); err == nil || !strings.Contains(err.Error(), "README.txt: it has no column of "+
		filepath.Join(dir, "a.csv")) {
		t.Errorf("got %v", err)
	}
	onBad = func(Place, string, error) {}
	if err := read(); err != nil || len(bad) != 1 || !bad["README.txt"] {
		t.Errorf("%v: left out: %v", err, bad)
	}
	onBad = nil
	if err := read("a.csv", "b.csv"); err != nil {
		t.Error(err)
	}
}

// TestToldFiles: what is not read, or not as it stands, is answered with what it is and what to do.
func TestToldFiles(t *testing.T) {
	for _, tc := range []struct{ file, mapping, text, want string }{
		{"x.parquet.gz", "", "\x1f\x8b\x08\x00", "compressed in itself: decompress it first"},
		{"a.json", "", `{"price": {"0": 1, "1": 2}, "id": {"0": 7, "1": 8}}`, `orient="records", lines=True`},
		{"o.jsonl", "", `{"session": 1, "events": [{"aid": 1, "ts": 2, "type": "clicks"}]}`,
			`{"columns": {"events": {"type": "string"}}} keeps its JSON text`},
		{"f.txt", "", "+1 12:1 532:1\n-1 7:1 99:1 100:1\n-1 4:1\n", "looks like values, not names"},
		{"h.txt", `{"text": {"columns": [{"name": "u"}, {"name": "e"}]}}`, "1\x01pv\n", `{"delimiter": "\u0001"}`},
		{"d.csv", `{"columns": {"pid": {"type": "double"}}}`, "pid\n430548_1007\n", "is no double"},
		{"x.csv", `{"columns": {"pid": {"type": "double"}}}`, "pid\n0x1p4\n", "is no double"},
	} {
		c := textCase{file: tc.file, mapping: tc.mapping, text: tc.text}
		if got, err := c.read(t, Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v %s, want %s", tc.file, err, got, tc.want)
		}
	}
}
