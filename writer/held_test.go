package writer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

var (
	idType   = vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	listType = vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
)

// A heapWatch notes the most that was reachable in the heap when it looked, beyond what was there before.
type heapWatch struct {
	mu           sync.Mutex
	before, most int64
	calls        int
}

func watchHeap() *heapWatch {
	w := &heapWatch{}
	runtime.GC()
	runtime.GC() // pools keep what they have for one more
	w.look(1)
	w.before, w.most = w.most, 0
	return w
}

// look looks at every n-th call.
func (w *heapWatch) look(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls%n != 0 {
		return
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.most = max(w.most, int64(m.HeapAlloc)-w.before)
}

// A watchedTarget keeps of what is written only the first value of each row of the feature "history", and looks at the
// heap now and then.
type watchedTarget struct {
	heap  *heapWatch
	every int
	first []int64
	rows  uint64
}

func (t *watchedTarget) NewSegment(_ context.Context, _ catalog.Partition, stripeRows []uint32,
	_ format.Profile) (SegmentWriter, error) {
	t.rows = 0
	for _, n := range stripeRows {
		t.rows += uint64(n)
	}
	return t, nil
}

func (t *watchedTarget) Discard(context.Context, []catalog.SegmentDescriptor) {}
func (t *watchedTarget) Skip(int)                                             {}
func (t *watchedTarget) Abort()                                               {}
func (t *watchedTarget) Note(format.Found)                                    {}
func (t *watchedTarget) Finalize() error                                      { return nil }
func (t *watchedTarget) Finish(context.Context) (catalog.SegmentDescriptor, error) {
	return catalog.SegmentDescriptor{Rows: t.rows}, nil
}

func (t *watchedTarget) AddFeature(_ context.Context, _ int, f catalog.Feature, write func(StripeWriter) error) error {
	return write(t)
}

func (t *watchedTarget) AddGroup(context.Context, int, []catalog.Feature, func([]StripeWriter) error) error {
	return errors.New("no groups")
}

func (t *watchedTarget) WriteStripe(c *vector.Column) error {
	if c.Type == listType {
		for row := range c.Rows {
			lo, _ := c.RowRange(row)
			t.first = append(t.first, c.Ints[lo])
		}
	}
	t.heap.look(t.every)
	return nil
}

// historyRows returns count rows from row first on of a source of rows rows. Their sessions are spread over all of
// those, so that each chunk has rows of all parts of the order. A history has n ids, the first of which is the source's
// number and the row.
func historyRows(source, first, count, rows, n int) *Rows {
	key, history := vector.NewColumn(idType), vector.NewColumn(listType)
	for row := first; row < first+count; row++ {
		key.Ints = append(key.Ints, int64(row)*7919%int64(rows))
		key.AddSlot()
		history.Ints = append(history.Ints, int64(source)<<32+key.Ints[key.Rows-1])
		for i := range n - 1 {
			history.Ints = append(history.Ints, int64(i%7))
		}
		history.AddSlot()
	}
	return &Rows{Source: source, First: int64(first), Count: count, Session: key, Numbers: []int{0, 1},
		Columns: []*vector.Column{key, history}, Release: func() {}}
}

func historyFeatures(rows, n int) []*Feature {
	var out []*Feature
	for i, t := range []vector.Type{idType, listType} {
		name := []string{"key", "history"}[i]
		out = append(out, &Feature{Feature: catalog.Feature{Name: name, ID: catalog.NewFeatureID(name, 0), Type: t},
			Number: i, RawBytes: uint64(rows * []int{8, 8*n + 4}[i])})
	}
	return out
}

func newTestSorter(t *testing.T, opts Options) *Sorter {
	dir := t.TempDir()
	s := NewSorter(opts, func() (string, error) { return dir, nil },
		func() []vector.Type { return []vector.Type{idType, listType} })
	t.Cleanup(s.Close)
	return s
}

// checkFirst: the rows are those of a source, in the order of their sessions.
func (t *watchedTarget) checkFirst(tb testing.TB, source, rows int) {
	tb.Helper()
	if len(t.first) != rows {
		tb.Fatalf("%d rows were written, want %d", len(t.first), rows)
	}
	for i, v := range t.first {
		if want := int64(source)<<32 + int64(i); v != want {
			tb.Fatalf("row %d begins with %d, want %d", i, v, want)
		}
	}
}

// TestStripesOfRunsAreHeldAlone: of a segment that is made of many runs, each of which few stripes need, what is held
// is what a stripe needs.
func TestStripesOfRunsAreHeldAlone(t *testing.T) {
	const memory, rows, chunk, list = 8 << 20, 19_997, 500, 250 // a prime, 40 MB
	heap := watchHeap()
	s := newTestSorter(t, Options{Memory: memory, FanIn: 2, Workers: 1, Dedup: DedupOff})
	for first := 0; first < rows; first += chunk {
		if _, err := s.Add(t.Context(), historyRows(0, first, min(chunk, rows-first), rows, list)); err != nil {
			t.Fatal(err)
		}
	}
	target := &watchedTarget{heap: heap, every: 10}
	w, err := s.Write(t.Context(), Job{Target: target, Features: historyFeatures(rows, list),
		Partition: func(uint32) catalog.Partition { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Segments) != 1 || w.Stripes < 50 || s.Spills().Count < 8 {
		t.Fatalf("%d segments, %d stripes, %+v: too few to say anything", len(w.Segments), w.Stripes, s.Spills())
	}
	target.checkFirst(t, 0, rows)
	t.Logf("%d KiB were held, %d stripes", heap.most>>10, w.Stripes)
	if heap.most > memory {
		t.Errorf("%d bytes were held, want at most %d", heap.most, memory)
	}
}

// TestLargeRowsOfManyRuns: rows of 128 KiB, of which a run has few. Of each run a row or two are held, not a block of
// all its rows.
func TestLargeRowsOfManyRuns(t *testing.T) {
	const memory, rows, chunk, list = 8 << 20, 1499, 8, 16 << 10 // a prime, 190 MB
	heap := watchHeap()
	s := newTestSorter(t, Options{Memory: memory, FanIn: 100, Workers: 1, Dedup: DedupOff})
	for first := 0; first < rows; first += chunk {
		if _, err := s.Add(t.Context(), historyRows(0, first, min(chunk, rows-first), rows, list)); err != nil {
			t.Fatal(err)
		}
	}
	target := &watchedTarget{heap: heap, every: 10}
	_, err := s.Write(t.Context(), Job{Target: target, Features: historyFeatures(rows, list),
		Partition: func(uint32) catalog.Partition { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Spills().Count; n < 32 || n >= 100 {
		t.Fatalf("%d spills: the test proves nothing", n)
	}
	target.checkFirst(t, 0, rows)
	t.Logf("%d KiB were held in %d runs", heap.most>>10, s.Spills().Count)
	if heap.most > 3*memory {
		t.Errorf("%d bytes were held, want at most %d", heap.most, 3*memory)
	}
}

// TestLeftOutRowsAreNotHeld: where nearly all rows are left out, a stripe is made of its own rows alone.
func TestLeftOutRowsAreNotHeld(t *testing.T) {
	const memory, rows, kept, chunk, list = 8 << 20, 19_997, 199, 500, 250
	heap := watchHeap()
	s := newTestSorter(t, Options{Memory: memory, Workers: 1, Dedup: DedupOff})
	for first := 0; first < rows; first += chunk {
		if _, err := s.Add(t.Context(), historyRows(0, first, min(chunk, rows-first), rows, list)); err != nil {
			t.Fatal(err)
		}
		if part := first / chunk; part*10 < kept {
			add := historyRows(1, part*10, min(10, kept-part*10), kept, list)
			for i := range add.Session.Ints {
				add.Session.Ints[i] *= rows / kept // among the others
			}
			if _, err := s.Add(t.Context(), add); err != nil {
				t.Fatal(err)
			}
		}
	}
	target := &watchedTarget{heap: heap, every: 1}
	_, err := s.Write(t.Context(), Job{Target: target, Features: historyFeatures(rows+kept, list),
		Partition: func(uint32) catalog.Partition { return nil }, Dropped: []bool{true, false}})
	if err != nil {
		t.Fatal(err)
	}
	target.checkFirst(t, 1, kept)
	t.Logf("%d KiB were held in %d spills", heap.most>>10, s.Spills().Count)
	if heap.most > memory {
		t.Errorf("%d bytes were held, want at most %d", heap.most, memory)
	}
}

// An inputColumn is a history in each row of an input.
type inputColumn struct {
	heap        *heapWatch
	input, list int
}

func (c *inputColumn) MayHave(int, int) bool { return true }
func (c *inputColumn) Close()                {}
func (c *inputColumn) Append(dst *vector.Column, lo, hi int) error {
	for row := lo; row < hi; row++ {
		dst.Ints = append(dst.Ints, int64(c.input)<<32+int64(row))
		for i := range c.list - 1 {
			dst.Ints = append(dst.Ints, int64(i%7))
		}
		dst.AddSlot()
	}
	c.heap.look(10)
	return nil
}

// TestStripesOfInputsAreHeldAlone: of a segment whose inputs follow one another, what is held is what a stripe needs,
// whether its rows are read from the inputs or from a file in between.
func TestStripesOfInputsAreHeldAlone(t *testing.T) {
	const memory, inputs, rows, list = 8 << 20, 100, 200, 250 // 40 MB
	for _, spilled := range []bool{false, true} {
		blobs, err := object.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s, err := storage.Create(t.Context(), blobs, storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		table, err := s.NewTable(t.Context(), "ads")
		if err != nil {
			t.Fatal(err)
		}
		heap := watchHeap()
		x := Rewrite{Table: table, Session: -1, Time: -1, KeepOrder: true,
			Features: historyFeatures(inputs*rows, list)[1:]}
		if spilled {
			x.Features[0].HeldBytes, x.Features[0].MostBytes = memory, 1
		}
		for range inputs {
			x.Inputs = append(x.Inputs, RewriteInput{Stripes: []RewriteStripe{{Rows: rows, RowBytes: 8 * list,
				MostBytes: 8 * list}}})
		}
		x.Open = func(_ context.Context, input, _ int) (RewriteColumn, error) {
			return &inputColumn{heap, input, list}, nil
		}
		r, err := x.Run(t.Context(), Options{Memory: memory, Workers: 1, Dedup: DedupOff, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Segments) != 1 || r.Segments[0].Data.Rows != inputs*rows {
			t.Fatalf("%+v", r.Segments)
		}
		t.Logf("%d KiB were held; through a file: %v", heap.most>>10, spilled)
		if heap.most > memory {
			t.Errorf("%d bytes were held, want at most %d; through a file: %v", heap.most, memory, spilled)
		}
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartitionsOpenTheirChunks: a segment's features are opened in the time of the segment's chunks, not of all chunks
// that are buffered.
func TestPartitionsOpenTheirChunks(t *testing.T) {
	const partitions, rows = 50, 20
	s := newTestSorter(t, Options{Memory: 1 << 30})
	for _, part := range []int{0, 1} { // each partition has two chunks, the second without histories
		for p := range partitions {
			add := historyRows(0, 2*rows*p+rows*part, rows, 2*partitions*rows, 3)
			add.Partition = uint32(p)
			if part == 1 {
				add.Numbers, add.Columns = add.Numbers[:1], add.Columns[:1]
			}
			if _, err := s.Add(t.Context(), add); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, newRows, err := s.merge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	source := newRows()
	for part := range partitions {
		plan, err := p.next()
		if err != nil || plan == nil || plan.part != uint32(part) || plan.rows != 2*rows {
			t.Fatalf("partition %d: %+v, %v", part, plan, err)
		}
		for number, typ := range []vector.Type{idType, listType} {
			present, err := source.open(number, typ, plan, false)
			if err != nil || !present {
				t.Fatal(present, err)
			}
			cols, err := source.stripe(&plan.stripes[0])
			if err != nil || len(cols) != 2 {
				t.Fatalf("partition %d, feature %d: %d columns, %v; want 2", part, number, len(cols), err)
			}
			if have := (cols[0] != nil) != (cols[1] != nil); have == (number == 0) {
				t.Errorf("partition %d, feature %d: the columns are %v", part, number, cols)
			}
			var g gatherer
			dst := vector.Column{Type: typ}
			n, err := g.gather(&dst, cols, plan.pieces, plan.rows)
			if err != nil || n != []int{2 * rows, rows}[number] {
				t.Errorf("partition %d, feature %d: %d rows are not null, %v", part, number, n, err)
			}
			source.done(0)
		}
	}
}

// TestLargeRowsAreSpilledEarly: rows of which few fit into a block of a spill file are spilled before they fill the
// buffer, others are not.
func TestLargeRowsAreSpilledEarly(t *testing.T) {
	spilled := errors.New("spilled")
	bytes := vector.Type{Kind: vector.Bytes}
	const most = 1000
	for _, c := range []struct{ first, size, want int }{
		{40 << 20, 40 << 20, 25},    // 26 are more than 1 GiB
		{15 << 20, 15 << 20, most},  // 64 are less
		{100 << 20, 100_000, most},  // a large row among others
		{100 << 20, 2_000_000, 485}, // too large together
	} {
		s := NewSorter(Options{Memory: 1 << 40}, func() (string, error) { return "", spilled },
			func() []vector.Type { return []vector.Type{bytes} })
		added := 0
		for ; added < most; added++ {
			size := c.size
			if added == 0 {
				size = c.first
			}
			// The values are not there: nothing reads them.
			col := &vector.Column{Type: bytes, Rows: 1, Slots: 1, Offsets: []int32{0, int32(size)}}
			_, err := s.Add(t.Context(), &Rows{First: int64(added), Count: 1, Numbers: []int{0},
				Columns: []*vector.Column{col}, Release: func() {}})
			if errors.Is(err, spilled) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if added != c.want {
			t.Errorf("rows of %d bytes after one of %d: %d are buffered, want %d", c.size, c.first, added, c.want)
		}
	}
}

// A countedRows is a rowSource of histories. It counts, with others, how many features are open at once.
type countedRows struct {
	counter *openCounter
	list    int
	col     vector.Column
	cols    [1]*vector.Column
}

type openCounter struct {
	mu         sync.Mutex
	open, most int
}

func (c *openCounter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	c.most = max(c.most, c.open)
}

func (r *countedRows) open(_ int, t vector.Type, _ *segmentPlan, _ bool) (bool, error) {
	r.counter.add(1)
	r.col.Type = t
	return true, nil
}

func (r *countedRows) stripe(st *stripePlan) ([]*vector.Column, error) {
	r.col.Reset()
	for row := range st.rows {
		for i := range r.list {
			r.col.Ints = append(r.col.Ints, int64(row/3*i))
		}
		r.col.AddSlot()
	}
	r.cols[0] = &r.col
	return r.cols[:], nil
}

func (r *countedRows) done(int64) { r.counter.add(-1) }

// TestSamplesShareMemory: no more features are sampled at once than memory is there for; features whose samples do not
// fit are sampled one after the other.
func TestSamplesShareMemory(t *testing.T) {
	const stripes, stripeRows, workers = 4, 256, 4
	for _, c := range []struct{ list, most int }{{1000, 1}, {1, workers}} {
		var features []*Feature
		for i := range 12 {
			name := fmt.Sprint("f", i)
			features = append(features, &Feature{Feature: catalog.Feature{Name: name,
				ID: catalog.NewFeatureID(name, 0), Type: listType}, Number: i,
				RawBytes: uint64(stripes * stripeRows * (8*c.list + 4))})
		}
		plan := &segmentPlan{rows: stripes * stripeRows}
		for range stripes {
			at := len(plan.pieces)
			plan.pieces = append(plan.pieces, piece{n: stripeRows})
			plan.stripes = append(plan.stripes, stripePlan{rows: stripeRows, from: at, to: at + 1})
		}
		opts := Options{Memory: 64 << 20, Workers: workers, StripeRows: stripeRows}.WithDefaults()
		counter := &openCounter{}
		w, err := newOutput(&opts, nil, func() rowSource { return &countedRows{counter: counter, list: c.list} },
			stripes*stripeRows)
		if err != nil {
			t.Fatal(err)
		}
		j := &segmentJob{output: w, plan: plan, order: features}
		if _, err := j.groups(t.Context()); err != nil {
			t.Fatal(err)
		}
		if counter.most > c.most || counter.open != 0 {
			t.Errorf("lists of %d: %d were sampled at once, %d are open", c.list, counter.most, counter.open)
		}
	}
}

// TestGroupsHoldHalfOfMemory: as many features as a Grouper puts into a group hold half of the memory together at most,
// and what a group holds leaves the memory that its helpers need.
func TestGroupsHoldHalfOfMemory(t *testing.T) {
	const rows, workers = 1 << 20, 8
	for _, memory := range []int64{64 << 20, 1 << 30, 16 << 30} {
		for _, distinct := range []float64{1.0 / 16, 0.5, 1} {
			opts := Options{Memory: memory, Workers: workers}.WithDefaults()
			w, err := newOutput(&opts, nil, nil, rows)
			if err != nil {
				t.Fatal(err)
			}
			plan := &segmentPlan{rows: rows, stripes: []stripePlan{{rows: opts.StripeRows}}}
			f := &Feature{Feature: catalog.Feature{Type: idType}, RawBytes: 8 * rows, distinct: distinct}
			j := &segmentJob{output: w, plan: plan, order: []*Feature{f}}
			members := writeShare(memory) / 2 / j.groupWeight(f)
			held := members * (j.estimate(f) + j.groupBytes(f))
			t.Logf("memory %d MiB, %v distinct: %d members hold %d MiB", memory>>20, distinct, members, held>>20)
			if held > memory/2 || members < 1 {
				t.Errorf("memory %d, %v distinct: %d members hold %d", memory, distinct, members, held)
			}
		}
	}
}
