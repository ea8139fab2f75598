package workload

import (
	"math"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// SamplesPerSession and Changed are what the table has.
func TestKnobs(t *testing.T) {
	for _, samples := range []float64{1, 4, 16.5, 64} {
		for _, changed := range []float64{1, 0.5, 0.05} {
			tr := truth(t, Options{Rows: 20_000, Sparse: 10, Dense: 10, Order: Clustered, SamplesPerSession: samples,
				Changed: changed})
			sessions, step := 0.0, stepsOf(t, tr)
			for _, s := range step {
				if s == 0 {
					sessions++
				}
			}
			if got := float64(len(step)) / sessions; math.Abs(got-samples) > 0.1*samples {
				t.Errorf("%.2f samples/session: want %v", got, samples)
			}
			for i, f := range tr.Features() {
				if f.Family != UserHistory && f.Family != UserWeighted {
					continue
				}
				c, err := tr.Column(i, 0, tr.Rows())
				if err != nil {
					t.Fatal(err)
				}
				pairs, differ := 0.0, 0.0
				for row, s := range step {
					if s > 0 && !c.IsNull(row) {
						pairs++
						if !vector.RowsEqual(c, row, c, row-1) {
							differ++
						}
					}
				}
				if pairs > 1000 && math.Abs(differ/pairs-changed) > 0.05 {
					t.Errorf("%v samples: %s differs from the sample before in %.3f of them, want %v", samples, f.Name,
						differ/pairs, changed)
				}
			}
		}
	}
	for _, o := range []Options{{SamplesPerSession: 0.5}, {SamplesPerSession: math.NaN()}, {SamplesPerSession: 1e9},
		{Changed: -1}, {Changed: 2}, {Changed: math.NaN()}} {
		if _, err := NewTruth(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
