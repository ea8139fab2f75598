package source

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// corpusRoot returns the directory of files that other programs wrote, and skips the test where there is none, and
// under the race detector.
func corpusRoot(t *testing.T) string {
	t.Helper()
	if race.Enabled {
		t.Skip("not under the race detector: what has threads has tests of its own")
	}
	roots := []string{"../../../../shared/testdata", "../../../../../shared/testdata"}
	if root := os.Getenv("DSISTORE_TESTDATA"); root != "" {
		roots = []string{root}
	}
	for _, root := range roots {
		if _, err := os.Stat(root); err == nil {
			return root
		}
	}
	t.Skip("no corpus of foreign files here: DSISTORE_TESTDATA may name it")
	return ""
}

// corpusRows is how many rows of a file are compared; all are read.
const corpusRows = 5_000

// An outcome is what became of a file of the corpus.
type outcome struct {
	file     string
	rows     int
	features map[string]string // name -> SHA-1 of the first corpusRows cells
	err      error
	took     time.Duration
}

var allFiles = flag.Bool("all-files", false, "read those that internal/corpus stores, too")

// TestFilesOfOthers reads files of the corpus and compares each with what pyarrow reads. Most are for TestCorpus of
// internal/corpus, which also stores them: they are read here with -all-files.
func TestFilesOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("reads hundreds of files")
	}
	root := corpusRoot(t)
	var files []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !*allFiles && (p == filepath.Join(root, "parquet") || p == filepath.Join(root, "orc")) {
			return filepath.SkipDir
		}
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "_") || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		switch filepath.Ext(p) {
		case ".parquet", ".parq", ".encrypted", ".orc":
			files = append(files, p)
		case ".csv":
			if strings.Contains(p, "/hive/") {
				files = append(files, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus holds no files that this test knows")
	}
	hasPyarrow := exec.Command(pythonName(), "-c", "import pyarrow").Run() == nil
	if !hasPyarrow {
		t.Log("no pyarrow: files are read, ORC files left out, nothing is compared")
	}
	csvMapping := filepath.Join(t.TempDir(), "csv.json")
	if err := os.WriteFile(csvMapping, []byte(`{"text": {"delimiter": ",", "quote": "\"", "header": true}}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	want := map[string]pyAnswer{}
	if hasPyarrow {
		want = askPyarrow(t, files)
	}
	counts := map[string]int{}
	var lines []string
	for _, f := range files {
		if filepath.Ext(f) == ".orc" && !hasPyarrow {
			continue
		}
		opts := Options{}
		if filepath.Ext(f) == ".csv" {
			opts.MappingFile = csvMapping
		}
		o := readOutcome(t, f, opts)
		verdict, detail := judgeOutcome(o, want[f], hasPyarrow)
		counts[verdict]++
		lines = append(lines, fmt.Sprintf("%-13s %-75s %s", verdict, strings.TrimPrefix(f, root+"/"), detail))
		if verdict == "wrong" || verdict == "hung" {
			t.Errorf("%s: %s", f, detail)
		}
	}
	sort.Strings(lines)
	t.Logf("%d files: %v\n%s", len(files), counts, strings.Join(lines, "\n"))
}

// judgeOutcome says whether a file was read as pyarrow reads it, or why not.
func judgeOutcome(o outcome, want pyAnswer, compared bool) (verdict, detail string) {
	oneLine := func(err error) string {
		s := strings.ReplaceAll(strings.ReplaceAll(err.Error(), o.file, ""), "\n", " ")
		return s[:min(len(s), 180)]
	}
	var row *RowError
	switch {
	case errors.Is(o.err, context.DeadlineExceeded):
		return "hung", o.took.String()
	case errors.Is(o.err, column.ErrRefused):
		return "refused", oneLine(o.err)
	case errors.As(o.err, &row):
		return "bad row", oneLine(o.err)
	case o.err != nil && compared && want.Error == "":
		return "stricter", oneLine(o.err) + " (pyarrow reads it)"
	case o.err != nil:
		return "damaged", oneLine(o.err)
	case !compared:
		return "read", ""
	case want.Error != "":
		return "laxer", "pyarrow: " + want.Error
	case o.rows != want.Rows:
		return "wrong", fmt.Sprintf("%d rows, pyarrow reads %d", o.rows, want.Rows)
	}
	for name, sum := range want.Features {
		if o.features[name] != sum {
			return "wrong", fmt.Sprintf("feature %q", name)
		}
	}
	for name := range o.features {
		if _, ok := want.Features[name]; !ok {
			return "wrong", fmt.Sprintf("feature %q is not in the file", name)
		}
	}
	return "equal", fmt.Sprintf("%d rows, %d features", o.rows, len(o.features))
}

type pyAnswer struct {
	File     string
	Error    string
	Rows     int
	Features map[string]string
}

func askPyarrow(t *testing.T, files []string) map[string]pyAnswer {
	t.Helper()
	cmd := exec.Command(pythonName(), "testdata/pyread.py", fmt.Sprint(corpusRows))
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("pyread.py: %v\n%s", err, stderr.String())
	}
	out := map[string]pyAnswer{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var a pyAnswer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("pyread.py: %v in %q", err, line)
		}
		out[a.File] = a
	}
	return out
}

// readOutcome reads a file to its end.
func readOutcome(t *testing.T, path string, opts Options) outcome {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := outcome{file: path, features: map[string]string{}}
	defer func() { o.took = time.Since(start) }()
	files, err := Discover(ctx, []string{path}, opts)
	if err != nil {
		o.err = err
		return o
	}
	cells := map[*mapping.Field][]string{}
	for _, f := range files {
		s, err := f.Open(ctx)
		if err != nil {
			o.err = err
			return o
		}
		chunks, err := readAll(t, s)
		if err != nil {
			o.err = err
			return o
		}
		for _, f := range s.Fields() {
			cells[f] = nil
		}
		for _, c := range chunks {
			compared := min(o.rows, corpusRows)
			n := min(c.Rows, corpusRows-compared)
			for i, f := range c.Fields {
				for len(cells[f]) < compared {
					cells[f] = append(cells[f], "n")
				}
				for r := range n {
					cells[f] = append(cells[f], canonical(c.Columns[i], r))
				}
			}
			o.rows += c.Rows
		}
	}
	for f, v := range cells {
		for len(v) < min(o.rows, corpusRows) {
			v = append(v, "n")
		}
		sum := sha1.Sum([]byte(strings.Join(v, "\n")))
		o.features[f.Name] = hex.EncodeToString(sum[:])
	}
	return o
}

// canonical is the text of a cell that pyread.py gives too.
func canonical(c *vector.Column, row int) string {
	if c.IsNull(row) {
		return "n"
	}
	lo, hi := c.RowRange(row)
	if c.Type.Physical() == vector.ByteValues {
		return "b" + hex.EncodeToString(c.Data[lo:hi])
	}
	parts := make([]string, 0, hi-lo)
	for i := lo; i < hi; i++ {
		var s string
		switch c.Type.Physical() {
		case vector.Float32Values:
			s = fmt.Sprintf("f%08x", math.Float32bits(c.Floats[i]))
		case vector.Float64Values:
			s = fmt.Sprintf("f%016x", math.Float64bits(c.Doubles[i]))
		default:
			if s = fmt.Sprintf("i%d", c.Ints[i]); c.Type.Elem == vector.Uint64 {
				s = fmt.Sprintf("i%d", uint64(c.Ints[i]))
			}
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				s += fmt.Sprintf(":f%016x", math.Float64bits(c.ScoreDoubles[i]))
			} else {
				s += fmt.Sprintf(":f%08x", math.Float32bits(c.ScoreFloats[i]))
			}
		}
		parts = append(parts, s)
	}
	if c.Type.Kind == vector.Dense {
		return parts[0]
	}
	return "[" + strings.Join(parts, ",") + "]"
}
