package simulate

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A gambler draws what happens next, from a seed. How it draws differs from run to run, for no one way finds
// everything: how long a machine goes on before another has a turn, how often the adversary is there, how long time
// stands still.
type gambler struct {
	rnd *rand.Rand

	stay     float64 // the probability that the same machine goes on
	faults   float64 // that an operation meets a fault
	passes   float64 // that time passes
	stops    float64 // that a machine stops for ever
	restarts float64 // that a machine crashes and begins anew
	turns    float64 // that a clock is turned
	lands    float64 // that an effect that was put off happens
	passing  []time.Duration
	last     int
	priority []int // of machines: the highest that can goes on; nil: any
	changes  float64
}

// lengths of time that matter, of seconds to more than any lease lasts.
var lengths = []time.Duration{time.Minute, time.Hour, 23 * time.Hour, 25 * time.Hour, 49 * time.Hour,
	8 * 24 * time.Hour}

func newGambler(seed uint64, machines int) *gambler {
	g := &gambler{rnd: rand.New(rand.NewPCG(seed, 0x73696d)), last: -1}
	of := func(p ...float64) float64 { return p[g.rnd.IntN(len(p))] }
	g.stay = of(0, 0.5, 0.8, 0.9, 0.97)
	g.faults = of(0, 0, 0, 0.003, 0.02, 0.1)
	g.passes = of(0, 0.002, 0.01, 0.03)
	g.stops = of(0, 0, 0.002)
	g.restarts = of(0, 0, 0.002, 0.01)
	g.turns = of(0, 0, 0.005)
	g.lands = of(0.01, 0.1)
	g.passing = lengths
	if g.rnd.IntN(3) == 0 {
		g.priority = g.rnd.Perm(machines)
		g.changes = of(0.01, 0.03, 0.1)
	}
	return g
}

func (*gambler) ended(*run) {}

func (g *gambler) chance(p float64) bool { return p > 0 && g.rnd.Float64() < p }

func (g *gambler) choose(r *run) (decision, bool) {
	switch {
	case g.chance(g.passes):
		return decision{action: letPass, by: g.passing[g.rnd.IntN(len(g.passing))]}, false
	case len(r.late) > 0 && g.chance(g.lands):
		return decision{action: landLate, pick: g.rnd.IntN(len(r.late))}, false
	case g.chance(g.stops):
		return decision{action: stopOne, machine: g.rnd.IntN(len(r.machines))}, false
	case g.chance(g.restarts):
		return decision{action: restart, machine: g.rnd.IntN(len(r.machines))}, false
	case g.chance(g.turns):
		by := g.passing[g.rnd.IntN(len(g.passing))]
		if g.rnd.IntN(2) == 0 {
			by = -by
		}
		return decision{action: turnClock, machine: g.rnd.IntN(len(r.machines)), by: by}, false
	}
	m := g.machine(r)
	g.last = m.index
	d := decision{machine: m.index, pick: m.ready()}
	if n := len(m.waiting); n > 1 {
		if at := g.rnd.IntN(n); m.isReady(m.waiting[at]) {
			d.pick = at
		}
	}
	if kinds := m.waiting[d.pick].kind.faults(); kinds != nil && g.chance(g.faults) {
		d.fault = kinds[g.rnd.IntN(len(kinds))]
	}
	return d, false
}

// machine draws who goes on, of those that can.
func (g *gambler) machine(r *run) *machine {
	if g.priority != nil {
		if g.chance(g.changes) {
			// The one that would go on falls behind all others.
			if at := g.first(r); at >= 0 {
				who := g.priority[at]
				g.priority = append(slices.Delete(g.priority, at, at+1), who)
			}
		}
		return r.machines[g.priority[g.first(r)]]
	}
	if g.last >= 0 && r.machines[g.last].ready() >= 0 && g.chance(g.stay) {
		return r.machines[g.last]
	}
	n := 0
	for _, m := range r.machines {
		if m.ready() >= 0 {
			n++
		}
	}
	at := g.rnd.IntN(n)
	for _, m := range r.machines {
		if m.ready() < 0 {
			continue
		}
		if at == 0 {
			return m
		}
		at--
	}
	panic("simulate: nothing is ready")
}

// first returns where in the priorities the first machine is that can go on.
func (g *gambler) first(r *run) int {
	return slices.IndexFunc(g.priority, func(i int) bool { return r.machines[i].ready() >= 0 })
}
