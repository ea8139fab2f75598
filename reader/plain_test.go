package reader

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// A plainShape is a table of like segments for measurements: sessions of session rows (1: no duplicates) share their
// lists, and lists have a mean length of 20.
type plainShape struct {
	dense, sparse, weighted       int
	segments, stripes, stripeRows int
	session                       int
}

// plainTable makes a table without a model.
func plainTable(tb testing.TB, shape plainShape) *testTable {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	out := &testTable{blobs: &memoryBlobs{objects: map[string][]byte{}}, indexes: map[string]*testIndex{}}
	add := func(n int, name string, t vector.Type) {
		for i := range n {
			out.features = append(out.features, catalog.Feature{
				ID: catalog.FeatureID(len(out.features) + 1), Name: fmt.Sprintf("%s%d", name, i), Type: t,
			})
		}
	}
	add(shape.dense, "dense", vector.Type{Kind: vector.Dense, Elem: vector.Float32})
	add(shape.sparse, "sparse", vector.Type{Kind: vector.Sparse, Elem: vector.Int64})
	add(shape.weighted, "weighted", vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32})
	for g := range shape.segments {
		d := catalog.SegmentDescriptor{
			ID: fmt.Sprintf("%032x", g), Rows: uint64(shape.stripes * shape.stripeRows),
			Index: fmt.Sprintf("%d/index.sst", g),
		}
		index := &testIndex{entries: map[catalog.FeatureID]*segment.Entry{}}
		for range shape.stripes {
			index.stripeRows = append(index.stripeRows, uint32(shape.stripeRows))
		}
		var pack bytes.Buffer
		name := fmt.Sprintf("%d/pack", g)
		for _, f := range out.features {
			at := pack.Len()
			w, err := format.NewWriter(&pack, f.Type, format.WriterOptions{Feature: uint64(f.ID), Name: f.Name})
			if err != nil {
				tb.Fatal(err)
			}
			for range shape.stripes {
				if err := w.WriteStripe(plainColumn(rng, f.Type, shape)); err != nil {
					tb.Fatal(err)
				}
			}
			meta, size, err := w.Finish()
			if err != nil {
				tb.Fatal(err)
			}
			index.entries[f.ID] = &segment.Entry{Object: name, Offset: uint64(at), Length: uint64(size),
				Meta: meta}
		}
		out.blobs.objects[name] = pack.Bytes()
		out.names = append(out.names, name)
		d.Objects = 1
		for _, e := range index.entries {
			e.ObjectSize = uint64(pack.Len())
		}
		out.segments = append(out.segments, d)
		out.indexes[d.ID] = index
	}
	return out
}

// plainColumn makes a stripe: 45 of 100 rows are present.
func plainColumn(rng *rand.Rand, t vector.Type, shape plainShape) *vector.Column {
	c := vector.NewColumn(t)
	session := max(shape.session, 1)
	slots := (shape.stripeRows + session - 1) / session
	if t.Kind == vector.Dense {
		slots = shape.stripeRows
	}
	for range slots {
		if rng.IntN(100) >= 45 {
			c.AppendNulls(1)
			continue
		}
		if t.Kind == vector.Dense {
			c.Floats = append(c.Floats, float32(rng.IntN(1000)))
		} else {
			for range 10 + rng.IntN(21) {
				c.Ints = append(c.Ints, int64(rng.Uint64()>>1))
				if t.Kind == vector.Weighted {
					c.ScoreFloats = append(c.ScoreFloats, rng.Float32())
				}
			}
		}
		c.AddSlot()
	}
	if slots != shape.stripeRows {
		c.Rows, c.Monotone = shape.stripeRows, true
		for row := range c.Rows {
			c.Inverse = append(c.Inverse, int32(row/session))
		}
	}
	return c
}

// drain reads everything and returns the rows.
func drain(tb testing.TB, s *Scanner) int {
	tb.Helper()
	rows := 0
	for b := range eachBatch(tb, s) {
		rows += b.Rows
	}
	return rows
}

// A scan in steady state allocates for its segments and its start, not for rows, lists, stripes or batches.
func TestSteadyStateAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	shape := plainShape{dense: 6, sparse: 6, weighted: 2, segments: 2, stripes: 64, stripeRows: 512, session: 8}
	table := plainTable(t, shape)
	for _, output := range []Output{OutputColumns, OutputTensors} {
		for _, dedup := range []Dedup{DedupKJT, DedupIKJT, DedupPartial} {
			checkAllocations(t, table, table.dedupLayout(indices(len(table.features)), 32, output, dedup))
		}
	}
	// Small pieces: those of a shuffle.
	table.features[0].Role = catalog.RoleSessionKey
	for _, shuffle := range []Shuffle{
		{Unit: UnitSession, BufferStripes: 4, Key: table.features[0]}, {Unit: UnitRow, BufferStripes: 4},
	} {
		for _, dedup := range []Dedup{DedupKJT, DedupIKJT} {
			checkAllocations(t, table, table.layoutOf(indices(len(table.features)), Plan{
				Table: "t", Snapshot: 1, BatchSize: 32, Output: OutputTensors, Dedup: dedup, Shuffle: shuffle,
			}))
		}
	}
}

func checkAllocations(t *testing.T, table *testTable, l *Layout) {
	s := open(t, l, Options{Workers: 1, Requests: 1, Presence: true, Info: true, MemoryBudget: 4 << 20})
	defer s.Close()
	scan := func() {
		table.blobs.reads = table.blobs.reads[:0]
		if err := s.Seek(Position{}); err != nil {
			t.Fatal(err)
		}
		drain(t, s)
	}
	scan()
	scan()
	runtime.GC()
	allocs := testing.AllocsPerRun(3, scan)
	batches := float64(l.Batches())
	what := fmt.Sprintf("%v, %v, shuffle %v", l.plan.Output, l.plan.Dedup, &l.plan.Shuffle)
	t.Logf("%s: %.0f allocations in %v batches: %.2f a batch", what, allocs, batches, allocs/batches)
	// What is left is opening the segments and starting the goroutines of the run, and a little for their timing.
	limit := batches / 4
	if race.Enabled {
		limit = batches // the detector allocates for goroutines and channels
	}
	if allocs > limit {
		t.Errorf("%s: %.0f allocations for %v batches", what, allocs, batches)
	}
}

func BenchmarkScan(b *testing.B) {
	shape := plainShape{dense: 10, sparse: 6, segments: 2, stripes: 2, stripeRows: 16384, session: 4}
	table := plainTable(b, shape)
	for _, x := range []struct {
		output Output
		dedup  Dedup
	}{{OutputTensors, DedupKJT}, {OutputTensors, DedupIKJT}, {OutputTensors, DedupPartial}, {OutputColumns, DedupKJT},
		{OutputColumns, DedupIKJT}} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%v/workers=%d", x.output, x.dedup, workers), func(b *testing.B) {
				l := table.dedupLayout(indices(len(table.features)), 4096, x.output, x.dedup)
				s := open(b, l, Options{Workers: workers})
				defer s.Close()
				b.ReportAllocs()
				rows := 0
				for b.Loop() {
					if err := s.Seek(Position{}); err != nil {
						b.Fatal(err)
					}
					rows += drain(b, s)
				}
				b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
