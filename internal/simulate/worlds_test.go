package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A world is a store, machines that use it, and what may befall them.
type world struct {
	name string
	// text is what the machines do: see script.go.
	text string
	// page is how many objects a listing gives at a time. Default 1000.
	page int
	// passing are lengths of time, of which each passes once, at any moment: exhaustive exploration tries all. Random
	// runs draw of others.
	passing []time.Duration
	// faults that an exhaustive exploration tries, at most one of them in a run. Random runs draw of all.
	faults []fault
	// crash: it also tries that a machine crashes in the midst of something, and goes on with its next action. That
	// counts as a fault.
	crash bool
	// depth bounds how far exhaustive exploration branches; 0: to the end.
	depth int

	setup    func(m *machine)
	runs     bool // of setup
	machines []script
}

// A script is what a machine does.
type script struct {
	does  func(m *machine)
	clock time.Duration // how far its clock is off
	far   bool          // requests take long for it
	runs  bool          // its commits make runs, and objects of row bitmaps
}

// grace is the grace period of every world's gc.
const grace = 24 * time.Hour

// made returns the world ready to run.
func (w world) made() (*world, error) {
	var err error
	var setup script
	setup, w.machines, err = parseWorld(w.text)
	w.setup, w.runs = setup.does, setup.runs
	return &w, err
}

// smallWorlds are explored exhaustively.
var smallWorlds = []world{
	{
		name: "slow writer", text: "append t | append t | gc", // the segment is old when it is committed
		passing: []time.Duration{grace + time.Hour},
	},
	{name: "compact and erase", text: "append t; append t | compact t | erase t"},
	{
		name: "slow writer, two gcs", text: "append t | append t | gc | gc",
		passing: []time.Duration{grace + time.Hour}, depth: 60,
	},
	{
		name: "slow clock expires", text: "append t; overwrite t | -48h expire t 1 | gc",
		passing: []time.Duration{grace + time.Hour},
	},
	{
		name: "expired under a commit", text: "append t | append t | append t; append t; expire t 1; gc",
		passing: []time.Duration{grace + time.Hour},
	},
	{name: "fast clock purges", text: "append t | read t 1h | +48h overwrite t; expire t 1; purge t"},
	{
		name: "lease runs out", text: "append t; append u | read t 1h 1 | overwrite t; expire t 1; purge t",
		passing: []time.Duration{2 * time.Hour},
	},
	{
		name: "lease under gc", text: "append t; append t | read t 160h | expire t 1; gc",
		passing: []time.Duration{grace + time.Hour},
	},
	{name: "lease under purge", text: "append t | read t 1h | overwrite t; expire t 1 | purge t", depth: 60},
	{
		name: "branch under gc", text: "append t | branch t x | overwrite t; expire t 1; gc",
		passing: []time.Duration{grace + time.Hour},
	},
	{name: "branch under purge", text: "append t | branch t x; readbranch t x | overwrite t; expire t 1; purge t"},
	{name: "table made anew", text: "append t | append t; await B; append t | remove t; append t; append t"},
	{name: "handle of a removed table", text: "append t | read t; append t; read t | remove t; append t"},
	{name: "segment of two tables", text: "append t; append u | share t u | overwrite t; expire t 1; purge t"},
	{name: "two writers", text: "append t | append t | append t"},
	{name: "three writers", text: "append t | append t | append t | append t", depth: 60},
	{
		name: "slow writer, commit before the fence", text: "append t | append t | append t | gc",
		passing: []time.Duration{grace + time.Hour},
	},
	{name: "first commits", text: " | append t | append t"},
	{name: "first commit under gc", text: "append t | append u | gc", passing: []time.Duration{grace + time.Hour}},
	{name: "writers, one fault", text: "append t | append t | append t", faults: allFaults},
	{name: "writers of runs, one fault", text: "runs append t | runs append t | runs append t", faults: allFaults},
	{name: "deletes under gc", text: "runs append t | runs delete t | gc", passing: []time.Duration{grace + time.Hour}},
	{name: "layer and rewrite", text: "append t | layer t x | rewrite t"},
	{name: "layers under gc", text: "append t | layer t x | gc", passing: []time.Duration{grace + time.Hour}},
	{name: "gc, one fault", text: "append t; overwrite t; expire t 1 | append t | gc", faults: allFaults,
		passing: []time.Duration{grace + time.Hour}},
	{name: "compact and delete", text: "append t; append t | compact t | delete t"},
	{name: "compact and list", text: "append t; list t x; append t | compact t | list t x"},
	{name: "compact and layer", text: "append t; layer t x; append t | runs compact t | runs layer t x"},
	{name: "two compactions", text: "append t; append t | compact t | compact t"},
	{name: "compact under gc", text: "append t; append t | compact t | gc",
		passing: []time.Duration{grace + time.Hour}},
	{name: "compact, one fault", text: "append t; append t | compact t | append t", faults: allFaults},
	{name: "compact, one crash", text: "append t; append t; layer t x | compact t; compact t | delete t", crash: true},
	{name: "erase and append", text: "append t | erase t | append t"},
	{name: "erase and a lease", text: "append t | erase t | read t 1h"},
	{
		name: "erase and a lease that ends", text: "append t; append t | erase t | read t 1h | gc 1h",
		passing: []time.Duration{2 * time.Hour},
	},
	{name: "erase and a branch", text: "append t | erase t; eraseall t | branch t x"},
	{name: "erase from history", text: "append t; overwrite t | erase t 1 | append t"},
	{name: "erase from history, one crash",
		text: "append t; layer t x; overwrite t; expire t 1 | purge t; eraseall t 1; eraseall t 1", crash: true},
	{name: "erase what a branch held",
		text: "append t; branch t x; overwrite t; expire t 1; sleep 30h; gc | unbranch t x; eraseall t 1 | append t"},
	{name: "erase, one crash", text: "append t; layer t x | eraseall t; erase t | append t", crash: true},
	{name: "repair and delete", text: "append t; damage t | repair t | delete t"},
	{name: "repair and layer", text: "append t; layer t x; damage t | repair t | layer t x"},
	{name: "repair and list", text: "append t; list t x; damage t | repair t | list t x"},
	{name: "repair and erase", text: "append t; append t; damage t | repair t | erase t"},
	{name: "repair and compact", text: "append t; append t; damage t | repair t | compact t"},
	{name: "repair under gc", text: "append t; damage t | repair t | overwrite t; expire t 1; gc",
		passing: []time.Duration{grace + time.Hour}},
	{name: "repair of what is whole, under gc", text: "append t; overwrite t | repair t | expire t 1; gc",
		passing: []time.Duration{grace + time.Hour}},
	{name: "two repairs, one fault", text: "append t; damage t | repair t | repair t", faults: allFaults},
	{name: "repair, one crash", text: "append t; layer t x; damage t | repair t; repair t | delete t", crash: true},
	{name: "one dump twice", text: " | dump t | dump t"},
	{name: "ingest and overwrite, one fault", text: "ingest t | ingest t | replace t", faults: allFaults},
	{name: "expire, gc and a lease, one fault", text: "append t; overwrite t | read t 160h 1 | expire t 1; gc 1h",
		faults:  allFaults,
		passing: []time.Duration{2 * time.Hour}},
}

var allFaults = []fault{faultFail, faultLost, faultLate, faultTwice, faultAgain}

// randomWorld draws a world from a seed.
func randomWorld(seed uint64) *world {
	rnd := rand.New(rand.NewPCG(seed, 0x776f726c64))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	draw := func(of []weighted) string {
		sum := 0
		for _, o := range of {
			sum += o.weight
		}
		at := rnd.IntN(sum)
		for _, o := range of {
			if at -= o.weight; at < 0 {
				return o.text
			}
		}
		panic("simulate: no weight")
	}
	action := func() string {
		text := draw(randomActions)
		text = strings.ReplaceAll(text, "TABLE", pick("t", "t", "t", "u"))
		text = strings.ReplaceAll(text, "PART", pick("", "", "a", "b"))
		text = strings.ReplaceAll(text, "LEASE", pick("1h", "30h", "160h"))
		text = strings.ReplaceAll(text, "NAME", pick("x", "y"))
		return text
	}
	runs := ""
	if rnd.IntN(2) == 0 {
		runs = "runs "
	}
	parts := [][]string{{runs + "append t", "append u"}}
	for range rnd.IntN(4) {
		parts[0] = append(parts[0], draw(setupActions))
	}
	for range 2 + rnd.IntN(3) {
		var actions []string
		for range 2 + rnd.IntN(6) {
			actions = append(actions, action())
		}
		if rnd.IntN(4) == 0 {
			actions[0] = "far " + actions[0]
		}
		if rnd.IntN(3) == 0 {
			actions[0] = pick("+48h", "-48h", "+1h", "-1h", "+700h", "-700h") + " " + actions[0]
		}
		actions[0] = runs + actions[0]
		parts = append(parts, actions)
	}
	w := world{name: fmt.Sprint("random ", seed), text: joinWorld(parts), page: []int{1, 2, 5, 1000}[rnd.IntN(4)]}
	out, err := w.made()
	if err != nil {
		panic(fmt.Sprintf("simulate: %v", err)) // randomActions cannot be read
	}
	return out
}

type weighted struct {
	weight int
	text   string
}

var setupActions = []weighted{{3, "append t"}, {1, "overwrite t"}, {1, "delete t"}, {1, "rewrite t"}, {1, "branch t z"},
	{1, "expire t 1"}, {1, "layer t x"}, {1, "list t x"}}

// randomActions are what machines of random worlds do, and how often.
var randomActions = []weighted{
	{10, "append TABLE PART"}, {3, "overwrite TABLE PART"}, {4, "delete TABLE"}, {4, "rewrite TABLE PART"},
	{6, "gc"}, {1, "gc 1h"}, {3, "expire TABLE 1"}, {2, "expire TABLE 2"}, {1, "purge TABLE"},
	{3, "read TABLE"}, {3, "read TABLE LEASE"}, {2, "read TABLE LEASE 2"},
	{2, "branch TABLE NAME"}, {1, "unbranch TABLE NAME"}, {2, "reopen"},
	{1, "share t u"}, {1, "remove TABLE"}, {2, "endlease TABLE"}, {1, "readbranch TABLE NAME"},
	{3, "layer TABLE NAME"}, {1, "merge TABLE NAME"}, {1, "drop TABLE NAME"}, {2, "list TABLE NAME"},
	{2, "compact TABLE"}, {1, "erase TABLE"}, {1, "eraseall TABLE 1"}, {2, "damage TABLE"}, {2, "repair TABLE"},
	{1, "ingest TABLE"}, {1, "dump TABLE"}, {1, "ingest v a"}, {1, "replace v b"}, {1, "dump w"}, {1, "replace w"}, {1,
		"compact w"},
}
