package ingest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/writer"
)

// storedTypes returns the features of the newest snapshot with their types.
func storedTypes(t *testing.T, s *storage.Store) string {
	t.Helper()
	table, err := s.Table(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	features, err := snap.Features(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range features {
		out = append(out, fmt.Sprintf("%s %v", f.Name, f.Type))
	}
	return strings.Join(out, ", ")
}

// cutGzip returns text compressed, without its last bytes.
func cutGzip(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()[:b.Len()-8]
}

// arrowNumbers returns an Arrow stream with columns of one type.
func arrowNumbers(t *testing.T, of arrow.DataType, columns ...string) []byte {
	t.Helper()
	var fields []arrow.Field
	for _, name := range columns {
		fields = append(fields, arrow.Field{Name: name, Type: of})
	}
	schema := arrow.NewSchema(fields, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for range 20 {
		for range 1000 {
			for i := range columns {
				if err := b.Field(i).AppendValueFromString("1.5"); err != nil {
					t.Fatal(err)
				}
			}
		}
		record := b.NewRecordBatch()
		if err := w.Write(record); err != nil {
			t.Fatal(err)
		}
		record.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBadFilesHaveNoSay: a file that is left out gives a table neither features nor wider types, whether its format
// says its types or they are inferred from the values of all files.
func TestBadFilesHaveNoSay(t *testing.T) {
	single, double := arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64
	cut := func(b []byte) []byte { return b[:len(b)-100] }
	rows := func(n int, row string) string { return strings.Repeat(row, n) }
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
		bad   int64 // rows
	}{
		"csv": {map[string][]byte{
			"a.csv": []byte("id\n1\n2\n"), "b.csv.gz": cutGzip("id,x,z\n" + rows(5000, "0.5,1.5,q\n")),
		}, "id int64", 0},
		"bad rows are counted once": {map[string][]byte{
			"a.csv":    []byte("id,y\n1,2\n2\n3,4\n"),
			"b.csv.gz": cutGzip("id,x,z\n1\n" + rows(5000, "0.5,1.5,q\n")),
		}, "id int64, y int64", 1},
		"json": {map[string][]byte{
			"a.jsonl": []byte("{\"id\":1}\n"), "b.jsonl.gz": cutGzip(rows(5000, "{\"id\":0.5,\"x\":1}\n")),
		}, "id int64", 0},
		"wider": {map[string][]byte{
			"a.arrow": arrowNumbers(t, single, "x"), "b.arrow": cut(arrowNumbers(t, double, "x", "y")),
		}, "x float32", 0},
		"more features": {map[string][]byte{
			"a.arrow": arrowNumbers(t, single, "x"), "b.arrow": cut(arrowNumbers(t, single, "x", "y")),
		}, "x float32", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := openStore(t, t.TempDir())
			list := filepath.Join(t.TempDir(), "bad.jsonl")
			opts := Options{OnBadRow: BadRowQuarantine, BadRowReport: list}
			opts.Memory = 100_000 // so that rows of the file that is left out are spilled
			report, err := Run(t.Context(), s, "ads", []string{dir}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := storedTypes(t, s); got != c.want || report.BadFiles != 1 || report.BadRows != c.bad ||
				report.Features != len(report.Added) || len(report.Valueless) > 0 {
				t.Fatalf("features %s, report %+v", got, report)
			}
			text, err := os.ReadFile(list)
			if n := int64(bytes.Count(text, []byte("\n"))); err != nil || n != 1+c.bad {
				t.Fatalf("%d lines: %s", n, text)
			}
		})
	}
}

// TestNamesOfOneCase: columns of two files that differ by case alone are refused, with what to do; of one file they are
// two features, and keys of maps are data.
func TestNamesOfOneCase(t *testing.T) {
	renamed := `{"columns": {"userid": {"rename": "UserId", "optional": true}}}`
	for name, c := range map[string]struct {
		files   []string // each a later ingest where it follows an empty one
		mapping string
		want    string
	}{
		"two files":          {[]string{"UserId,x\n1,2\n", "userid,x\n3,4\n"}, "", `feature "`},
		"renamed":            {[]string{"UserId,x\n1,2\n", "userid,x\n3,4\n"}, renamed, "UserId int64, x int64"},
		"one file":           {[]string{"UserId,userid\n1,2\n"}, "", "UserId int64, userid int64"},
		"one file has both":  {[]string{"UserId,userid\n1,2\n", "userid\n3\n"}, "", "UserId int64, userid int64"},
		"the table":          {[]string{"UserId,x\n1,2\n", "", "userid,x\n3,4\n"}, "", `feature "UserId" of the table`},
		"the table has both": {[]string{"UserId,userid\n1,2\n", "", "userid\n3\n"}, "", "UserId int64, userid int64"},
		"the table has both, files one each": {[]string{"UserId,userid\n1,2\n", "", "userid\n3\n", "UserId\n4\n"}, "",
			"UserId int64, userid int64"},
		"renamed as it": {[]string{"UserId,x\n1,2\n", "", "userid,x\n3,4\n"}, renamed, "UserId int64, x int64"},
	} {
		dir, s := t.TempDir(), openStore(t, t.TempDir())
		opts := Options{Options: writer.Options{Workers: 1}}
		if c.mapping != "" {
			opts.MappingFile = filepath.Join(t.TempDir(), "m.json")
			if err := os.WriteFile(opts.MappingFile, []byte(c.mapping), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var paths []string
		var err error
		for i, text := range append(c.files, "") {
			if text != "" {
				paths = append(paths, filepath.Join(dir, fmt.Sprint(i, ".csv")))
				if err := os.WriteFile(paths[len(paths)-1], []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			_, err = Run(t.Context(), s, "ads", paths, opts)
			paths = nil
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = storedTypes(t, s)
		}
		if !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "feature") &&
			!strings.Contains(got, `"rename": "`) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
