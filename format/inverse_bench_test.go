package format

import (
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// BenchmarkInverse measures what makes an inverse of a stripe: sessions of 16.5 rows of which four in five repeat the
// one before. DSISTORE_SIMD=off measures the plain loops.
func BenchmarkInverse(b *testing.B) {
	const rows = 16384
	r := rand.New(rand.NewPCG(1, 1))
	changes := make(vector.Bitmap, vector.BitmapWords(rows))
	var runs, slots []int32
	start := 0
	for row := 1; row < rows; row++ {
		if r.IntN(5) == 0 {
			changes.Set(row)
			runs = append(runs, int32(row-start))
			start = row
		}
	}
	runs = append(runs, int32(rows-start))
	for range runs {
		slots = append(slots, int32(r.IntN(len(runs))))
	}
	inverse := make([]int32, rows)
	for _, x := range []struct {
		name string
		fill func() error
	}{
		{"runs", func() error { return fillRuns(inverse, runs, nil) }},
		{"runs-of-slots", func() error { return fillRuns(inverse, runs, slots) }},
		{"changes", func() error { return fillChanges(inverse, changes, len(runs)) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(4 * rows)
			for b.Loop() {
				if err := x.fill(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/value")
		})
	}
}
