package metamorphic

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// check reads the newest snapshot, and now and then another or a branch, in random ways.
func (w *world) check() error {
	if err := w.checkSnapshot(w.newest); err != nil {
		return err
	}
	if w.chance(0.5) {
		if err := w.checkSnapshot(pick(w, w.readable()...)); err != nil {
			return err
		}
	}
	if names := slices.Sorted(maps.Keys(w.latest().branches)); len(names) > 0 && w.chance(0.5) {
		return w.checkBranch(w.draw(names))
	}
	return nil
}

// checkAll reads everything that must be readable.
func (w *world) checkAll() error {
	for i := range w.stores {
		if err := w.reopen(i); err != nil {
			return err
		}
	}
	for _, n := range w.readable() {
		if err := w.checkSnapshot(n); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.latest().branches)) {
		if err := w.checkBranch(name); err != nil {
			return err
		}
	}
	if err := verify(w); err != nil {
		return err
	}
	return checkReport(w)
}

// checkSnapshot reads a snapshot, by its number or as the latest.
func (w *world) checkSnapshot(n uint64) error {
	t := w.table()
	var snap *storage.Snapshot
	var err error
	if n == w.newest && w.chance(0.7) {
		snap, err = t.Latest(w.ctx)
	} else {
		snap, err = t.At(w.ctx, n)
	}
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", n, err)
	}
	s := w.states[n]
	if i := snap.Info(); i.Number != n || i.LiveRows() != uint64(len(s.rows)) {
		return fmt.Errorf("snapshot %d of %d rows: want %d of %d", i.Number, i.LiveRows(), n, len(s.rows))
	}
	v := &storage.View{Snapshot: snap}
	if err := w.read(v, s, nil); err != nil {
		return fmt.Errorf("snapshot %d: %w", n, err)
	}
	return nil
}

func (w *world) checkBranch(name string) error {
	b := w.latest().branches[name]
	v, err := w.store().Open(w.ctx, tableName+"@"+name)
	if err != nil {
		return fmt.Errorf("branch %s: %w", name, err)
	}
	s := w.states[b.snapshot]
	var list map[int64]bool
	if b.list != "" {
		list = s.lists[b.list]
	}
	s = s.under(b.overlays).clone()
	s.overlays = nil // more of them would have to be named by the branch
	if v.Snapshot.Info().Number != b.snapshot || v.List != b.list {
		return fmt.Errorf("branch %s is %d, list %q: want %+v", name, v.Snapshot.Info().Number, v.List, b)
	}
	if err := w.read(v, s, list); err != nil {
		return fmt.Errorf("branch %s: %w", name, err)
	}
	return nil
}

// A scan is a way of reading, and the rows that it must give.
type scan struct {
	view     *storage.View
	plan     *reader.Plan
	layout   *reader.Layout
	options  reader.Options
	epoch    uint64
	expected map[int64]string // by row number, the values of the projection
	// of their numbers, where the model knows it: in a table without a session key, unshuffled
	order    []int64
	features []*feature // of the projection; nil: the partition key
}

// read draws ways to read a view whose rows a state has, and of those the ones of a list, nil: all.
func (w *world) read(v *storage.View, s *state, list map[int64]bool) error {
	x, err := w.drawScan(v, s, list)
	if err != nil {
		return err
	}
	err = w.readScan(x)
	if err != nil {
		return fmt.Errorf("%w\nplan:\n%voptions: %+v", err, x.plan, x.options)
	}
	return nil
}

func (w *world) drawScan(v *storage.View, s *state, list map[int64]bool) (*scan, error) {
	overlays := []string{}
	for _, o := range shuffled(w, s.overlays) {
		if w.chance(0.4) {
			overlays = append(overlays, o.name)
		}
	}
	s = s.under(overlays)
	x := &scan{view: v, epoch: w.rnd.Uint64N(3), expected: map[int64]string{}}
	opts := reader.PlanOptions{BatchSize: pick(w, 1, 3, 16, 50, 4096), Dedup: pick(w, reader.DedupKJT, reader.DedupIKJT,
		reader.DedupPartial)}
	names := s.names()
	empty := len(s.rows) == 0 // then it may have no partition key: see drawOperation
	if !empty {
		names = append(names, "day")
	}
	names = shuffled(w, names)[:w.rnd.IntN(len(names)+1)]
	opts.Overlays = overlays
	opts.Features = shuffled(w, append(slices.DeleteFunc(names, func(n string) bool { return n == "row" }), "row"))
	for _, n := range opts.Features {
		x.features = append(x.features, s.features[n])
	}
	in := func(*row) bool { return true }
	also := func(f func(r *row) bool) {
		before := in
		in = func(r *row) bool { return before(r) && f(r) }
	}
	if list != nil {
		also(func(r *row) bool { return list[r.number] })
	}
	if !empty && w.chance(0.4) {
		p := w.drawPredicate(s, 2)
		opts.Filter = p.text
		also(func(r *row) bool { return p.of(r) == yes })
	}
	if !empty && w.chance(0.2) {
		p := w.drawDays()
		opts.Partition = p.text
		also(func(r *row) bool { return p.of(r) == yes })
	}
	if lists := slices.Sorted(maps.Keys(s.lists)); list == nil && len(lists) > 0 && w.chance(0.4) {
		opts.SampleList = w.draw(lists)
		list := s.lists[opts.SampleList]
		also(func(r *row) bool { return list[r.number] })
	}
	weights := func(*row) string { return "" }
	if !empty && w.chance(0.2) {
		share := w.draw([]string{"0.25", "0.5", "1"})
		class, sample := w.drawPredicate(s, 1), w.drawSampleOf(s, share)
		// An OR, since a sample among the terms of the class would be another one.
		opts.Downsample = "((" + class.text + ") OR (" + class.text + ")) AND " + sample.text
		also(func(r *row) bool { return class.of(r) != yes || sample.of(r) != no })
		weights = func(r *row) string {
			if class.of(r) == yes && sample.of(r) == yes {
				return " | " + map[string]string{"0.25": "4", "0.5": "2", "1": "1"}[share]
			}
			return " | 1"
		}
	}
	if w.chance(0.4) {
		opts.Shuffle = reader.Shuffle{Unit: pick(w, reader.UnitSession, reader.UnitRow), BufferStripes: pick(w, 0, 1, 2,
			5), Seed: w.rnd.Uint64N(4)}
		if w.keyless {
			opts.Shuffle.Unit = reader.UnitRow
		}
	}
	for n, r := range s.rows {
		if !in(r) {
			continue
		}
		cells := make([]string, len(x.features))
		for i, f := range x.features {
			if cells[i] = text(r.day); f != nil {
				cells[i] = text(r.values[f])
			}
		}
		x.expected[n] = strings.Join(cells, " | ") + weights(r)
	}
	if w.keyless && opts.Shuffle.Unit == reader.UnitNone {
		x.order = slices.SortedFunc(maps.Keys(x.expected), func(a, b int64) int {
			return cmp.Or(cmp.Compare(s.rows[a].day, s.rows[b].day), cmp.Compare(a, b))
		})
	}
	x.options = reader.Options{
		Workers: 1 + w.rnd.IntN(3), MemoryBudget: pick[int64](w, 0, 1, 20_000), Requests: pick(w, 0, 1, 3),
		GapBytes:     pick[int64](w, 0, -1),
		RequestBytes: pick[int64](w, 0, 100), Reuse: w.chance(0.3),
		Lease: reader.LeaseOptions{Off: true}, // gc and erasure are held to what the model keeps
		Usage: reader.UsageOptions{Writer: w.recorder, Job: pick(w, "train", "eval")},
	}
	var err error
	if x.plan, err = reader.NewViewPlan(w.ctx, v, opts); err != nil {
		return x, fmt.Errorf("%+v: %w", opts, err)
	}
	if x.layout, err = newLayout(w.ctx, v, x.plan, reader.LayoutOptions{Read: x.options,
		Selections: pick[*reader.Selections](w, nil, reader.NewSelections(0))}); err != nil {
		return x, fmt.Errorf("%v: %w", x.plan, err)
	}
	if got := x.layout.Rows(); got != uint64(len(x.expected)) {
		return x, fmt.Errorf("%d rows are selected, want %d, by\n%v", got, len(x.expected), x.plan)
	}
	if opts.Downsample == "" && w.chance(0.3) {
		m, err := newMatch(w.ctx, v, opts)
		if err != nil {
			return x, err
		}
		if m.Rows != uint64(len(x.expected)) {
			return x, fmt.Errorf("%d rows match, want %d, by\n%v", m.Rows, len(x.expected), x.plan)
		}
	}
	return x, nil
}

// readScan reads an epoch whole, and once more in another way, which must give the same rows in the same order.
func (w *world) readScan(x *scan) error {
	whole, err := w.scanFrom(x, 0)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, r := range whole {
		if seen[r] {
			return fmt.Errorf("row twice: %s", r)
		}
		seen[r] = true
	}
	for n, r := range x.expected {
		if !seen[r] {
			return fmt.Errorf("row %d is not there: want %s", n, r)
		}
	}
	if len(whole) != len(x.expected) {
		return fmt.Errorf("%d rows: want %d", len(whole), len(x.expected))
	}
	for i, n := range x.order {
		if whole[i] != x.expected[n] {
			return fmt.Errorf("read %q at place %d: want %q, in the order in which the rows were ingested", whole[i], i,
				x.expected[n])
		}
	}
	var again []string
	switch how := w.rnd.IntN(5); {
	case how == 0:
		batch := w.rnd.Uint64N(x.layout.Batches() + 1)
		if again, err = w.scanFrom(x, batch); err != nil {
			return fmt.Errorf("from batch %d: %w", batch, err)
		}
		whole = whole[min(int(batch)*x.plan.BatchSize, len(whole)):]
	case how == 1:
		return w.readRanks(x, whole)
	case how == 2 && x.plan.Shuffle.Unit == reader.UnitNone:
		if again, err = w.readSplits(x); err != nil {
			return err
		}
	case how == 3 && x.plan.Dedup == reader.DedupKJT && x.plan.Shuffle.Unit == reader.UnitNone:
		return w.take(x, whole)
	default:
		return nil
	}
	if !slices.Equal(again, whole) {
		return fmt.Errorf("read again, in another way: %q, want %q", again, whole)
	}
	return nil
}

// scanFrom reads an epoch from a batch on.
func (w *world) scanFrom(x *scan, batch uint64) ([]string, error) {
	s, err := x.layout.Open(x.options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Seek(reader.Position{Epoch: x.epoch, Batch: batch}); err != nil {
		return nil, err
	}
	return w.drain(func() (*reader.Batch, error) { return s.Next(w.ctx) })
}

// readSplits reads the parts of a plan one after the other.
func (w *world) readSplits(x *scan) ([]string, error) {
	splits, err := x.layout.Splits(w.ctx, 1+w.rnd.IntN(4))
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range splits {
		o := x.options
		o.Split = &splits[i]
		s, err := x.layout.Open(o)
		if err != nil {
			return nil, err
		}
		rows, err := w.drain(func() (*reader.Batch, error) { return s.Next(w.ctx) })
		if err = errors.Join(err, s.Close()); err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// readRanks reads an epoch as several trainers do: together they have every row once.
func (w *world) readRanks(x *scan, whole []string) error {
	world, shards := 1+w.rnd.IntN(3), 1+w.rnd.IntN(4)
	var all []string
	for rank := range world {
		s, err := x.layout.OpenRank(x.options, reader.Ranks{Rank: rank, World: world, Shards: shards})
		if err != nil {
			return err
		}
		err = s.Seek(reader.Position{Epoch: x.epoch}, 0)
		var rows []string
		if err == nil {
			rows, err = w.drain(func() (*reader.Batch, error) {
				b, _, err := s.Next(w.ctx)
				return b, err
			})
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
		all = append(all, rows...)
	}
	slices.Sort(all)
	if want := slices.Sorted(slices.Values(whole)); !slices.Equal(all, want) {
		return fmt.Errorf("%d ranks, %d shards: %q, want %q", world, shards, all, want)
	}
	return nil
}

// take reads rows at positions.
func (w *world) take(x *scan, whole []string) error {
	t, err := x.layout.Taker(x.options)
	if err != nil {
		return err
	}
	defer t.Close()
	for range 3 {
		var positions []uint64
		var want []string
		for range w.rnd.IntN(20) {
			if len(whole) > 0 {
				p := w.rnd.IntN(len(whole))
				positions, want = append(positions, uint64(p)), append(want, whole[p])
			}
		}
		b, err := t.Take(w.ctx, positions)
		if err != nil {
			return fmt.Errorf("take: %w", err)
		}
		got := w.rowsOf(b)
		b.Release()
		if !slices.Equal(got, want) {
			return fmt.Errorf("take %d: %q, want %q", positions, got, want)
		}
	}
	return nil
}

// drain returns the rows of batches as texts.
func (w *world) drain(next func() (*reader.Batch, error)) ([]string, error) {
	out := []string{}
	for {
		b, err := next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, w.rowsOf(b)...)
		b.Release()
	}
}

// rowsOf returns the rows of a batch that was read, as texts.
func (w *world) rowsOf(b *reader.Batch) []string {
	w.rowsRead += uint64(b.Rows)
	var out []string
	for row := range b.Rows {
		cells := make([]string, len(b.Columns))
		for i, c := range b.Columns {
			cells[i] = text(valueOf(c, row))
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return out
}

// valueOf returns a value of a column as the model has it.
func valueOf(c *vector.Column, row int) any {
	slot := row
	if c.Inverse != nil {
		slot = int(c.Inverse[row])
	}
	if c.Present != nil && c.Present[slot/64]>>(slot%64)&1 == 0 {
		return nil
	}
	from, to := slot, slot+1
	if c.Type.Kind != vector.Dense {
		from = int(c.Offsets[slot])
		if c.Lengths != nil {
			to = from + int(c.Lengths[slot])
		} else {
			to = int(c.Offsets[slot+1])
		}
	}
	switch {
	case c.Type.Kind == vector.String:
		return string(c.Data[from:to])
	case c.Type.Kind == vector.Sparse:
		return append([]int64{}, c.Ints[from:to]...)
	case len(c.Floats) > 0:
		return float64(c.Floats[from])
	case len(c.Doubles) > 0:
		return c.Doubles[from]
	}
	return c.Ints[from]
}
