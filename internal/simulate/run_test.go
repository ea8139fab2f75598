package simulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// maxSteps bounds a run, maxActionSteps one action of a machine: what takes longer does not end.
	maxSteps       = 200_000
	maxActionSteps = 20_000
	// maxIdle bounds how often the scheduler lets time pass because nobody asks for anything.
	maxIdle = 1000
)

// A chooser says what happens next. done: it says no more; what is under way ends undisturbed, one machine after the
// other.
type chooser interface {
	choose(r *run) (d decision, done bool)
	// ended is called when the run is over, before anything else is done to its store.
	ended(r *run)
}

// A run is a world that runs once.
type run struct {
	world *world
	seed  uint64
	ctx   context.Context
	ids   idSource
	blobs *blobs
	began time.Time
	ticks int64 // nanoseconds that the steps have taken, where steps take time
	tick  int64

	machines []*machine
	late     []*operation // effects that were put off, in the order in which they were
	model    *model
	steps    int
	done     *operation // that was carried out last
	clock    bool       // somebody has looked at the time since
	trace    []decision
	hash     traceHash
	log      *strings.Builder // nil: nothing is logged

	blocks atomic.Bool // an object may be a sorted table of several blocks

	running sync.WaitGroup
	mu      sync.Mutex // guards what follows and the machines' waiting, finished and dead
	stopped bool
	failure error // the first

	abandoned bool // by the chooser: nothing is to be learnt of it
}

// A result is what came of a run.
type result struct {
	failure error
	steps   int
	trace   []decision
	hash    uint64
	log     string
}

// options of a run.
type runOptions struct {
	seed uint64
	log  bool
	tick int64 // nanoseconds that a step takes by the store's clock
}

// play runs a world in a bubble of its own.
func play(t *testing.T, w *world, o runOptions, c chooser) (out result) {
	var r *run
	synctest.Test(t, func(t *testing.T) {
		r = &run{world: w, seed: o.seed, tick: o.tick, began: time.Now()}
		if o.log {
			r.log = &strings.Builder{}
		}
		defer r.ids.install()()
		out = r.play(c)
	})
	if r.blocks.Load() {
		emptyPools()
	}
	return out
}

// emptyPools empties every sync.Pool. Pebble keeps what writes the blocks of a table in one, with a channel that
// belongs to the bubble in which it was made: to send on it in another bubble is a fatal error.
func emptyPools() {
	runtime.GC() // what a pool has, it keeps for one more
	runtime.GC()
}

func (r *run) play(c chooser) result {
	var cancel func()
	r.ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	r.blobs = newBlobs(r.storeTime)
	r.model = newModel(r)
	r.begin()
	r.schedule(c)
	if c != nil {
		c.ended(r)
	}
	out := result{steps: r.steps, trace: r.trace, hash: uint64(r.hash)}
	r.end(cancel)
	if !r.failed() && !r.abandoned {
		r.model.checkEnd()
		r.end(cancel) // a machine that ran alone at the end waits, where that failed
	}
	out.failure = r.failure
	if r.log != nil {
		out.log = r.log.String()
	}
	return out
}

// storeTime is the time by the store's clock, which dates the objects.
func (r *run) storeTime() time.Time {
	r.clock = true
	return time.Now().Add(time.Duration(r.ticks))
}

// alone runs a script on a machine of its own, while there is no other.
func (r *run) alone(index int, does func(m *machine)) {
	m := newMachine(r, index)
	m.ctx = r.ctx
	r.machines = []*machine{m}
	m.runs = r.world.runs
	m.start(does)
	r.schedule(nil)
}

// begin sets the world up and starts its machines.
func (r *run) begin() {
	r.alone(len(r.world.machines), r.world.setup)
	if r.failed() {
		return
	}
	r.steps, r.machines = 0, nil
	for i, s := range r.world.machines {
		m := newMachine(r, i)
		m.ctx, m.offset, m.far, m.runs = r.ctx, s.clock, s.far, s.runs
		r.machines = append(r.machines, m)
	}
	for i, s := range r.world.machines {
		r.machines[i].start(s.does)
	}
}

// schedule lets one thing happen after the other until all machines have ended or something is wrong.
func (r *run) schedule(c chooser) {
	idle := 0
	for {
		synctest.Wait()
		if r.failed() || r.allEnded() {
			return
		}
		if r.steps >= maxSteps {
			r.fail(fmt.Errorf("%d operations, and no end: %s", r.steps, r.underWay()))
			return
		}
		if !r.anyReady() {
			// Everybody waits for a time, or a timer runs.
			if idle++; idle > maxIdle {
				r.fail(fmt.Errorf("nobody asks for anything, and not all have ended: %s", r.underWay()))
				return
			}
			r.pass(r.nextWait())
			continue
		}
		idle = 0
		if c == nil {
			r.apply(r.plain())
			continue
		}
		d, done := c.choose(r)
		if r.abandoned {
			return
		}
		if done {
			c = nil
			continue
		}
		if r.apply(d) {
			r.trace = append(r.trace, d)
		}
	}
}

// plain is what happens when nobody says otherwise: the first machine goes on.
func (r *run) plain() decision {
	for i, m := range r.machines {
		if pick := m.ready(); pick >= 0 {
			return decision{machine: i, pick: pick}
		}
	}
	panic("simulate: nothing is ready")
}

// ready returns the first operation of the machine that can be carried out; -1: there is none.
func (m *machine) ready() int {
	if m.dead {
		return -1
	}
	return slices.IndexFunc(m.waiting, m.isReady)
}

func (m *machine) isReady(o *operation) bool {
	if o.kind == opRemove {
		return m.r.quiet(m)
	}
	if o.kind == opWait && o.of >= 0 {
		other := m.r.machines[o.of]
		return other.finished || other.dead
	}
	return o.kind != opWait || !o.until.After(time.Now())
}

// quiet reports whether no machine but m is in the midst of something.
func (r *run) quiet(m *machine) bool {
	for _, other := range r.machines {
		if other == m || other.dead || other.finished {
			continue
		}
		for _, o := range other.waiting {
			if o.kind != opTurn && o.kind != opWait && o.kind != opRemove || o.name == turnRenew {
				return false
			}
		}
	}
	return true
}

func (r *run) anyReady() bool {
	return slices.ContainsFunc(r.machines, func(m *machine) bool { return m.ready() >= 0 })
}

// allEnded reports whether every machine has ended or stopped.
func (r *run) allEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.machines, func(m *machine) bool {
		return !m.dead && !(m.finished &&
			len(m.waiting) == 0)
	})
}

// nextWait is how long it takes until something that waits for a time is ready.
func (r *run) nextWait() time.Duration {
	next := time.Duration(0)
	for _, m := range r.machines {
		for _, o := range m.waiting {
			if d := time.Until(o.until); !m.dead && o.kind == opWait && o.of < 0 && (next == 0 || d < next) {
				next = d
			}
		}
	}
	if next <= 0 {
		next = time.Second
	}
	return next
}

func (r *run) underWay() string {
	var out []string
	for _, m := range r.machines {
		if !m.finished && !m.dead {
			out = append(out, fmt.Sprintf("machine %s, %s", m.name(), m.doing))
		}
	}
	return strings.Join(out, "; ")
}

// pass lets time pass for everybody. Goroutines that a timer wakes draw their ids of a machine that is none.
func (r *run) pass(d time.Duration) {
	timers := uint64(r.steps)<<8 | 0xff
	// nothing else tells the race detector that a goroutine which is woken runs after all that was done before: see
	// clock and ask
	r.mu.Lock()
	r.ids.current = &timers
	r.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
}

// apply lets a decision happen; false: it has no meaning now, and nothing does.
func (r *run) apply(d decision) bool {
	if d.action == letPass {
		r.logf("%s", d)
		r.pass(d.by)
		return true
	}
	if d.action == landLate {
		return r.land(d.pick)
	}
	if d.machine >= len(r.machines) || r.machines[d.machine].dead {
		return false
	}
	m := r.machines[d.machine]
	switch d.action {
	case stopOne:
		if m.finished {
			return false
		}
		r.logf("%s", d)
		m.dead = true
	case restart:
		if m.finished {
			return false
		}
		r.logf("%s", d)
		r.ids.current = &m.ids
		m.crash()
	case turnClock:
		r.logf("%s", d)
		m.offset = d.by
	case carryOut:
		if d.pick >= len(m.waiting) || !m.isReady(m.waiting[d.pick]) {
			return false
		}
		o := m.waiting[d.pick]
		if d.fault != noFault && !slices.Contains(o.kind.faults(), d.fault) {
			return false
		}
		m.waiting = slices.Delete(m.waiting, d.pick, d.pick+1)
		r.ids.current = &m.ids
		r.carryOut(m, o, d.fault)
		if m.steps++; m.steps > maxActionSteps {
			r.fail(fmt.Errorf("machine %s, %s: %d operations, and no end", m.name(), m.doing, m.steps))
		}
		close(o.done)
	}
	return true
}

// carryOut carries out an operation and looks at what it has done.
func (r *run) carryOut(m *machine, o *operation, f fault) {
	r.steps++
	r.ticks += r.tick
	if o.kind == opTurn {
		m.steps, m.doing = 0, o.name
	}
	r.hash.add(o, f)
	if r.blobs.perform(o, f, r.page()) {
		r.late = append(r.late, o)
	}
	if o.kind == opRemove {
		// What was asked of the table before is not done any more either.
		r.late = slices.DeleteFunc(r.late, func(l *operation) bool { return strings.HasPrefix(l.name, o.name) })
		r.ticks += int64(time.Second) // who does that by hand takes longer than the store's clock to tick
		r.model.removed(strings.Split(o.name, "/")[1])
	}
	r.done = o
	if r.log != nil {
		r.logOperation(m, o, f)
	}
	if o.changed {
		r.model.changed(o)
	}
}

func (r *run) page() int {
	if r.world.page == 0 {
		return 1000
	}
	return r.world.page
}

// land carries out an effect that was put off.
func (r *run) land(i int) bool {
	if i >= len(r.late) {
		return false
	}
	o := &operation{kind: r.late[i].kind, machine: r.late[i].machine, name: r.late[i].name, data: r.late[i].data,
		by: r.late[i].by}
	r.late = slices.Delete(r.late, i, i+1)
	r.hash.add(o, noFault)
	r.blobs.perform(o, noFault, 0)
	r.done = o
	r.logf("late, of %s: %s", machineName(o.machine), r.describe(o))
	if o.changed {
		r.model.strayed[o.name] = true
		r.model.changed(o)
	}
	return true
}

// end lets every goroutine end: what still waits is answered that its machine has stopped.
func (r *run) end(cancel func()) {
	cancel()
	r.mu.Lock()
	r.stopped = true
	for _, m := range r.machines {
		for _, o := range m.waiting {
			o.err = errStopped
			close(o.done)
		}
		m.waiting = nil
	}
	r.mu.Unlock()
	r.running.Wait()
	synctest.Wait()
}

// fail notes what is wrong; the first counts.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil && !r.stopped {
		r.failure = err
		if r.log != nil {
			fmt.Fprintf(r.log, "WRONG: %v\n", err)
		}
	}
}

func (r *run) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure != nil
}

// outcome notes what an action returned.
func (r *run) outcome(m *machine, what string, err error) {
	switch {
	case errors.Is(err, errStopped) || errors.Is(err, context.Canceled):
	case err == nil:
		r.logf("%s %s: done", m.name(), what)
	default:
		r.logf("%s %s: %v", m.name(), what, err)
	}
}
