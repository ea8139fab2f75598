package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/reader/memory"
)

func TestMain(m *testing.M) {
	race.Rapid()
	goleak.VerifyTestMain(m)
}

var smallShape = tableShape{features: 6, segments: 3, stripes: 4, stripeRows: 9}

func drawProjection(t *rapid.T, table *testTable) []int {
	p := rapid.Permutation(indices(len(table.features))).Draw(t, "projection")
	return p[:rapid.IntRange(1, len(p)).Draw(t, "projected")]
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func drawDedup(t *rapid.T) Dedup {
	return rapid.SampledFrom([]Dedup{DedupKJT, DedupIKJT, DedupPartial}).Draw(t, "dedup")
}

func drawBatchSize(t *rapid.T) int {
	return rapid.SampledFrom([]int{1, 2, 7, 64, 1000}).Draw(t, "batch size")
}

func drawOptions(t *rapid.T) Options {
	return Options{
		MemoryBudget: rapid.SampledFrom([]int64{1, 500, 5000, 1 << 20}).Draw(t, "budget"),
		MaxBatches:   rapid.IntRange(1, 4).Draw(t, "max batches"),
		Workers:      rapid.IntRange(1, 4).Draw(t, "workers"),
		Requests:     rapid.IntRange(1, 4).Draw(t, "requests"),
		GapBytes:     rapid.SampledFrom([]int64{-1, 20, 1000}).Draw(t, "gap"),
		RequestBytes: rapid.SampledFrom([]int64{1, 64, 1 << 20}).Draw(t, "request bytes"),
		Presence:     true,
		// As asFloat32 does: TestInexactIntegers has the other way.
		RoundIntegers: true,
		Info:          rapid.Bool().Draw(t, "info"),
		Allocator:     dirtyAllocator{},
		Reuse:         rapid.Bool().Draw(t, "reuse"),
	}
}

// A dirtyAllocator gives memory with something in it, as Allocator may.
type dirtyAllocator struct{ memory.Heap }

func (d dirtyAllocator) Allocate(n int) []byte {
	b := d.Heap.Allocate(n)
	for i := range b {
		b[i] = 0xA5
	}
	return b
}

func open(t interface{ Fatal(...any) }, l *Layout, opts Options) *Scanner {
	s, err := l.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eachBatch reads the rest of an epoch. Each batch is released after the body of the loop.
func eachBatch(t rapid.TB, s *Scanner) iter.Seq[*Batch] {
	return func(body func(*Batch) bool) {
		t.Helper()
		for {
			b, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			more := body(b)
			b.Release()
			if !more {
				return
			}
		}
	}
}

// checkBatch compares a batch with the model's rows from first on.
func checkBatch(t interface{ Fatalf(string, ...any) }, table *testTable, features []int, b *Batch, first int) {
	if int(b.FirstRow) != first {
		t.Fatalf("batch %d starts at row %d, want %d", b.Index, b.FirstRow, first)
	}
	rows := make([]int, b.Rows)
	for i := range rows {
		rows[i] = first + i
	}
	checkRows(t, table, features, b, rows)
}

// checkRows compares a batch with those rows of the model.
func checkRows(t interface{ Fatalf(string, ...any) }, table *testTable, features []int, b *Batch, rows []int) {
	check := func(place int, r int, got value, what string) {
		f := features[place]
		typ := table.features[f].Type
		if want := table.rows[rows[r]][f]; !equalValues(got, want, typ) {
			t.Fatalf("batch %d row %d feature %s (%v) in %s: got %+v, want %+v",
				b.Index, r, table.features[f].Name, typ, what, got, want)
		}
	}
	for place, c := range b.Columns {
		if c == nil {
			continue
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("feature %s: %v", table.features[features[place]].Name, err)
		}
		if c.Rows != b.Rows || (b.Tensors != nil || b.Plan().Dedup == DedupKJT) &&
			(c.Inverse != nil || c.Lengths != nil) {
			t.Fatalf("feature %s: %d rows in a batch of %d, or not plain", table.features[features[place]].Name, c.Rows,
				b.Rows)
		}
		for r := range b.Rows {
			check(place, r, columnValue(c, r), "columns")
		}
	}
	checkBlock(t, b)
	if b.Tensors == nil {
		return
	}
	x := b.Tensors
	held := 0
	matrix := func(m *Matrix, what string) {
		held += len(m.Features)
		if len(m.Features) > 0 && len(m.Values) != b.Rows*m.Width {
			t.Fatalf("%s has %d values for %d rows of %d", what, len(m.Values), b.Rows, m.Width)
		}
		for i, place := range m.Features {
			typ := table.features[features[place]].Type
			for r := range b.Rows {
				want := table.rows[rows[r]][features[place]]
				if m.PresentOf(i).Get(r) == want.null {
					t.Fatalf("%s: row %d: wrong presence", what, r)
				}
				width := typ.Width()
				for k := range width {
					v := float32(0)
					if !want.null {
						v = asFloat32(want.numbers[k], typ.Elem)
					}
					if got := m.Values[r*m.Width+i+k]; math.Float32bits(got) != math.Float32bits(v) {
						t.Fatalf("%s: row %d of %s (%v): got %v, want %v", what, r,
							table.features[features[place]].Name, typ, got, v)
					}
				}
			}
		}
	}
	matrix(&x.Dense, "dense")
	matrix(&x.Labels, "labels")
	nulls := 0
	for _, place := range x.Labels.Features {
		for r := range b.Rows {
			if table.rows[rows[r]][features[place]].null {
				nulls++
			}
		}
	}
	if b.NullLabels != nulls {
		t.Fatalf("%d null labels, want %d", b.NullLabels, nulls)
	}
	for i := range x.Embeddings {
		matrix(&x.Embeddings[i], "embedding")
	}
	jagged := func(j *Jagged, what string) {
		held += len(j.Features)
		if len(j.Features) == 0 {
			return
		}
		n := int(j.First[len(j.Features)])
		if len(j.Lengths) != n {
			t.Fatalf("%s has %d lengths for %d lists", what, len(j.Lengths), n)
		}
		starts := j.Starts
		if b.Plan().Dedup != DedupPartial {
			if starts = j.Offsets; len(starts) != n+1 || starts[0] != 0 || j.Starts != nil {
				t.Fatalf("%s has %d offsets for %d lists", what, len(starts), n)
			}
			for k := range n {
				if starts[k+1]-starts[k] != j.Lengths[k] {
					t.Fatalf("%s: list %d: length %d, offsets %d to %d", what, k, j.Lengths[k], starts[k], starts[k+1])
				}
			}
		} else if len(starts) != n || j.Offsets != nil {
			t.Fatalf("%s has %d starts for %d lists", what, len(starts), n)
		}
		for i, place := range j.Features {
			typ := table.features[features[place]].Type
			first, _ := j.Lists(i)
			inverse := x.InverseOf(j, i)
			for r := range b.Rows {
				s := r
				if inverse != nil {
					s = int(inverse[r])
				}
				got := value{null: !j.PresentOf(i).Get(s)}
				want := table.rows[rows[r]][features[place]]
				from := starts[first+s]
				for at := from; at < from+j.Lengths[first+s]; at++ {
					if typ.Elem.IsInteger() {
						got.numbers = append(got.numbers, number64{i: j.Values[at]})
					} else {
						got.numbers = append(got.numbers, number64{f: float64(j.FloatValues[at])})
					}
					if typ.Kind == vector.Weighted {
						got.scores = append(got.scores, float64(j.Weights[at]))
					}
				}
				want32 := value{null: want.null}
				for _, v := range want.numbers {
					v.f = float64(float32(v.f))
					want32.numbers = append(want32.numbers, v)
				}
				for _, v := range want.scores {
					want32.scores = append(want32.scores, float64(float32(v)))
				}
				if !equalValues(got, want32, typ) {
					t.Fatalf("%s: row %d of %v: got %+v, want %+v", what, r, typ, got, want32)
				}
			}
		}
	}
	if len(x.Groups) > 0 && b.Plan().Dedup == DedupKJT {
		t.Fatalf("%d groups", len(x.Groups))
	}
	jagged(&x.Sparse, "sparse")
	jagged(&x.Weighted, "weighted")
	jagged(&x.Floats, "floats")
	for _, c := range b.Columns {
		if c != nil {
			held++
		}
	}
	if held != len(features) {
		t.Fatalf("the batch holds %d of %d features", held, len(features))
	}
}

func asFloat32(n number64, e vector.Elem) float32 {
	switch {
	case e == vector.Uint64:
		return float32(uint64(n.i))
	case e.IsInteger():
		return float32(n.i)
	}
	return float32(n.f)
}

// Every batch of every projection equals the model, whatever the sizes, options and timing.
func TestScanEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		l := table.dedupLayout(features, drawBatchSize(t), output, drawDedup(t))
		if l.Rows() != uint64(len(table.rows)) {
			t.Fatalf("%d rows, want %d", l.Rows(), len(table.rows))
		}
		s := open(t, l, drawOptions(t))
		defer s.Close()
		s.tried = rapid.Bool().Draw(t, "never inline")
		row := 0
		var held []*Batch
		for {
			b, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Rows != min(l.plan.BatchSize, len(table.rows)-row) {
				t.Fatalf("batch %d has %d rows at row %d", b.Index, b.Rows, row)
			}
			checkBatch(t, table, features, b, row)
			row += b.Rows
			// Keep some back, so that batches are in use while others are made.
			if held = append(held, b); len(held) == s.opts.MaxBatches {
				for _, b := range held {
					checkBatch(t, table, features, b, int(b.FirstRow))
					b.Release()
				}
				held = held[:0]
			}
		}
		if row != len(table.rows) {
			t.Fatalf("%d rows, want %d", row, len(table.rows))
		}
		for _, b := range held {
			b.Release()
		}
		checkStats(t, s, table)
	})
}

func checkStats(t *rapid.T, s *Scanner, table *testTable) {
	st := s.Stats()
	if st.Rows != uint64(len(table.rows)) || st.Batches != s.Batches() {
		t.Fatalf("stats count %d rows and %d batches, want %d and %d", st.Rows, st.Batches, len(table.rows),
			s.Batches())
	}
	cost, err := s.layout.Cost(context.Background(), s.opts)
	if err != nil {
		t.Fatal(err)
	}
	if cost.BytesNeeded != st.BytesNeeded || cost.BytesUnneeded != st.BytesUnneeded || cost.Requests != st.Requests {
		t.Fatalf("cost %+v, stats %+v", cost, st)
	}
	var read uint64
	for _, r := range table.blobs.reads {
		read += uint64(r.to - r.from)
		if r.to-r.from > s.opts.RequestBytes {
			t.Fatalf("a request of %d bytes", r.to-r.from)
		}
	}
	if read != cost.BytesNeeded+cost.BytesUnneeded || uint64(len(table.blobs.reads)) != cost.Requests {
		t.Fatalf("read %d bytes in %d requests, cost %+v", read, len(table.blobs.reads), cost)
	}
	if st.DedupeFactor < 1 {
		t.Fatalf("dedupe factor %v", st.DedupeFactor)
	}
}

// From any position, by Seek on the same scanner or in a new one, the batches are those of the unbroken scan.
func TestSeekResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		opts := drawOptions(t)
		s := open(t, l, opts)
		defer s.Close()
		for range 3 {
			at := uint64(rapid.IntRange(0, int(l.Batches())).Draw(t, "position"))
			if err := s.Seek(Position{Epoch: 3, Batch: at}); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 3).Draw(t, "batches") {
				want := s.Position()
				b, err := s.Next(context.Background())
				if errors.Is(err, io.EOF) && want.Batch == l.Batches() {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if want.Epoch != 3 || b.Index != want.Batch {
					t.Fatalf("batch %d at %+v", b.Index, want)
				}
				checkBatch(t, table, features, b, int(want.Batch)*l.plan.BatchSize)
				b.Release()
			}
		}
		if err := s.Seek(Position{Batch: l.Batches() + 1}); err == nil {
			t.Fatal("a position past the end is accepted")
		}
	})
}

// What Seek skips is not read.
func TestSeekReadsNothingBefore(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, sparse: 1, segments: 4, stripes: 5, stripeRows: 100})
	l := table.layout(indices(len(table.features)), 100, OutputColumns)
	s := open(t, l, Options{Workers: 1, GapBytes: -1})
	defer s.Close()
	if err := s.Seek(Position{Batch: l.Batches() - 1}); err != nil {
		t.Fatal(err)
	}
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if n := table.opens.Load(); n != 1 {
		t.Fatalf("opened %d segments", n)
	}
	last := table.names[len(table.names)-1]
	var read int64
	for _, r := range table.blobs.reads {
		read += r.to - r.from
		if r.name != last {
			t.Fatalf("read %s", r.name)
		}
	}
	if read*3 > int64(len(table.blobs.objects[last])) {
		t.Fatalf("read %d bytes of %d for the last of 5 stripes", read, len(table.blobs.objects[last]))
	}
}

// Splits, read independently and in any order, cover each row once.
func TestSplitsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		n := rapid.IntRange(1, 6).Draw(t, "splits")
		splits, err := l.Splits(context.Background(), n)
		if err != nil {
			t.Fatal(err)
		}
		if len(splits) > n {
			t.Fatalf("%d splits, want at most %d", len(splits), n)
		}
		next := uint64(0)
		for _, sp := range splits {
			if sp.FirstRow != next || sp.Rows == 0 {
				t.Fatalf("split %+v after row %d", sp, next)
			}
			next += sp.Rows
		}
		if next != l.Rows() {
			t.Fatalf("splits cover %d of %d rows", next, l.Rows())
		}
		for _, i := range rapid.Permutation(indices(len(splits))).Draw(t, "order") {
			data, err := splits[i].MarshalJSON()
			if err != nil || len(data) >= 1024 {
				t.Fatalf("%d bytes, %v", len(data), err)
			}
			var sp Split
			if err := sp.UnmarshalJSON(data); err != nil || sp != splits[i] {
				t.Fatalf("%+v became %+v: %v", splits[i], sp, err)
			}
			opts := drawOptions(t)
			opts.Split = &sp
			s := open(t, l, opts)
			offset := rapid.IntRange(0, int(s.Batches())).Draw(t, "offset")
			if err := s.Seek(Position{Batch: uint64(offset)}); err != nil {
				t.Fatal(err)
			}
			row := int(sp.FirstRow) + offset*l.plan.BatchSize
			end := int(sp.FirstRow + sp.Rows)
			for {
				b, err := s.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				checkBatch(t, table, features, b, row)
				row += b.Rows
				b.Release()
			}
			if offset < int(s.Batches()) && row != end {
				t.Fatalf("the split ends at row %d, want %d", row, end)
			}
			s.Close()
		}
	})
}

// A damaged byte gives an error that says where, after every batch before it, or is in bytes that nobody reads.
func TestDamageHasAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		if len(table.names) == 0 {
			return
		}
		name := rapid.SampledFrom(table.names).Draw(t, "object")
		data := table.blobs.objects[name]
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		truncated := rapid.IntRange(0, 3).Draw(t, "how") == 0
		if truncated {
			table.blobs.objects[name] = data[:at]
		} else {
			data[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		}
		var first error
		var firstRow int
		for turn := range 2 {
			s := open(t, l, drawOptions(t))
			s.tried = turn > 0 // never inline
			row := 0
			for {
				b, err := s.Next(context.Background())
				if err != nil {
					if _, again := s.Next(context.Background()); again != err {
						t.Fatalf("error %v, then %v", err, again)
					}
					var c *format.CorruptError
					if !errors.Is(err, io.EOF) {
						if !errors.As(err, &c) || c.Object != name {
							t.Fatalf("damage at %d of %s: %v", at, name, err)
						}
						if !truncated && (c.Feature == "" || c.Stripe < 0 || c.Offset < 0 || c.Offset > int64(at)) {
							t.Fatalf("damage at %d of %s: %v", at, name, err)
						}
						if first != nil && !truncated && (first.Error() != err.Error() || firstRow != row) {
							t.Fatalf("%v at row %d, then %v at row %d", first, firstRow, err, row)
						}
						first, firstRow = err, row
					}
					break
				}
				checkBatch(t, table, features, b, row)
				row += b.Rows
				b.Release()
			}
			s.Close()
		}
	})
}

// A context that ends makes Next return at once; the scan goes on with the next one; Close at any time leaves nothing.
func TestCancel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		stop := rapid.IntRange(0, 20).Draw(t, "stop after reads")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		release := make(chan struct{})
		reads := 0
		table.blobs.hook = func(inner context.Context, _ string, _ []byte, _ int64) error {
			table.blobs.mu.Lock()
			reads++
			n := reads
			table.blobs.mu.Unlock()
			if n > stop {
				cancel()
				select {
				case <-inner.Done():
					return inner.Err()
				case <-release:
				}
			}
			return nil
		}
		s := open(t, l, drawOptions(t))
		row := 0
		next := func(ctx context.Context) bool {
			b, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				return false
			}
			if errors.Is(err, context.Canceled) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			checkBatch(t, table, features, b, row)
			row += b.Rows
			b.Release()
			return true
		}
		for next(ctx) {
		}
		if rapid.Bool().Draw(t, "go on") {
			close(release)
			for next(context.Background()) {
			}
			if row != len(table.rows) {
				t.Fatalf("%d rows, want %d", row, len(table.rows))
			}
		}
		s.Close()
		if _, err := s.Next(context.Background()); !errors.Is(err, errClosed) {
			t.Fatalf("Next after Close: %v", err)
		}
	})
}

// A read error is told with its cause.
func TestReadError(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 2, stripeRows: 10})
	cause := errors.New("no route to host")
	table.blobs.hook = func(context.Context, string, []byte, int64) error { return cause }
	s := open(t, table.layout([]int{0}, 4, OutputColumns), Options{})
	defer s.Close()
	if _, err := s.Next(context.Background()); !errors.Is(err, cause) {
		t.Fatal(err)
	}
}

func TestReleaseTwicePanics(t *testing.T) {
	table := plainTable(t, plainShape{dense: 1, segments: 1, stripes: 1, stripeRows: 10})
	s := open(t, table.layout([]int{0}, 4, OutputColumns), Options{})
	defer s.Close()
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	b.Release()
}

// Batches outlive their scanner, and their memory goes back to the allocator exactly once.
func TestAllocatorGetsEverythingBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		l := table.dedupLayout(features, drawBatchSize(t), output, drawDedup(t))
		opts := drawOptions(t)
		counting := &countingAllocator{live: map[*byte]int{}}
		opts.Allocator, opts.Reuse = counting, false
		s := open(t, l, opts)
		var held []*Batch
		for range rapid.IntRange(0, opts.MaxBatches).Draw(t, "held") {
			b, err := s.Next(context.Background())
			if err != nil {
				break
			}
			held = append(held, b)
		}
		s.Close()
		for _, b := range held {
			checkBatch(t, table, features, b, int(b.FirstRow))
			b.Release()
		}
		if err := counting.check(); err != nil {
			t.Fatal(err)
		}
	})
}

type countingAllocator struct {
	dirtyAllocator
	mu   sync.Mutex
	live map[*byte]int
	bad  error
}

func (c *countingAllocator) Allocate(n int) []byte {
	b := c.dirtyAllocator.Allocate(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[&b[0]] = n
	return b
}

func (c *countingAllocator) Free(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[&b[0]] != len(b) {
		c.bad = fmt.Errorf("freed %d bytes that are not allocated", len(b))
	}
	delete(c.live, &b[0])
}

func (c *countingAllocator) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad == nil && len(c.live) > 0 {
		return fmt.Errorf("%d allocations are not freed", len(c.live))
	}
	return c.bad
}
