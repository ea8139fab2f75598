package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage"
)

// writeFiles writes files below a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewOnly: of a directory that grows, what was ingested before is left out: its rows, its partitions and its say in
// the types of the others. Where all was, nothing is committed.
func TestNewOnly(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, t.TempDir())
	step := 0
	run := func(opts Options, snapshot uint64, rows int64, files, known int) Report {
		t.Helper()
		step++
		opts.NewOnly = true
		r, err := Run(t.Context(), s, "ads", []string{dir}, opts)
		if err != nil || r.Snapshot != snapshot || r.Rows != rows || r.Files != files || r.Known != known ||
			r.Committed != (rows > 0) {
			t.Fatalf("step %d: %v, report %+v", step, err, r)
		}
		return r
	}
	writeFiles(t, dir, map[string]string{"ds=1/a.csv": "id,x\n1,2\n2,3\n", "ds=1/b.csv": "id,x\n3,4\n"})
	run(Options{}, 1, 3, 2, 0)
	run(Options{}, 1, 0, 0, 2)

	// The same bytes for another partition are new. Types are inferred from what is new alone.
	writeFiles(t, dir, map[string]string{"ds=2/a.csv": "id,x\n1,2\n2,3\n", "ds=2/c.csv": "id,x,y\n4,5,6\n"})
	r := run(Options{}, 2, 3, 2, 2)
	if r.Changed != 0 {
		t.Fatalf("the same bytes elsewhere are no change: %+v", r)
	}
	if len(r.Inferred) != 1 || r.Inferred[0].Files != 2 || r.Inferred[0].Rows != 3 || r.Partitions != 1 ||
		r.BytesIn != int64(len("id,x\n1,2\n2,3\n")+len("id,x,y\n4,5,6\n")) {
		t.Fatalf("the report is %+v", r)
	}
	if _, err := Run(t.Context(), s, "ads", []string{dir}, Options{}); !errors.Is(err, storage.ErrDuplicateSource) ||
		!strings.Contains(err.Error(), "NewOnly leaves such files out; Overwrite replaces the partitions") {
		t.Fatalf("without the option: %v", err)
	}

	// A file that is left out because it is damaged has the dump read again, still without what is known.
	writeFiles(t, dir, map[string]string{"ds=3/d.csv": "id,z\n7,8\n",
		"ds=3/e.csv.gz": string(cutGzip("id,z\n" + strings.Repeat("5,q\n", 5000)))})
	r = run(Options{OnBadRow: BadRowQuarantine}, 3, 1, 2, 4)
	if r.BadFiles != 1 || storedTypes(t, s) != "id int64, x int64, y int64, z int64" {
		t.Fatalf("features %s, report %+v", storedTypes(t, s), r)
	}

	// New files without rows make no snapshot, and none that can be read are an error.
	writeFiles(t, dir, map[string]string{"ds=3/e.csv.gz": string(cutGzip("id,z\n" + strings.Repeat("5,6\n", 5000)))})
	opts := Options{NewOnly: true, OnBadRow: BadRowQuarantine}
	if _, err := Run(t.Context(), s, "ads", []string{dir}, opts); err == nil ||
		!strings.Contains(err.Error(), "the only file cannot be read: "+filepath.Join(dir, "ds=3/e.csv.gz")) {
		t.Fatalf("a bad file alone: %v", err)
	}
	writeFiles(t, dir, map[string]string{"ds=3/f.csv": "id,z\n"})
	run(Options{OnBadRow: BadRowQuarantine}, 3, 0, 2, 5)
	alone := Options{NewOnly: true}
	if r, err := Run(t.Context(), s, "ads", []string{filepath.Join(dir, "ds=3/f.csv")}, alone); err != nil ||
		r.Snapshot != 3 {
		t.Fatalf("a file without rows alone: %v, %+v", err, r)
	}
	if err := os.Remove(filepath.Join(dir, "ds=3/f.csv")); err != nil {
		t.Fatal(err)
	}

	// A file whose bytes have changed is new.
	writeFiles(t, dir, map[string]string{"ds=3/d.csv": "id,z\n7,8\n9,9\n"})
	if err := os.Remove(filepath.Join(dir, "ds=3/e.csv.gz")); err != nil {
		t.Fatal(err)
	}
	if r := run(Options{}, 4, 2, 1, 4); r.Changed != 1 || r.FirstChanged != filepath.Join(dir, "ds=3/d.csv") {
		t.Fatalf("a changed file: %+v", r)
	}
	if r := run(Options{}, 4, 0, 0, 5); r.Changed != 0 {
		t.Fatalf("it is known now: %+v", r)
	}

	// Of a stream it is not known in time.
	opts = Options{NewOnly: true, Stdin: strings.NewReader("")}
	if _, err := Run(t.Context(), s, "ads", []string{"-"}, opts); err == nil ||
		!strings.Contains(err.Error(), "-: new only is for files") {
		t.Fatalf("a stream: %v", err)
	}
}
