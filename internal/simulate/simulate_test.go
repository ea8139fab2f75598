package simulate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seconds = flag.Float64("simulate.seconds", 0,
		"how long TestSimulate explores small worlds and draws random ones, with one process per core; 0: a "+
			"few seconds, in this process")
	firstSeed = flag.Uint64("simulate.seed", 1, "the first seed; those after it follow")
	worldText = flag.String("simulate.world", "", "the world that TestReplay runs, as script.go says")
	pageSize  = flag.Int("simulate.page", 0, "objects in a page of a listing, in TestReplay")
	traceText = flag.String("simulate.trace", "", "the trace that TestReplay follows")
	part      = flag.String("simulate.part", "",
		"i/n: this process does the i-th of n parts of TestSimulate, and prints what it did as JSON")
)

// fewTime is how long the random part of TestSimulate takes where nothing is said, and fewExplored how long the
// exploration of one world.
const (
	fewTime     = 5 * time.Second
	fewExplored = time.Second / 2
)

// oneThread keeps the goroutines of a bubble on one thread, where handing on from one to the other costs least, and
// collects garbage seldom. The files that are ingested are in a directory of the test.
func oneThread(t *testing.T) {
	t.Chdir(t.TempDir())
	gc := debug.SetGCPercent(400)
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		debug.SetGCPercent(gc)
	})
}

// made returns a world of smallWorlds.
func made(t *testing.T, w world) *world {
	t.Helper()
	out, err := w.made()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSmallWorlds explores the small worlds exhaustively, as far as a few seconds go.
func TestSmallWorlds(t *testing.T) {
	oneThread(t)
	for _, w := range smallWorlds {
		t.Run(w.name, func(t *testing.T) {
			w := made(t, w)
			x, failed := explore(t, w, *firstSeed, time.Now().Add(fewExplored))
			t.Log(x)
			if failed != nil {
				t.Fatal(explain(t, w, runOptions{seed: *firstSeed}, *failed))
			}
		})
	}
}

// TestDeterminism: a run is the same every time, operation by operation, and a trace is all that there is to it.
func TestDeterminism(t *testing.T) {
	oneThread(t)
	for seed := *firstSeed; seed < *firstSeed+30; seed++ {
		w := randomWorld(seed)
		o := runOptions{seed: seed, tick: randomTick}
		first := play(t, w, o, newGambler(seed, len(w.machines)))
		again := play(t, w, o, newGambler(seed, len(w.machines)))
		followed := replay(t, w, o, first.trace)
		if first.hash != again.hash || first.hash != followed.hash {
			o.log = true
			a, b := replay(t, w, o, first.trace), replay(t, w, o, first.trace)
			for range 1000 {
				if a.hash != b.hash {
					break
				}
				b = replay(t, w, o, first.trace)
			}
			t.Fatalf("seed %d: %d, %d and %d operations: they differ\nworld: %s\n%s", seed, first.steps, again.steps,
				followed.steps, w.text, firstDifference(a.log, b.log))
		}
		parsed, err := parseTrace(formatTrace(first.trace))
		if err != nil || formatTrace(parsed) != formatTrace(first.trace) {
			t.Fatalf("seed %d: trace %s: %v", seed, formatTrace(first.trace), err)
		}
	}
}

// firstDifference shows where two logs part.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%s\n-%s\n+%s", strings.Join(x[max(0, i-5):i], "\n"), x[i], y[i])
		}
	}
	return "the logs are the same, as far as the shorter goes"
}

// TestReplay runs what -simulate.world and -simulate.trace say.
func TestReplay(t *testing.T) {
	if *worldText == "" {
		t.Skip("-simulate.world says what to run")
	}
	oneThread(t)
	w := made(t, world{name: "of the command line", text: *worldText, page: *pageSize})
	trace, err := parseTrace(*traceText)
	if err != nil {
		t.Fatal(err)
	}
	out := replay(t, w, runOptions{seed: *firstSeed, log: true}, trace)
	t.Logf("%d operations, hash %016x\n%s", out.steps, out.hash, out.log)
	if out.failure != nil {
		t.Error(out.failure)
	}
}

// randomTick is how long an operation takes in random runs, by the store's clock.
const randomTick = int64(time.Millisecond)

// A tally says what a process did.
type tally struct {
	Explored []exploration
	Runs     int
	Steps    int
	CPU      float64 // seconds of the random part
	Failed   string
}

// random runs random worlds, every n-th seed from one on, until the time is over.
func random(t *testing.T, seed, n uint64, until time.Time, out *tally) {
	began := cpuTime()
	for ; time.Now().Before(until); seed += n {
		w := randomWorld(seed)
		o := runOptions{seed: seed, tick: randomTick}
		r := play(t, w, o, newGambler(seed, len(w.machines)))
		out.Runs++
		out.Steps += r.steps
		if r.failure != nil {
			out.Failed = explain(t, w, o, r)
			break
		}
	}
	out.CPU = (cpuTime() - began).Seconds()
}

// TestSimulate draws random worlds; with -simulate.seconds it explores the small ones to the end first.
func TestSimulate(t *testing.T) {
	switch {
	case *part != "":
		oneThread(t)
		var i, n int
		if _, err := fmt.Sscanf(*part, "%d/%d", &i, &n); err != nil {
			t.Fatal(err)
		}
		var out tally
		doPart(t, i, n, &out)
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\n%s%s\n", tallyMark, b)
	case *seconds > 0:
		inParts(t)
	default:
		oneThread(t)
		var out tally
		random(t, *firstSeed, 1, time.Now().Add(fewTime), &out)
		t.Logf("%d random worlds, %d operations, %.0f per CPU second", out.Runs, out.Steps, float64(out.Steps)/out.CPU)
		if out.Failed != "" {
			t.Fatal(out.Failed)
		}
	}
}

// worldsTable is the table of the small worlds, as they were explored.
func worldsTable(explored []exploration) string {
	var b strings.Builder
	b.WriteString("| world | what is done | besides | interleavings | states | operations | longest | whole |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, w := range smallWorlds {
		for _, x := range explored {
			if x.World != w.name {
				continue
			}
			var besides []string
			for _, d := range w.passing {
				besides = append(besides, d.String()+" pass")
			}
			if w.faults != nil {
				besides = append(besides, "one fault")
			}
			if w.crash {
				besides = append(besides, "one crash")
			}
			whole := "yes"
			if w.depth > 0 {
				whole = fmt.Sprintf("to depth %d", w.depth)
			}
			if !x.Whole {
				whole = "no: time was over"
			}
			text := strings.ReplaceAll(w.text, "|", "\\|")
			fmt.Fprintf(&b, "| %s | `%s` | %s | %d | %d | %d | %d | %s |\n", w.name, text, strings.Join(besides, ", "),
				x.Runs, x.States, x.Steps, x.Depth, whole)
		}
	}
	return b.String()
}

const tallyMark = "tally "

// doPart explores every n-th small world, and draws every n-th random one in the time that is left.
func doPart(t *testing.T, i, n int, out *tally) {
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	for k := i; k < len(smallWorlds); k += n {
		w := made(t, smallWorlds[k])
		// At most half the time is for exploring, so that random worlds have the other half.
		left := end.Sub(start)/2 - time.Since(start)
		worlds := (len(smallWorlds) - k + n - 1) / n
		x, failed := explore(t, w, *firstSeed, time.Now().Add(left/time.Duration(worlds)))
		out.Explored = append(out.Explored, x)
		if failed != nil {
			out.Failed = explain(t, w, runOptions{seed: *firstSeed}, *failed)
			return
		}
	}
	random(t, *firstSeed+uint64(i), uint64(n), end, out)
}

// inParts runs a process a core, each a part, and adds up what they did.
func inParts(t *testing.T) {
	n := runtime.NumCPU()
	outs, errs, texts := make([]tally, n), make([]error, n), make([]string, n)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestSimulate$", "-test.timeout=0",
				fmt.Sprintf("-simulate.part=%d/%d", i, n),
				fmt.Sprintf("-simulate.seconds=%v", *seconds), fmt.Sprintf("-simulate.seed=%d", *firstSeed))
			b, err := c.CombinedOutput()
			_, last, ok := strings.Cut(string(b), "\n"+tallyMark)
			line, _, _ := strings.Cut(last, "\n")
			if !ok || json.Unmarshal([]byte(line), &outs[i]) != nil {
				errs[i], texts[i] = fmt.Errorf("part %d: %w", i, err), string(b)
			}
		})
	}
	wg.Wait()
	var sum tally
	operations := 0
	for i, o := range outs {
		if errs[i] != nil {
			t.Errorf("%v\n%s", errs[i], texts[i])
		}
		for _, x := range o.Explored {
			fmt.Println(x)
			operations += x.Steps
			sum.Explored = append(sum.Explored, x)
		}
		sum.Runs += o.Runs
		sum.Steps += o.Steps
		sum.CPU += o.CPU
	}
	if *reportFile != "" {
		if err := replaceTable(*reportFile, "worlds", worldsTable(sum.Explored)); err != nil {
			t.Error(err)
		}
	}
	fmt.Printf("%d small worlds explored, %d operations\n", len(sum.Explored), operations)
	fmt.Printf("%d random worlds, %d operations, %.0f per CPU second\n", sum.Runs, sum.Steps,
		float64(sum.Steps)/max(sum.CPU, 0.001))
	fmt.Printf("%d operations in all, in %.0f s, seed %d\n", operations+sum.Steps, time.Since(start).Seconds(),
		*firstSeed)
	for _, o := range outs {
		if o.Failed != "" {
			t.Error(o.Failed)
		}
	}
}
