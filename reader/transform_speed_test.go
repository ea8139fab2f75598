package reader

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

// transformedLayout is table.layout with transforms by rules.
func transformedLayout(tb testing.TB, table *testTable, batch int, output Output, dedup Dedup,
	rules ...string) *Layout {
	tb.Helper()
	p := &Plan{
		Table: "t", Snapshot: 1, BatchSize: batch, Output: output, Dedup: dedup, Features: slices.Clone(table.features),
	}
	var parsed []transform.Rule
	for _, text := range rules {
		r, err := transform.ParseRule(text)
		if err != nil {
			tb.Fatal(err)
		}
		parsed = append(parsed, r)
	}
	if err := p.TransformBy(parsed); err != nil {
		tb.Fatal(err)
	}
	l, err := table.newLayout(p)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Transforms allocate nothing in steady state, whatever their types.
func TestTransformAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	shape := plainShape{dense: 6, sparse: 6, weighted: 2, segments: 2, stripes: 64, stripeRows: 512, session: 8}
	table := plainTable(t, shape)
	for _, d := range table.segments[1:] { // features that a segment lacks
		for _, name := range []string{"dense1", "sparse1"} {
			i := slices.IndexFunc(table.features, func(f catalog.Feature) bool { return f.Name == name })
			delete(table.indexes[d.ID].entries, table.features[i].ID)
		}
	}
	for _, dedup := range []Dedup{DedupKJT, DedupIKJT, DedupPartial} {
		l := transformedLayout(t, table, 32, OutputTensors, dedup,
			"dense0=log1p|bucketize(1, 2, 5)|list", "dense1=fill(1)|cast(int8)|cast(float64)", "dense2=clamp(0, 10)",
			"sparse0=first(5)|hash(1000003, seed=7)", "sparse1=fill(1, 2)|mod(10)", "sparse2=log1p|cast(int32)|fill(3)",
			"sparse3=sigrid_hash(1000003)", "weighted0=first(3)|scores.cast(float64)|scores.log1p",
			"weighted1=fill|mod(7)")
		s := open(t, l, Options{Workers: 1, Requests: 1, Presence: true, MemoryBudget: 4 << 20})
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
		allocs, batches := testing.AllocsPerRun(3, scan), float64(l.Batches())
		t.Logf("%v: %.0f allocations in %v batches", dedup, allocs, batches)
		limit := batches / 4
		if race.Enabled {
			limit = batches
		}
		if allocs > limit {
			t.Errorf("%v: %.0f allocations for %v batches", dedup, allocs, batches)
		}
		s.Close()
	}
}

// Nanoseconds a value of each loop, over a stripe of lists.
func BenchmarkTransform(b *testing.B) {
	const slots, length = 4096, 20
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]int64, slots*length)
	singles := make([]float32, len(ids))
	for i := range ids {
		ids[i] = int64(rng.Uint64() >> 1)
		singles[i] = float32(rng.ExpFloat64())
	}
	offsets := make([]int32, slots+1)
	for i := range offsets {
		offsets[i] = int32(i * length)
	}
	for _, c := range []struct {
		elem  vector.Elem
		chain string
	}{
		{vector.Int64, "first(10)"}, {vector.Int64, "mod(1048576)"}, {vector.Int64, "mod(1000003)"}, {vector.Uint64,
			"mod(1000003)"},
		{vector.Int64, "hash(1000003)"}, {vector.Int64, "sigrid_hash(1000003)"}, {vector.Int64, "clamp(0, 1000)"},
		{vector.Float32, "clamp(0, 1)"}, {vector.Float32, "log1p"}, {vector.Float32, "bucketize(0.1, 0.5, 1, 2)"},
		{vector.Float32, "bucketize(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, " +
			"1.7, 1.8, 2, 3, 4, 5)"},
		{vector.Int64, "bucketize(1e18, 2e18, 4e18, 8e18)"}, {vector.Float32, "cast(int32)"}, {vector.Int64,
			"cast(int32)"}, {vector.Int64, "cast(float32)"},
		{vector.Int64, "first(10)|hash(1000003)"},
	} {
		b.Run(fmt.Sprintf("%v/%.40s", c.elem, c.chain), func(b *testing.B) {
			f := transform.Bound{Chain: mustParseChain(b, c.chain),
				StoredType: vector.Type{Kind: vector.Sparse, Elem: c.elem}}
			x, err := f.Compile()
			if err != nil {
				b.Fatal(err)
			}
			d := new(ioplan.Decoded)
			d.Stored = vector.Column{Type: f.StoredType, Rows: slots, Slots: slots}
			b.ReportAllocs()
			for b.Loop() {
				// What a decoder leaves: a copy is part of what is measured.
				d.Stored.Offsets = append(d.Stored.Offsets[:0], offsets...)
				if c.elem == vector.Float32 {
					d.Stored.Floats = append(d.Stored.Floats[:0], singles...)
				} else {
					d.Stored.Ints = append(d.Stored.Ints[:0], ids...)
				}
				d.Column = &d.Stored
				if err := d.Transform(x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/value")
			b.ReportMetric(0, "ns/op")
		})
	}
}
