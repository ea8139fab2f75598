package corpus

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// corpusDir returns the folder of files nobody here wrote: DSISTORE_TESTDATA, or testdata in a folder shared beside the
// checkout. It skips the test when there is none.
func corpusDir(t *testing.T) string {
	dir := os.Getenv("DSISTORE_TESTDATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "testdata")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no corpus at %s: set DSISTORE_TESTDATA to a folder with parquet/, orc/ and hive/", dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func python(t *testing.T) string {
	python := os.Getenv("DSISTORE_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import pyarrow").CombinedOutput(); err != nil {
		t.Skipf("%s has no pyarrow, so there is no independent reader: %v: %s", python, err, bytes.TrimSpace(out))
	}
	return python
}

// An outcome is what became of one file, or of one directory in Hive layout.
type outcome struct {
	path       string
	sources    []string         // the files in it, for pyarrow
	partitions []map[string]any // of each source; nil for a single file
	export     string
	class      string // equal, refused, wrong, panic, hang, unreadable
	reason     string
}

func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	dir, py := corpusDir(t), python(t)
	work := t.TempDir()

	var files []string
	for _, sub := range []string{"parquet", "orc"} {
		err := filepath.WalkDir(filepath.Join(dir, sub), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && isDump(path) {
				files = append(files, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	slices.Sort(files)
	if len(files) == 0 {
		t.Skipf("no files in %s", dir)
	}

	outcomes := make([]outcome, len(files))
	for i, f := range files {
		outcomes[i] = outcome{path: f, sources: []string{f}}
		if _, values := partitionOf(f); len(values) > 0 {
			outcomes[i].partitions = []map[string]any{values}
		}
	}
	tryAll(t, work, outcomes)
	judge(t, py, outcomes)
	report(t, dir, outcomes)
}

// TestHiveLayouts does the same with whole directories in Hive layout, whose partition values are columns of the
// export.
func TestHiveLayouts(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	dir, py := corpusDir(t), python(t)
	roots := map[string]*outcome{}
	err := filepath.WalkDir(filepath.Join(dir, "hive"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".parquet" {
			return err
		}
		root, values := partitionOf(path)
		o := roots[root]
		if o == nil {
			o = &outcome{path: root}
			roots[root] = o
		}
		o.sources, o.partitions = append(o.sources, path), append(o.partitions, values)
		return nil
	})
	if err != nil || len(roots) == 0 {
		t.Skipf("no files in Hive layout in %s: %v", dir, err)
	}
	var outcomes []outcome
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		outcomes = append(outcomes, *roots[root])
	}
	tryAll(t, t.TempDir(), outcomes)
	judge(t, py, outcomes)
	report(t, dir, outcomes)
}

// partitionOf splits a path into what stands before its first key=value directory, and the values; Hive's default
// partition is null.
func partitionOf(path string) (root string, values map[string]any) {
	root, values = filepath.Dir(path), map[string]any{}
	for strings.Contains(filepath.Base(root), "=") {
		key, value, _ := strings.Cut(filepath.Base(root), "=")
		key, value = unescape(key), unescape(value)
		values[key] = value
		if value == "__HIVE_DEFAULT_PARTITION__" {
			values[key] = nil
		}
		root = filepath.Dir(root)
	}
	return root, values
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// tryAll sends every outcome's path through dsi, two at a time.
func tryAll(t *testing.T, work string, outcomes []outcome) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range outcomes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			outcomes[i].roundTrip(t.Context(), filepath.Join(work, fmt.Sprint(i)))
		}()
	}
	wg.Wait()
}

// isDump leaves out the corpus's own notes and expected outputs: whatever has a dump's magic or no other known suffix.
func isDump(path string) bool {
	switch filepath.Ext(path) {
	case ".md", ".csv", ".json", ".gz", ".txt", ".bin", ".tsv":
		return false
	}
	base := filepath.Base(path)
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".")
}

// roundTrip ingests the path and exports it again.
func (o *outcome) roundTrip(ctx context.Context, work string) {
	o.export = filepath.Join(work, "export.parquet")
	if err := os.MkdirAll(work, 0o755); err != nil {
		o.class, o.reason = "wrong", err.Error()
		return
	}
	store := filepath.Join(work, "store")
	for _, args := range [][]string{
		{"ingest", store, "t", o.path},
		{"export", store, "t", "--features", "@all", "--fold", "--to", o.export},
		{"verify", store, "--deep"},
	} {
		class, reason := runDSI(ctx, args...)
		if class == "ok" {
			continue
		}
		if class == "refused" && args[0] != "ingest" {
			class, reason = "wrong", args[0]+": "+reason // what was ingested must come out again
		}
		o.class, o.reason = class, reason
		return
	}
}

// runDSI runs one command and returns ok, refused (with its one line), panic or hang.
func runDSI(ctx context.Context, args ...string) (class, reason string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	text := strings.TrimSpace(stderr.String())
	switch {
	case ctx.Err() != nil:
		return "hang", strings.Join(args, " ")
	case strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:"):
		return "panic", text
	case err == nil:
		return "ok", ""
	}
	if lines := strings.Count(text, "\n"); text == "" || lines > 0 {
		return "wrong", fmt.Sprintf("%s: the error is not one line: %q", args[0], text)
	}
	return "refused", text
}

// judge has pyarrow compare source and export, in one process for all files.
func judge(t *testing.T, py string, outcomes []outcome) {
	cmd := exec.Command(py, "compare.py")
	cmd.Stderr = os.Stderr
	var jobs bytes.Buffer
	var which []int
	for i, o := range outcomes {
		if o.class != "" {
			continue
		}
		line, err := json.Marshal(map[string]any{"sources": o.sources, "partitions": o.partitions, "export": o.export})
		if err != nil {
			t.Fatal(err)
		}
		jobs.Write(append(line, '\n'))
		which = append(which, i)
	}
	cmd.Stdin = &jobs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("compare.py: %v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for _, i := range which {
		if !lines.Scan() {
			t.Fatalf("compare.py ended before %s", outcomes[i].path)
		}
		var v struct{ Outcome, Reason string }
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("compare.py: %v in %q", err, lines.Text())
		}
		outcomes[i].class, outcomes[i].reason = v.Outcome, v.Reason
	}
}

var digits = regexp.MustCompile(`\d+`)

func report(t *testing.T, dir string, outcomes []outcome) {
	count := map[string]int{}
	reasons := map[string]int{}
	for _, o := range outcomes {
		count[o.class]++
		rel, err := filepath.Rel(dir, o.path)
		if err != nil {
			rel = o.path
		}
		switch o.class {
		case "wrong", "panic", "hang":
			t.Errorf("%s: %s: %s", rel, o.class, o.reason)
		case "refused", "unreadable":
			t.Logf("%s: %s: %s", rel, o.class, strings.ReplaceAll(o.reason, dir+string(filepath.Separator), ""))
			if _, after, ok := strings.Cut(o.reason, o.path); ok {
				reasons[digits.ReplaceAllString(after, "N")]++
			}
		}
	}
	t.Logf("%d tried: %d equal, %d refused, %d that pyarrow cannot read, %d wrong, %d panics, %d hangs", len(outcomes),
		count["equal"], count["refused"], count["unreadable"], count["wrong"], count["panic"], count["hang"])
	for r, n := range reasons {
		t.Logf("%4d refused%s", n, r)
	}
}
