package simulate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	hunt = flag.Float64("simulate.hunt", 0,
		"how many CPU seconds TestHunt looks for a failure, which it prints as JSON")
	mutate = flag.Float64("simulate.mutate", 0,
		"how many CPU seconds TestMutations gives each mutation; 0: it only looks whether they can be made")
	mutateOnly = flag.String("simulate.only", "", "the mutations whose names match this")
	reportFile = flag.String("simulate.report", "", "where TestMutations writes its table")
)

// A catch says what was found first.
type catch struct {
	World   string
	Seed    uint64
	Steps   int
	Seconds float64
	Failure string
}

// TestHunt looks for a failure, in the small worlds and in random ones by turns, longer each time.
func TestHunt(t *testing.T) {
	if *hunt == 0 {
		t.Skip("-simulate.hunt says how long")
	}
	oneThread(t)
	start := cpuTime()
	over := func() bool { return (cpuTime() - start).Seconds() > *hunt }
	var c catch
	found := func(name string, seed uint64, failure error) {
		c.World, c.Seed, c.Failure = name, seed, failure.Error()
	}
	done := map[int]bool{}
	seed := *firstSeed
	for turn := time.Second / 2; c.Failure == "" && !over(); turn *= 4 {
		for k := range smallWorlds {
			if done[k] || c.Failure != "" || over() {
				continue
			}
			x, failed := explore(t, made(t, smallWorlds[k]), *firstSeed, time.Now().Add(turn))
			done[k] = x.Whole
			if c.Steps += x.Steps; failed != nil {
				found(x.World, *firstSeed, failed.failure)
			}
		}
		for until := time.Now().Add(8 * turn); c.Failure == "" && time.Now().Before(until) && !over(); seed++ {
			w := randomWorld(seed)
			r := play(t, w, runOptions{seed: seed, tick: randomTick}, newGambler(seed, len(w.machines)))
			if c.Steps += r.steps; r.failure != nil {
				found(w.name, seed, r.failure)
			}
		}
	}
	c.Seconds = (cpuTime() - start).Seconds()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s%s\n", catchMark, b)
}

const catchMark = "catch "

// TestMutations makes each mutation in an overlay of the sources, and has TestHunt find it.
func TestMutations(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, mu := range mutations {
		b, err := os.ReadFile(filepath.Join(root, mu.file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, e := range mu.edits {
			if n := strings.Count(text, e.old); n != 1 {
				t.Errorf("mutation %q: %s has %d times, want once:\n%s", mu.name, mu.file, n, e.old)
			}
			text = strings.Replace(text, e.old, e.by, 1)
		}
		texts[mu.name] = text
	}
	if *mutate == 0 || t.Failed() {
		return
	}
	rows := make([]string, len(mutations))
	t.Run("each", func(t *testing.T) {
		for i, mu := range mutations {
			if !regexp.MustCompile(*mutateOnly).MatchString(mu.name) {
				continue
			}
			t.Run(mu.name, func(t *testing.T) {
				t.Parallel()
				c := caught(t, root, filepath.Join(root, mu.file), mu.name, texts[mu.name])
				if c.Failure == "" {
					t.Errorf("not found in %.0f CPU s, %d operations", c.Seconds, c.Steps)
					rows[i] = fmt.Sprintf("| %s | **no** | | %d | %.0f | |\n", mu.name, c.Steps, c.Seconds)
					return
				}
				what, _, _ := strings.Cut(c.Failure, "\n")
				what = strings.ReplaceAll(what, "|", "/")
				t.Logf("found: %s, seed %d, %d operations, %.1f CPU s: %s", c.World, c.Seed, c.Steps, c.Seconds, what)
				rows[i] = fmt.Sprintf("| %s | yes | %s, seed %d | %d | %.1f | %.110s |\n", mu.name, c.World, c.Seed,
					c.Steps, c.Seconds, what)
			})
		}
	})
	if *reportFile != "" {
		head := "| mistake | found | by world | operations | CPU seconds | what it says |\n|---|---|---|---|---|---|\n"
		if err := replaceTable(*reportFile, "mutations", head+strings.Join(rows, "")); err != nil {
			t.Fatal(err)
		}
	}
}

// caught builds the tests over a changed file and hunts.
func caught(t *testing.T, root, file, name, text string) (c catch) {
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir,
		"simulate.test")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{changed: []byte(text), overlay: b} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-tags", "invariants,pebblegozstd,grpcnotrace",
		"-overlay", overlay, "-o", binary, "./internal/simulate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mutation %q: %v\n%s", name, err, out)
	}
	defer os.Remove(binary)
	cmd := exec.Command(binary, "-test.run=^TestHunt$", "-test.timeout=0", fmt.Sprintf("-simulate.hunt=%v", *mutate),
		fmt.Sprintf("-simulate.seed=%d", *firstSeed))
	cmd.Dir = filepath.Join(root, "internal", "simulate")
	out, err := cmd.CombinedOutput()
	_, last, ok := strings.Cut(string(out), "\n"+catchMark)
	line, _, _ := strings.Cut(last, "\n")
	if !ok || json.Unmarshal([]byte(line), &c) != nil {
		t.Fatalf("mutation %q: %v\n%.3000s", name, err, out)
	}
	return c
}

// replaceTable puts a table into a page, between two comments.
func replaceTable(page, name, table string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: it lacks %sor %s", page, begin, end)
	}
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)
}
