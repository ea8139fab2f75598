package reader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkTake takes rows at random positions of 65,536: with a new Taker, and again with the same one. BenchmarkScan
// reads such tables whole.
func BenchmarkTake(b *testing.B) {
	table := plainTable(b, plainShape{dense: 10, sparse: 6, segments: 2, stripes: 2, stripeRows: 16384, session: 4})
	l := table.dedupLayout(indices(len(table.features)), 4096, OutputColumns, DedupKJT)
	newTaker := func(b *testing.B) *Taker {
		t, err := l.Taker(Options{Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		rows := make([]uint64, n)
		for i := range rows {
			rows[i] = rng.Uint64N(l.Rows())
		}
		slices.Sort(rows)
		take := func(b *testing.B, t *Taker) {
			batch, err := t.Take(context.Background(), rows)
			if err != nil {
				b.Fatal(err)
			}
			batch.Release()
		}
		b.Run(fmt.Sprintf("rows=%d/first", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t := newTaker(b)
				take(b, t)
				t.Close()
			}
		})
		b.Run(fmt.Sprintf("rows=%d/again", n), func(b *testing.B) {
			t := newTaker(b)
			defer t.Close()
			take(b, t)
			b.ReportAllocs()
			for b.Loop() {
				take(b, t)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
