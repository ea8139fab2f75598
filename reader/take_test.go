package reader

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// drawPositions draws rows of n to take: none, some in any order, some twice, or in order.
func drawPositions(t *rapid.T, n int) []uint64 {
	if n == 0 {
		return nil
	}
	out := rapid.SliceOfN(rapid.Uint64Range(0, uint64(n-1)), 0, 2*n).Draw(t, "rows")
	if rapid.Bool().Draw(t, "in order") {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

func takeRows(t interface{ Fatal(...any) }, taker *Taker, rows []uint64) *Batch {
	b, err := taker.Take(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ints(rows []uint64) []int {
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = int(r)
	}
	return out
}

// Every take of every plan equals the model, also with transforms, in memory used before, and in pieces where memory is
// short.
func TestTakeEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		p := &Plan{Table: "t", Snapshot: 1, BatchSize: 1,
			Output: rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")}
		want := table
		if rapid.Bool().Draw(t, "transformed") {
			want, p = drawTransformed(t, table, features, *p, 0)
		} else {
			for _, f := range features {
				p.Features = append(p.Features, table.features[f])
			}
		}
		l, err := table.newLayout(p)
		if err != nil {
			t.Fatal(err)
		}
		opts := drawOptions(t)
		opts.Info = false
		taker, err := l.Taker(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer taker.Close()
		for range 5 {
			rows := drawPositions(t, len(table.rows))
			asked := slices.Clone(rows)
			b := takeRows(t, taker, rows)
			if !slices.Equal(rows, asked) {
				t.Fatal("the caller's rows are changed")
			}
			if b.Rows != len(rows) {
				t.Fatalf("%d rows of %d", b.Rows, len(rows))
			}
			checkRows(t, want, features, b, ints(rows))
			b.Release()
			checkKept(t, taker)
		}
	})
}

// checkKept holds what a Taker keeps to its bounds: stripes of kept segments, which nobody else uses.
func checkKept(t *rapid.T, taker *Taker) {
	c := taker.cache
	var stripes int64
	for key, s := range c.stripes.All() {
		g, ok := c.segments.Get(key.segment)
		if !ok || s.Users.Load() != 1 || s.Index != key.stripe {
			t.Fatalf("stripe %v of a segment that is kept, %v, has %d users", key, ok, s.Users.Load())
		}
		stripes += int64(g.DecodedBytes(key.stripe))
	}
	segments := len(maps.Collect(c.segments.All()))
	if stripes != c.stripes.Size() || stripes > c.stripes.Max() || c.admitted != 0 ||
		c.segments.Size() > c.segments.Max() && segments > 1 {
		t.Fatalf("%d bytes of %d segments, at most %d; %d bytes of stripes, said to be %d, at most %d; %d bytes are "+
			"admitted",
			c.segments.Size(), segments, c.segments.Max(), stripes, c.stripes.Size(), c.stripes.Max(), c.admitted)
	}
}

// What is asked for again is kept, and what is asked for more often takes its place.
func TestTakeKeepsStripes(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: 4, stripeRows: 500})
	l := table.layout([]int{0}, 10, OutputColumns)
	e := table.indexes[table.segments[0].ID].entries[1]
	one := int64(e.Meta.Stripes[0].Elements)*8 + 5000 // memory of a stripe, and less than that of two
	taker, err := l.Taker(Options{MemoryBudget: 2 * (one + one/2), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	reads := func(row uint64) int {
		before := len(table.blobs.reads)
		takeRows(t, taker, []uint64{row}).Release()
		return len(table.blobs.reads) - before
	}
	var got []int
	for _, row := range []uint64{1, 2, 3, 4, 501, 502, 503, 5, 504, 505, 506, 507, 508, 509, 510, 511, 512, 6} {
		got = append(got, reads(row))
	}
	// Stripe 0 is kept from its second take on, until stripe 1 was asked for twice as often.
	if want := []int{1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
	if st := taker.Stats(); st.StripeHits != 5 || st.StripeMisses != 13 {
		t.Errorf("%d stripes found decoded and %d not, want 5 and 13 of 18", st.StripeHits, st.StripeMisses)
	}
}

// Where there is room for two stripes, the one of them that was asked for less goes.
func TestTakeKeepsWhatIsAskedForMost(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: 4, stripeRows: 500})
	l := table.layout([]int{0}, 10, OutputColumns)
	one := int64(table.indexes[table.segments[0].ID].entries[1].Meta.Stripes[0].Elements)*8 + 5000
	taker, err := l.Taker(Options{MemoryBudget: 2 * (2*one + one/2), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	reads := func(stripe int) int {
		before := len(table.blobs.reads)
		takeRows(t, taker, []uint64{uint64(500*stripe + 7)}).Release()
		return len(table.blobs.reads) - before
	}
	for stripe, times := range []int{3, 8, 6} {
		for range times {
			reads(stripe)
		}
	}
	if got := []int{reads(2), reads(1), reads(0)}; !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("stripes 2, 1 and 0, asked for 6, 8 and 3 times, take %v reads", got)
	}
}

// What is read together is bounded by the memory, however many rows a take has.
func TestTakeReadsInWaves(t *testing.T) {
	const stripes = 24
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: stripes, stripeRows: 500})
	l := table.layout([]int{0}, 10, OutputColumns)
	stored := int64(table.indexes[table.segments[0].ID].entries[1].Meta.Stripes[0].Length)
	taker, err := l.Taker(Options{MemoryBudget: stripes * stored, Workers: 1, GapBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	var rows []uint64
	for i := range stripes {
		rows = append(rows, uint64(500*i))
	}
	takeRows(t, taker, rows).Release()
	// Buffers that are read into at once are idle afterwards: those of a wave, which an I/O task more than a quarter of
	// the budget ends.
	if idle := taker.x.Pools.Held().BufferBytes; idle == 0 || idle > 10*stored {
		t.Errorf("%d bytes were read at once, with a memory of %d", idle, stripes*stored)
	}
}

// Takes of stripes of many rows, from few of them to all, equal a scan.
func TestTakeEqualsScan(t *testing.T) {
	table := plainTable(t, plainShape{dense: 2, sparse: 2, weighted: 1, segments: 2, stripes: 3, stripeRows: 3000,
		session: 8})
	l := table.layout(indices(len(table.features)), 18_000, OutputColumns)
	s := open(t, l, Options{})
	defer s.Close()
	all, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	taker, err := l.Taker(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 20, 500, 9000, 18_000} {
		rows := make([]uint64, n)
		for i := range rows {
			rows[i] = rng.Uint64N(18_000)
		}
		b := takeRows(t, taker, rows)
		for f, c := range b.Columns {
			for i, r := range rows {
				if !vector.RowsEqual(c, i, all.Columns[f], int(r)) {
					t.Fatalf("%d rows, feature %d: row %d, at %d, differs", n, f, r, i)
				}
			}
		}
		b.Release()
	}
}

// Only the stripes of the rows are read, and segments are looked up once.
func TestTakeReadsWhatItNeeds(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, sparse: 1, segments: 3, stripes: 8, stripeRows: 200})
	l := table.layout([]int{1}, 100, OutputColumns)
	taker, err := l.Taker(Options{GapBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	takeRows(t, taker, []uint64{1600 + 250, 1600 + 399, 1600 + 1599}).Release()
	if len(table.blobs.reads) != 2 || table.opens.Load() != 1 {
		t.Fatalf("%d reads and %d look-ups for two stripes of a segment", len(table.blobs.reads), table.opens.Load())
	}
	e := table.indexes[table.segments[1].ID].entries[table.features[1].ID]
	for i, stripe := range []int{1, 7} {
		s := e.Meta.Stripes[stripe]
		want := readRecord{e.Object, int64(e.Offset + s.Offset), int64(e.Offset + s.Offset + s.Length)}
		if !slices.Contains(table.blobs.reads, want) {
			t.Errorf("read %d: %+v is not among %+v", i, want, table.blobs.reads)
		}
	}
	takeRows(t, taker, []uint64{1600}).Release()
	if table.opens.Load() != 1 {
		t.Errorf("%d look-ups of one segment", table.opens.Load())
	}
}

func TestTakeRefuses(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 1, stripeRows: 10})
	l := table.layout([]int{0}, 10, OutputColumns)
	taker, err := l.Taker(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taker.Take(t.Context(), []uint64{3, 10}); err == nil ||
		!strings.Contains(err.Error(), "row 10: there are 10") {
		t.Errorf("a row too many: %v", err)
	}
	if _, err := taker.Take(t.Context(), make([]uint64, MaxBatchSize+1)); err == nil {
		t.Error("too many rows are taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := taker.Take(ctx, []uint64{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
	b := takeRows(t, taker, []uint64{4})
	taker.Close()
	if len(b.Columns[0].Floats) != 1 {
		t.Error("a batch ends with its Taker")
	}
	b.Release()
	if _, err := taker.Take(t.Context(), nil); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := table.dedupLayout([]int{0}, 10, OutputColumns, DedupIKJT).Taker(Options{}); err == nil {
		t.Error("a plan with ikjt is taken")
	}
	for _, o := range []Options{{Split: &Split{}}, {EndBatch: 1}, {Info: true}, {Workers: -1}} {
		if _, err := l.Taker(o); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}

// After a failed read a Taker works, also where what failed were the dictionaries of a segment.
func TestTakeAfterFailure(t *testing.T) {
	table, want := sharedTable(t, 4, 500)
	l := table.layout([]int{0, 1, 2}, 10, OutputColumns)
	taker, err := l.Taker(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	broken := errors.New("the network is down")
	table.blobs.hook = func(context.Context, string, []byte, int64) error { return broken }
	rows := []uint64{7, 1999, 8}
	if _, err := taker.Take(t.Context(), rows); !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	table.blobs.hook = nil
	for range 2 {
		b := takeRows(t, taker, rows)
		for f := range 3 {
			for i, r := range rows {
				if v := columnValue(b.Columns[f], i); v.numbers[0].i != want[f][r] {
					t.Fatalf("feature %d, row %d: %v, want %d", f, r, v, want[f][r])
				}
			}
		}
		b.Release()
	}
	for _, data := range table.blobs.objects {
		clear(data)
	}
	takeRows(t, taker, rows).Release() // from memory
	if taker, err = l.Taker(Options{}); err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	if _, err := taker.Take(t.Context(), rows); !errors.Is(err, format.ErrCorrupt) {
		t.Fatalf("cleared: %v", err)
	}
}

// A stripe that was to be kept, and did not decode, takes no room.
func TestTakeForgetsDamage(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: 2, stripeRows: 100})
	l := table.layout([]int{0}, 10, OutputColumns)
	taker, err := l.Taker(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	good := map[string][]byte{}
	for name, data := range table.blobs.objects {
		good[name] = slices.Clone(data)
		clear(data)
	}
	for range 3 {
		if _, err := taker.Take(t.Context(), []uint64{7}); !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("cleared: %v", err)
		}
		if n := taker.cache.stripes.Size() + taker.cache.admitted; n != 0 {
			t.Fatalf("%d bytes of stripes are kept, and none is there", n)
		}
	}
	for name, data := range good {
		copy(table.blobs.objects[name], data)
	}
	takeRows(t, taker, []uint64{7}).Release()
	if taker.cache.stripes.Size() == 0 {
		t.Error("a stripe that decodes again is not kept")
	}
}

// Takes from many goroutines, of rows of several segments in any order, are each right, and so are those that go on
// beside one that is given up.
func TestTakeFromManyGoroutines(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, sparse: 2, segments: 5, stripes: 3, stripeRows: 60, session: 4})
	l := table.layout(indices(3), 900, OutputColumns)
	s := open(t, l, Options{})
	defer s.Close()
	all, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int64{0, 4000} { // the second keeps next to nothing
		taker, err := l.Taker(Options{Workers: 2, MemoryBudget: budget})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 3))
				for k := range 20 {
					rows := make([]uint64, 1+rng.IntN(100))
					for j := range rows {
						rows[j] = rng.Uint64N(900)
					}
					if k%2 == 0 {
						slices.Sort(rows)
					}
					ctx, cancel := context.WithCancel(context.Background())
					if k%5 == 4 {
						cancel()
					}
					b, err := taker.Take(ctx, rows)
					cancel()
					if k%5 == 4 && errors.Is(err, context.Canceled) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					for f, c := range b.Columns {
						for j, r := range rows {
							if !vector.RowsEqual(c, j, all.Columns[f], int(r)) {
								t.Errorf("feature %d: row %d, at %d, differs", f, r, j)
								return
							}
						}
					}
					b.Release()
				}
			})
		}
		wg.Wait()
		taker.Close()
	}
}

// A take that waits for another one gives up when its context ends.
func TestTakeGivesUpWaiting(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 1, stripeRows: 10})
	taker, err := table.layout([]int{0}, 10, OutputColumns).Taker(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	reading, goOn := make(chan struct{}), make(chan struct{})
	table.blobs.hook = func(context.Context, string, []byte, int64) error {
		close(reading)
		<-goOn
		return nil
	}
	first := make(chan error)
	go func() {
		b, err := taker.Take(context.Background(), []uint64{1})
		if err == nil {
			b.Release()
		}
		first <- err
	}()
	<-reading
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		_, err := taker.Take(ctx, []uint64{2})
		second <- err
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the take that waited: %v", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("the take that it waited for: %v", err)
	}
}

// Counts of uses are halved after a while, and those of stripes that were used once are dropped.
func TestUsesAge(t *testing.T) {
	c := newTakeCache(1, -1, nil)
	g := &takeSegment{Segment: &ioplan.Segment{Starts: []uint64{0, 1, 2}}}
	c.put(g)
	c.uses[g.key(0)] = 1000
	for range agingPeriod - 1 {
		c.admit(g, 1)
	}
	if c.uses[g.key(0)] != 1000 || c.uses[g.key(1)] != agingPeriod-1 {
		t.Fatalf("uses %v", c.uses)
	}
	c.uses[stripeKey{7, 7}] = 1
	if c.admit(g, 1) || c.uses[g.key(0)] != 500 || len(c.uses) != 2 || c.admitted != 0 || c.counted != 0 {
		t.Fatalf("%+v", c)
	}
}
