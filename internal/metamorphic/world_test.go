package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// A world is a table, the model of it, and what draws.
type world struct {
	ctx  context.Context
	rnd  *rand.Rand
	dir  string // for dumps, and for the store where it is a local one
	opts Options

	// keyless: the table has no session key, and its rows stay in the order in which they were ingested: that of their
	// numbers.
	keyless bool

	open    func() (object.Store, error)
	stores  []*storage.Store // that look at the same objects: processes
	tables  []*storage.Table // of each
	states  map[uint64]*state
	newest  uint64
	oldest  uint64 // not expired
	nextRow int64
	files   int
	log     []string

	recorder *usage.Writer // of what is read
	rowsRead uint64        // that were given, of which it must know
}

// errSkip is returned by an operation that has nothing to do it to.
var errSkip = errors.New("nothing to do")

// Options say how long and on what to run.
type Options struct {
	Steps int
	// Local: on a directory, as two processes would share it; else in memory, which is quicker.
	Local bool
	// Open, when it is set, opens the same objects, none at first, each time that it is called.
	Open func() (object.Store, error)
	// Dir is an empty directory, for dumps and the store.
	Dir string
	// Done, when it is set, counts the operations that had something to do, by name.
	Done map[string]int
	// Other, when it is set, runs a command of Other in another process, with arguments. Default: there are none.
	Other func(args ...string) error
}

const tableName = "t"

var allDays = []string{"2026-11-01", "2026-11-02", "2026-11-03"}

// Run does the steps that a seed says and returns the first difference, or error, with all that was done before.
func Run(ctx context.Context, seed uint64, opts Options) (err error) {
	w := &world{
		ctx: ctx, rnd: rand.New(rand.NewPCG(seed, 0x6d6f7270)), dir: opts.Dir, opts: opts, states: map[uint64]*state{},
		oldest:  1,
		keyless: seed%3 == 0,
	}
	step := 0
	defer func() {
		for _, s := range w.stores {
			err = errors.Join(err, s.Close())
		}
		if err != nil {
			err = fmt.Errorf("seed %d, step %d: %w\n%s", seed, step, err, strings.Join(w.log, "\n"))
		}
	}()
	memory := object.NewMemory()
	w.open = func() (object.Store, error) { return memory, nil }
	switch {
	case opts.Local:
		w.open = w.openLocal
	case opts.Open != nil:
		w.open = opts.Open
	}
	for range 2 {
		w.stores, w.tables = append(w.stores, nil), append(w.tables, nil)
		if err := w.reopen(len(w.stores) - 1); err != nil {
			return err
		}
	}
	if err := w.record(); err != nil {
		return err
	}
	if err := w.do(operations[0]); err != nil { // an ingest
		return err
	}
	for step = 1; step < opts.Steps; step++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.do(w.drawOperation()); err != nil {
			return err
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return w.checkAll()
}

// do runs an operation, which may have nothing to do.
func (w *world) do(o operation) error {
	w.log = append(w.log, o.name)
	switch err := o.run(w); {
	case errors.Is(err, errSkip):
		w.log = w.log[:len(w.log)-1]
	case err != nil:
		return fmt.Errorf("%s: %w", o.name, err)
	case w.opts.Done != nil:
		w.opts.Done[o.name]++
	}
	return nil
}

// note says what the operation under way is about.
func (w *world) note(format string, args ...any) {
	w.log = append(w.log, "  "+fmt.Sprintf(format, args...))
}

// reopen makes a store that knows nothing.
func (w *world) reopen(i int) error {
	if s := w.stores[i]; s != nil {
		if err := s.Close(); err != nil {
			return err
		}
	}
	blobs, err := w.open()
	if err != nil {
		return err
	}
	if w.stores[i], err = storage.Create(w.ctx, blobs, storage.Options{MinKeyTableRows: 1}); err != nil {
		return err
	}
	w.tables[i], err = w.stores[i].NewTable(w.ctx, tableName)
	return err
}

func (w *world) openLocal() (object.Store, error) { return object.Open(filepath.Join(w.dir, "store")) }

// store and table return one of the processes'.
func (w *world) store() *storage.Store { return w.stores[w.rnd.IntN(len(w.stores))] }
func (w *world) table() *storage.Table { return w.tables[w.rnd.IntN(len(w.tables))] }

// latest returns the model of the newest snapshot. It must not be written to: clone it.
func (w *world) latest() *state {
	if w.newest == 0 {
		return newState()
	}
	return w.states[w.newest]
}

// commit says what the snapshot that an operation made stands for. Snapshots between it and the one before are not
// known: there must be none.
func (w *world) commit(number uint64, s *state) error {
	if number != w.newest+1 {
		return fmt.Errorf("it made snapshot %d after %d", number, w.newest)
	}
	w.newest = number
	w.states[number] = s
	w.note("snapshot %d: %d rows", number, len(s.rows))
	return nil
}

// file writes a file with a name of its own.
func (w *world) file(suffix, text string) (string, error) {
	w.files++
	path := filepath.Join(w.dir, fmt.Sprintf("file-%d%s", w.files, suffix))
	return path, os.WriteFile(path, []byte(text), 0o666)
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// draw returns one of a list that is not empty.
func (w *world) draw(of []string) string { return of[w.rnd.IntN(len(of))] }

// shuffled returns the list in another order.
func shuffled[T any](w *world, of []T) []T {
	out := slices.Clone(of)
	w.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func pick[T any](w *world, of ...T) T { return of[w.rnd.IntN(len(of))] }

// readable returns the numbers of the snapshots that must be readable: those not expired, and those that a branch
// keeps.
func (w *world) readable() []uint64 {
	var out []uint64
	for n := uint64(1); n <= w.newest; n++ {
		if n >= w.oldest || w.pinned(n) {
			out = append(out, n)
		}
	}
	return out
}

func (w *world) pinned(n uint64) bool {
	for _, b := range w.latest().branches {
		if b.snapshot == n {
			return true
		}
	}
	return false
}
