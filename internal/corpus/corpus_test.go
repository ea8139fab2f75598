package corpus

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

func buildDSI(t *testing.T) string {
	bin := filepath.Join(t.TempDir(), "dsi")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/dsistore/dsistore/tools/cmd/dsi").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// An outcome is what became of one file.
type outcome struct {
	file   string
	class  string // equal, refused, wrong, panic, hang, unreadable
	reason string
	export string
}

func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	dir, py := corpusDir(t), python(t)
	bin, work := buildDSI(t), t.TempDir()

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
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, f := range files {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			outcomes[i] = roundTrip(t.Context(), bin, filepath.Join(work, fmt.Sprint(i)), f)
		}()
	}
	wg.Wait()
	judge(t, py, outcomes)
	report(t, dir, outcomes)
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

// roundTrip ingests one file and exports it again.
func roundTrip(ctx context.Context, bin, work, file string) outcome {
	o := outcome{file: file, export: filepath.Join(work, "export.parquet")}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return outcome{file: file, class: "wrong", reason: err.Error()}
	}
	store := filepath.Join(work, "store")
	for _, args := range [][]string{
		{"ingest", store, "t", file},
		{"export", store, "t", "--features", "@all", "--fold", "--to", o.export},
		{"verify", store, "--deep"},
	} {
		class, reason := runDSI(ctx, bin, args...)
		if class == "ok" {
			continue
		}
		if class == "refused" && args[0] != "ingest" {
			class, reason = "wrong", args[0]+": "+reason // what was ingested must come out again
		}
		o.class, o.reason = class, reason
		return o
	}
	return o
}

// runDSI runs one command and returns ok, refused (with its one line), panic or hang.
func runDSI(ctx context.Context, bin string, args ...string) (class, reason string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
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
		line, err := json.Marshal(map[string]any{"sources": []string{o.file}, "export": o.export})
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
			t.Fatalf("compare.py ended before %s", outcomes[i].file)
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
		rel, err := filepath.Rel(dir, o.file)
		if err != nil {
			rel = o.file
		}
		switch o.class {
		case "wrong", "panic", "hang":
			t.Errorf("%s: %s: %s", rel, o.class, o.reason)
		case "refused", "unreadable":
			t.Logf("%s: %s: %s", rel, o.class, strings.ReplaceAll(o.reason, dir+string(filepath.Separator), ""))
			if _, after, ok := strings.Cut(o.reason, o.file); ok {
				reasons[digits.ReplaceAllString(after, "N")]++
			}
		}
	}
	t.Logf("%d files: %d equal, %d refused, %d that pyarrow cannot read, %d wrong, %d panics, %d hangs", len(outcomes),
		count["equal"], count["refused"], count["unreadable"], count["wrong"], count["panic"], count["hang"])
	for r, n := range reasons {
		t.Logf("%4d refused%s", n, r)
	}
}
