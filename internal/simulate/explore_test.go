package simulate

import (
	"fmt"
	"testing"
	"time"
)

// An explorer runs a world again and again, in every order that matters, and in none twice.
//
// Two operations of different machines are independent when neither changes what the other sees; then one order of the
// two says all that the other would. So, in each run, the explorer looks for operations that depend on each other and
// that nothing else orders, and has the other order tried later (dynamic partial-order reduction, Flanagan and
// Godefroid); orders that are known to come to the same are not tried again (sleep sets, Godefroid). All that one
// machine does depends on all else that it does: where it waits for several requests at a time, they come in the order
// of their names.
type explorer struct {
	t     *testing.T
	world *world
	seed  uint64
	until time.Time // the end, when it is not through before; zero: none

	nodes []*node
	at    int          // in nodes, of the run under way
	cut   bool         // the run under way would repeat another
	left  []transition // what could have happened yet when the run under way ended

	stats exploration
}

// An exploration says how much was explored.
type exploration struct {
	World  string
	Runs   int // interleavings, that end
	Pruned int // that were begun, and would have repeated others
	Steps  int // operations in all of them
	States int // nodes of the tree of all interleavings
	Depth  int // of the longest
	Whole  bool
}

func (x exploration) String() string {
	how := "all"
	if !x.Whole {
		how = "NOT all"
	}
	return fmt.Sprintf("%-26s %s interleavings: %d (and %d left as repeating others), %d states, %d operations, "+
		"at most %d in one",
		x.World, how, x.Runs, x.Pruned, x.States, x.Steps, x.Depth)
}

// A node is a moment of a run: what could happen, and what of it was or will be tried.
type node struct {
	choices []choice
	current int          // of choices
	todo    map[int]bool // actors
	tried   []bool       // by choice
	sleep   []transition // to be left out: in another run they come first, with nothing else that they depend on
	made    transition   // what the current choice did
	// by actor: 1 more than the last node whose transition comes before this one's, whatever the order
	hb []int
}

// A choice is a decision, by an actor: a machine, a length of time that passes, or an effect that was put off.
type choice struct {
	actor    int
	decision decision
	key      string
}

// A transition is what a choice did.
type transition struct {
	choice
	op    *operation // nil: time passed
	clock bool       // it depends on the time
}

// explore runs a world in every order, or until the time is over. It returns the first run that fails.
func explore(t *testing.T, w *world, seed uint64, until time.Time) (exploration, *result) {
	x := &explorer{t: t, world: w, seed: seed, until: until, stats: exploration{World: w.name}}
	for {
		x.at, x.cut, x.left = 0, false, nil
		out := play(t, w, runOptions{seed: seed}, x)
		x.stats.Steps += out.steps
		if out.failure != nil {
			x.stats.Runs++
			return x.stats, &out
		}
		x.finish()
		if x.cut {
			x.stats.Pruned++
		} else {
			x.stats.Runs++
		}
		if !x.back() {
			x.stats.Whole = true
			return x.stats, nil
		}
		if !until.IsZero() && time.Now().After(until) {
			return x.stats, nil
		}
	}
}

// choose repeats what is decided and goes on from there.
func (x *explorer) choose(r *run) (decision, bool) {
	x.note(r)
	if x.at == len(x.nodes) {
		if !x.grow(r) {
			x.cut = true
			r.abandoned = true
			return decision{}, true
		}
	}
	n := x.nodes[x.at]
	x.at++
	r.clock, r.done = false, nil
	c := n.choices[n.current]
	if d := c.decision; d.action == carryOut && (d.pick >= len(r.machines[d.machine].waiting) ||
		r.machines[d.machine].waiting[d.pick].key() != c.key) {
		panic(fmt.Sprintf("world %s: run differs from the one before at step %d: %s is not there", x.world.name, x.at,
			c.key))
	}
	return c.decision, false
}

// ended notes what the last choice did.
func (x *explorer) ended(r *run) {
	if x.cut {
		return
	}
	x.note(r)
	x.left = nil
	for _, c := range x.choices(r) {
		switch c.decision.action {
		case letPass:
			x.left = append(x.left, transition{choice: c, clock: true})
		case landLate:
			o := *r.late[c.decision.pick]
			o.fault, o.changed = noFault, true
			x.left = append(x.left, transition{choice: c, op: &o, clock: true})
		}
	}
}

// note keeps what the choice before did.
func (x *explorer) note(r *run) {
	if x.at == 0 {
		return
	}
	n := x.nodes[x.at-1]
	if n.made.key != "" {
		return // of a run before
	}
	c := n.choices[n.current]
	n.made = transition{choice: c, op: r.done, clock: r.clock || c.decision.action == letPass || r.done != nil &&
		r.done.changed}
}

// finish notes the last choice of a run and has the orders tried that its transitions ask for.
func (x *explorer) finish() {
	x.stats.Depth = max(x.stats.Depth, len(x.nodes))
	for i, n := range x.nodes {
		if n.hb == nil && n.made.key != "" {
			x.races(n, i)
		}
	}
	for _, l := range x.left {
		x.races(&node{made: l}, len(x.nodes))
	}
}

// grow adds a node for the moment in which the run is; false: whatever happens now repeats another run.
func (x *explorer) grow(r *run) bool {
	n := &node{choices: x.choices(r), current: -1, todo: map[int]bool{}}
	n.tried = make([]bool, len(n.choices))
	last := -1
	if x.at > 0 {
		before := x.nodes[x.at-1]
		last = before.choices[before.current].actor
		for _, s := range before.sleep {
			if !x.depend(s, before.made) {
				n.sleep = append(n.sleep, s)
			}
		}
	}
	// The actor of the last operation goes on, else the first that can: few changes of actor.
	for i, c := range n.choices {
		if !n.asleep(c) && (n.current < 0 || c.actor == last && n.choices[n.current].actor != last) {
			n.current = i
		}
	}
	if n.current < 0 {
		return false
	}
	n.todo[n.choices[n.current].actor] = true
	x.nodes = append(x.nodes, n)
	x.stats.States++
	return true
}

func (n *node) asleep(c choice) bool {
	for _, s := range n.sleep {
		if s.actor == c.actor && s.key == c.key && s.decision.fault == c.decision.fault {
			return true
		}
	}
	return false
}

// choices are what can happen now.
func (x *explorer) choices(r *run) []choice {
	var out []choice
	faulty := false
	passed := map[time.Duration]int{}
	for _, n := range x.nodes[:x.at] {
		d := n.choices[n.current].decision
		faulty = faulty || d.fault != noFault || d.action == restart
		if d.action == letPass {
			passed[d.by]++
		}
	}
	for i, m := range r.machines {
		for pick, o := range m.waiting {
			// Of what a machine asks for at the same time the first in their order comes first: TestSimulate draws
			// other orders.
			if m.dead || pick != m.ready() {
				continue
			}
			key := o.key()
			out = append(out, choice{i, decision{machine: i, pick: pick}, key})
			if faulty {
				continue
			}
			for _, f := range x.world.faults {
				for _, g := range o.kind.faults() {
					if f == g {
						out = append(out, choice{i, decision{machine: i, pick: pick, fault: f}, key})
					}
				}
			}
			if x.world.crash && o.kind != opTurn && o.kind != opWait {
				out = append(out, choice{i, decision{action: restart, machine: i}, "crash"})
			}
		}
	}
	for i, by := range x.world.passing {
		if passed[by]--; passed[by] < 0 {
			out = append(out, choice{len(r.machines) + i, decision{action: letPass, by: by}, "+" + by.String()})
		}
	}
	for i, o := range r.late {
		out = append(out, choice{len(r.machines) + len(x.world.passing), decision{action: landLate, pick: i},
			"late " + o.key()})
	}
	return out
}

func (x *explorer) actors() int { return len(x.world.machines) + len(x.world.passing) + 1 }

// depend reports whether the order of two transitions may matter.
func (x *explorer) depend(a, b transition) bool {
	switch {
	case a.actor == b.actor:
		return true
	case a.op == nil || b.op == nil: // time passes
		return a.clock && b.clock
	case a.op.kind == opRemove || b.op.kind == opRemove: // it waits for everybody
		return true
	case a.op.kind == opWait && a.op.of == b.actor || b.op.kind == opWait && b.op.of == a.actor:
		return true
	case a.op.fault.late() && b.decision.action == landLate, b.op.fault.late() && a.decision.action == landLate:
		return true
	}
	return dependent(a.op, b.op)
}

// races finds the transitions before that of a node, the first i, that it depends on and that nothing else orders
// before it, and has its actor tried first there.
func (x *explorer) races(n *node, i int) {
	n.hb = make([]int, x.actors())
	for j := i - 1; j >= 0; j-- {
		b := x.nodes[j]
		if !x.depend(b.made, n.made) {
			continue
		}
		// A table is removed at moments at which nobody is at anything, and these lie before what was done last.
		waits := n.made.op != nil && n.made.op.kind == opRemove
		if (j >= n.hb[b.made.actor] || waits) && b.made.actor != n.made.actor && (x.world.depth == 0 ||
			j < x.world.depth) {
			b.try(n.made.actor)
		}
		for a, at := range b.hb {
			n.hb[a] = max(n.hb[a], at)
		}
		n.hb[b.made.actor] = max(n.hb[b.made.actor], j+1)
	}
}

// try has an actor tried at a node, or, where it could do nothing yet, all.
func (n *node) try(actor int) {
	for _, c := range n.choices {
		if c.actor == actor {
			n.todo[actor] = true
			return
		}
	}
	for _, c := range n.choices {
		n.todo[c.actor] = true
	}
}

// back decides what is tried next; false: everything was.
func (x *explorer) back() bool {
	for len(x.nodes) > 0 {
		n := x.nodes[len(x.nodes)-1]
		if n.current >= 0 && n.made.key != "" {
			n.tried[n.current] = true
			n.sleep = append(n.sleep, n.made)
		}
		for i, c := range n.choices {
			if n.todo[c.actor] && !n.tried[i] && !n.asleep(c) {
				n.current, n.made, n.hb = i, transition{}, nil
				return true
			}
		}
		x.nodes = x.nodes[:len(x.nodes)-1]
	}
	return false
}
