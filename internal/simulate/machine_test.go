package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
)

// A machine runs a script against the store, by a clock of its own. Its goroutines wait for the scheduler at every
// request.
type machine struct {
	r             *run
	index         int
	far           bool
	runs          bool       // its commits make runs, and objects of row bitmaps
	rnd           *rand.Rand // of its script
	ids           uint64     // state of the ids that it draws
	rows, commits int64      // that it has made, and tried

	ctx    context.Context
	store  *storage.Store
	tables map[string]*storage.Table // handles that it keeps
	used   map[*storage.Table]int    // how often their tables had been removed when they were used first
	intent *intent                   // of what it is at, where that commits under a name that others use too

	offset time.Duration // of its clock from the true time; the scheduler turns it while the machine waits

	// Guarded by run.mu.
	waiting  []*operation // in their order
	finished bool
	dead     bool
	crashed  bool // what it is at gets no answers any more, until it begins another action
	reborn   bool // it has begun one since, with handles of before

	// Of the scheduler.
	steps int // since its action began
	doing string
}

func newMachine(r *run, index int) *machine {
	m := &machine{r: r, index: index, rnd: rand.New(rand.NewPCG(r.seed, uint64(index))),
		tables: map[string]*storage.Table{}, used: map[*storage.Table]int{}}
	m.ids = (r.seed%idVariants)<<32 | uint64(index+1)<<16
	return m
}

// idVariants is how many sequences of ids there are: few, so that segments which were written before are found again.
const idVariants = 8

func (m *machine) name() string { return machineName(m.index) }

// clock is what the machine takes for the time.
func (m *machine) clock() time.Time {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.r.clock = true
	return time.Now().Add(m.offset)
}

// open makes the machine's handles anew, as a process does that begins.
func (m *machine) open() error {
	o := storage.Options{Now: m.clock}
	if m.runs {
		o.MemtableBytes, o.InlineBitmapBytes = 1, 1
	}
	var err error
	m.store, err = storage.Create(m.ctx, &client{m}, o)
	clear(m.tables)
	return err
}

// ask hands an operation to the scheduler and waits for the answer.
func (m *machine) ask(o *operation) error {
	o.machine = m.index
	m.r.mu.Lock()
	o.by = m.intent
	if m.r.stopped || m.dead {
		m.r.mu.Unlock()
		return errStopped
	}
	if m.crashed {
		if o.kind != opTurn || o.name == turnRenew {
			m.r.mu.Unlock()
			return errStopped
		}
		m.crashed, m.reborn = false, true
	}
	o.done = make(chan struct{})
	at, _ := slices.BinarySearchFunc(m.waiting, o, func(a, b *operation) int {
		if c := a.compare(b); c != 0 {
			return c
		}
		return -1 // behind those like it
	})
	m.waiting = slices.Insert(m.waiting, at, o)
	m.r.mu.Unlock()
	<-o.done
	return o.err
}

// crash ends what the machine is at: nothing that it waits for is carried out.
func (m *machine) crash() {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.crashed = true
	for _, o := range m.waiting {
		o.err = errStopped
		close(o.done)
	}
	m.waiting = nil
}

// at notes what the machine is at, whose commits have a name that others use too, until the end.
func (m *machine) at(i *intent) (end func()) {
	set := func(i *intent) {
		m.r.mu.Lock()
		defer m.r.mu.Unlock()
		m.intent = i
	}
	set(i)
	return func() { set(nil) }
}

// turn waits until the scheduler lets the machine begin something.
func (m *machine) turn(what string) error { return m.ask(&operation{kind: opTurn, name: what}) }

// sleep waits until the true time is d later.
func (m *machine) sleep(d time.Duration) error {
	return m.ask(&operation{kind: opWait, of: -1, until: time.Now().Add(d)})
}

// awaitMachine waits until another machine has ended.
func awaitMachine(other int) func(m *machine) {
	return func(m *machine) {
		if other < len(m.r.machines) && other != m.index {
			_ = m.ask(&operation{kind: opWait, of: other, name: machineName(other)})
		}
	}
}

// reopen makes the handles anew.
func reopen(m *machine) {
	m.do("reopen", func(context.Context) error { return m.open() })
}

// do runs one action of a script. What it returns is noted, and not looked at further: an action that fails has failed.
func (m *machine) do(what string, action func(ctx context.Context) error) {
	if m.turn(what) != nil {
		return
	}
	m.r.mu.Lock()
	reborn := m.reborn
	m.reborn = false
	m.r.mu.Unlock()
	if reborn && !m.begin() {
		return
	}
	err := action(m.ctx)
	m.r.outcome(m, what, err)
}

// begin opens the store, as often as it takes; false: it was ended meanwhile.
func (m *machine) begin() bool {
	for {
		err := m.open()
		switch {
		case err == nil:
			return true
		case errors.Is(err, errStopped) || errors.Is(err, context.Canceled):
			m.r.mu.Lock()
			m.reborn = true // where it crashed, it opens the store with its next action
			m.r.mu.Unlock()
			return false
		case !excused(err):
			m.r.fail(fmt.Errorf("machine %s opens the store: %w", m.name(), err))
			return false
		}
	}
}

// start runs the script in a goroutine of its own.
func (m *machine) start(script func(m *machine)) {
	m.r.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				m.r.fail(fmt.Errorf("machine %s, %s: panic: %v\n%s", m.name(), m.doing, p, debug.Stack()))
			}
			m.r.mu.Lock()
			m.finished = true
			m.r.mu.Unlock()
		}()
		if m.turn("begin") != nil {
			return
		}
		_ = m.begin()
		script(m)
	})
}
