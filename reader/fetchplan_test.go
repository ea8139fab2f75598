package reader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"go.uber.org/goleak"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// farShape has some megabytes in each of two segments, which take several times as much memory when they are decoded.
var farShape = plainShape{dense: 2, sparse: 6, segments: 2, stripes: 60, stripeRows: 500, session: 10}

// freeMemory returns what is free of a scanner's memory.
func freeMemory(s *Scanner) int64 {
	n := s.x.Budget.Available()
	if s.x.Fetched != s.x.Budget {
		n += s.x.Fetched.Available()
	}
	return n
}

// Requests of an object store are as large as they may be, though so many stripes do not fit the memory at once; on a
// disk there are more of them.
func TestFarRequests(t *testing.T) {
	table := plainTable(t, farShape)
	l := table.layout(indices(len(table.features)), 1000, OutputTensors)
	var stored uint64
	requests := func(far bool) uint64 {
		table.blobs.far = far
		s := open(t, l, Options{MemoryBudget: 8 << 20, RequestBytes: 256 << 10})
		defer s.Close()
		if rows := drain(t, s); uint64(rows) != l.Rows() {
			t.Fatalf("%d rows of %d", rows, l.Rows())
		}
		st := s.Stats()
		if far && st.BytesUnneeded > st.BytesNeeded/50 { // what files have besides stripes
			t.Errorf("%d bytes are not needed of a whole table of %d", st.BytesUnneeded, st.BytesNeeded)
		}
		stored = st.BytesNeeded
		return st.Requests
	}
	near, far := requests(false), requests(true)
	t.Logf("%d bytes: %d requests, of a disk %d", stored, far, near)
	if most := 1.3*float64(stored)/(256<<10) + float64(farShape.segments); float64(far) > most {
		t.Errorf("%d requests, want at most %.1f", far, most)
	}
	if near < 2*far {
		t.Errorf("%d requests on a disk: what is decoded of them fits, and nothing is shown", near)
	}
}

// Where the features of a segment are smaller than the gap, all stripes are read at once, though they are more than a
// task: else each task would read all bytes of the segment.
func TestManySmallFeatures(t *testing.T) {
	table := plainTable(t, plainShape{dense: 300, segments: 2, stripes: 8, stripeRows: 500, session: 2})
	table.blobs.far = true
	l := table.layout(indices(len(table.features)), 1000, OutputTensors)
	s := open(t, l, Options{MemoryBudget: 2 << 20, GapBytes: 64 << 10, RequestBytes: 256 << 10})
	defer s.Close()
	if rows := drain(t, s); uint64(rows) != l.Rows() {
		t.Fatalf("%d rows of %d", rows, l.Rows())
	}
	st := s.Stats()
	t.Logf("%d bytes needed, %d not, %d requests", st.BytesNeeded, st.BytesUnneeded, st.Requests)
	if task := uint64(s.opts.MemoryBudget / 4); st.BytesNeeded/2 < task {
		t.Fatalf("%d bytes in two segments: not more than a task, %d", st.BytesNeeded, task)
	}
	if st.BytesUnneeded > st.BytesNeeded/10 { // what 600 files have besides stripes
		t.Errorf("%d bytes are not needed of a whole table of %d", st.BytesUnneeded, st.BytesNeeded)
	}
	if most := 1.3 * float64(st.BytesNeeded) / (256 << 10); float64(st.Requests) > most {
		t.Errorf("%d requests, want at most %.1f", st.Requests, most)
	}
}

// A range of more than object.LargeRead is read without asking for the size of its object, if all of its task fits the
// memory.
func TestLargeRangesAreNotAskedFor(t *testing.T) {
	table := plainTable(t, plainShape{dense: 300, segments: 1, stripes: 90, stripeRows: 500, session: 2})
	table.blobs.far = true
	l := table.layout(indices(len(table.features)), 1000, OutputTensors)
	s := open(t, l, Options{MemoryBudget: 32 << 20, RequestBytes: 16 << 20})
	defer s.Close()
	if rows := drain(t, s); uint64(rows) != l.Rows() {
		t.Fatalf("%d rows of %d", rows, l.Rows())
	}
	if st := s.Stats(); st.Requests != 1 || st.BytesNeeded < object.LargeRead {
		t.Fatalf("%d requests for %d bytes: no range is large", st.Requests, st.BytesNeeded)
	}
	if n := table.blobs.stats; n > 0 {
		t.Errorf("%d times the size of an object was asked for", n)
	}
}

// A scanner of an object store stays within its memory, and gives it back.
func TestFarMemory(t *testing.T) {
	defer goleak.VerifyNone(t)
	table := plainTable(t, farShape)
	table.blobs.far = true
	const budget = 4 << 20
	s := open(t, table.layout(indices(len(table.features)), 1000, OutputTensors),
		Options{MemoryBudget: budget, RequestBytes: 64 << 10})
	defer s.Close()
	var least atomic.Int64
	least.Store(budget)
	look := func() {
		for free := freeMemory(s); ; {
			if was := least.Load(); free >= was || least.CompareAndSwap(was, free) {
				return
			}
		}
	}
	table.blobs.hook = func(context.Context, string, []byte, int64) error { look(); return nil }
	s.begin()
	for range eachBatch(t, s) {
		look()
	}
	if n := least.Load(); n < 0 || n > budget*3/4 { // a task alone, which is waited for on one core, takes a quarter
		t.Errorf("%d bytes were free of %d when memory was short", n, int64(budget))
	}
	s.stop()
	if n := freeMemory(s); n != budget {
		t.Errorf("%d bytes of memory of %d at the end", n, int64(budget))
	}
}

// All tasks of an object store have a half of the memory, in a shuffle a quarter; one has half of that, at most 64 MiB,
// or more where that costs less. By default the memory is 512 MiB.
func TestMemoryOfTasks(t *testing.T) {
	table := plainTable(t, farShape)
	table.blobs.far = true
	plain := Plan{Table: "t", Snapshot: 1, BatchSize: 1000, Output: OutputTensors}
	shuffled := plain
	shuffled.Shuffle = Shuffle{Unit: UnitRow, BufferStripes: 2, Seed: 3}
	for _, c := range []struct {
		plan                       Plan
		given, memory, share, task int64
	}{
		{plain, 0, 512 << 20, 256 << 20, 64 << 20},
		{plain, 64 << 20, 64 << 20, 32 << 20, 16 << 20},
		{shuffled, 0, 512 << 20, 128 << 20, 64 << 20},
		{shuffled, 64 << 20, 64 << 20, 16 << 20, 8 << 20},
	} {
		s := open(t, table.layoutOf(indices(len(table.features)), c.plan), Options{MemoryBudget: c.given})
		s.Close()
		z := s.layout.newFetchPlan(&s.opts).sizes
		fetched, decoded := s.layout.newBudgets(&s.opts)
		got := []int64{s.opts.MemoryBudget, z.Memory, z.Task, z.Share, fetched.Available(), decoded.Available()}
		if !slices.Equal(got, []int64{c.memory, c.memory, c.task, c.share, c.share, c.memory - c.share}) {
			t.Errorf("shuffle %v, %d: %v, %+v", c.plan.Shuffle.Unit, c.given, got, z)
		}
	}
}

// TestDamagedLengths: lengths in damaged metadata that objects do not have allocate little, however many they are.
func TestDamagedLengths(t *testing.T) {
	for _, c := range []struct {
		features int
		length   uint64
		memory   int64
	}{{40, 180 << 20, 0}, {200, 8<<20 - 1, 0}, {100, 8<<20 - 1, 16 << 20}} {
		table := plainTable(t, plainShape{dense: c.features, segments: 1, stripes: 1, stripeRows: 50})
		for _, x := range table.indexes {
			at := uint64(0)
			for i, f := range table.features {
				e := x.entries[f.ID]
				length := c.length
				if i == 0 {
					length = 1 // the object has this one
				}
				m := *e.Meta
				m.Stripes = slices.Clone(m.Stripes)
				m.Stripes[0].Length = length
				e.Offset, e.Length, e.Meta = at, length+1000, &m
				at += e.Length + 1<<20
			}
			for _, e := range x.entries {
				e.ObjectSize = at
			}
		}
		nearAndFar(t, func(t *testing.T, far bool) {
			table.blobs.far, table.blobs.stats = far, 0
			s := open(t, table.layout(indices(len(table.features)), 10, OutputTensors), Options{MemoryBudget: c.memory})
			defer s.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := s.Next(t.Context()); !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%+v: got %v", c, err)
			}
			missing := open(t, table.layout(indices(len(table.features)), 10, OutputTensors),
				Options{MemoryBudget: c.memory})
			defer missing.Close()
			for name, data := range table.blobs.objects {
				delete(table.blobs.objects, name)
				defer func() { table.blobs.objects[name] = data }()
			}
			if _, err := missing.Next(t.Context()); !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%+v, without objects: got %v", c, err)
			}
			runtime.ReadMemStats(&after)
			if n := table.blobs.stats; n != 2 {
				t.Errorf("%+v: the size of an object was asked for %d times, want once in each of two scans", c, n)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%+v: %d bytes were allocated", c, n)
			}
		})
	}
}

// TestFarEqualsNear: what tasks are planned by changes no batch.
func TestFarEqualsNear(t *testing.T) {
	defer goleak.VerifyNone(t)
	table := plainTable(t, plainShape{dense: 60, sparse: 4, segments: 3, stripes: 9, stripeRows: 60, session: 3})
	seeds := uint64(30)
	if race.Enabled {
		seeds = 3
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 9))
		p := Plan{Table: "t", Snapshot: 1, BatchSize: 1 + r.IntN(300), Output: OutputTensors}
		if r.IntN(2) == 0 {
			p.Shuffle = Shuffle{Unit: UnitRow, BufferStripes: 1 + r.IntN(9), Seed: 3}
		}
		var some []int
		for i := range table.features {
			if r.IntN(3) > 0 {
				some = append(some, i)
			}
		}
		l := table.layoutOf(some, p)
		batches := func(far bool, o Options) (out []string) {
			table.blobs.far = far
			s := open(t, l, o)
			defer s.Close()
			for b := range eachBatch(t, s) {
				x := b.Tensors
				out = append(out, fmt.Sprint(x.Dense.Values, x.Sparse.Values, x.Sparse.Lengths))
			}
			return out
		}
		want := batches(false, Options{})
		for _, memory := range []int64{1, 5000, 20_000, 60_000, 150_000, 400_000, 2 << 20} {
			o := Options{MemoryBudget: memory, Workers: 1 + r.IntN(4), GapBytes: int64(r.IntN(4000)),
				RequestBytes: int64(100 + r.IntN(20_000))}
			if !slices.Equal(batches(true, o), want) {
				t.Fatalf("seed %d: other batches with %+v", seed, o)
			}
		}
	}
}

// The first batch of an object store does not wait for all that a task may have.
func TestFirstFetchIsSmaller(t *testing.T) {
	f := fetchPlan{}
	f.sizes.Task, f.sizes.Apart = 64<<20, true
	var got []int64
	for range 5 {
		n := f.next().Task
		got = append(got, n>>20)
		f.read += n
	}
	want := []int64{8, 24, 64, 64, 64}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%d MiB, want %d", got, want)
		}
	}
	f.sizes.Apart = false
	if n := f.next().Task; n != 64<<20 {
		t.Errorf("on a disk %d", n)
	}
}

// What an overlay hides in the middle of a segment is not read, however large an I/O task is.
func TestHiddenStripesAreNotRead(t *testing.T) {
	shape := plainShape{sparse: 1, segments: 1, stripes: 60, stripeRows: 500, session: 10}
	table := plainTable(t, shape)
	shape.session = shape.stripeRows // the layer is small
	layer := plainTable(t, shape)
	table.blobs.objects["layer"] = layer.blobs.objects[layer.names[0]]
	index := layer.indexes[layer.segments[0].ID]
	for _, e := range index.entries {
		e.Object = "layer"
	}
	d := layer.segments[0]
	d.ID, d.Index = "layer", "layer/index.sst"
	table.indexes[d.ID] = index
	covered := roaring.New()
	covered.AddRange(500, 59*500)
	over := &catalog.OverlaySegment{Overlay: "o", Segment: table.segments[0].ID, Data: d,
		Covered: bitmap.Ref{Count: covered.GetCardinality()}}
	table.overlays = testOverlays{
		defined: []catalog.Overlay{{Name: "o", Features: table.features}},
		layers:  [][]*catalog.OverlaySegment{{over}},
		covers:  map[*catalog.OverlaySegment]*roaring.Bitmap{over: covered},
	}
	nearAndFar(t, func(t *testing.T, far bool) {
		table.blobs.far = far
		s := open(t, table.layout([]int{0}, 1000, OutputColumns), Options{GapBytes: 2000})
		defer s.Close()
		if rows := drain(t, s); rows != 60*500 {
			t.Fatalf("%d rows", rows)
		}
		if st := s.Stats(); st.BytesUnneeded > 2*2000 {
			t.Errorf("%d bytes are not needed, beside %d that are", st.BytesUnneeded, st.BytesNeeded)
		}
	})
}
