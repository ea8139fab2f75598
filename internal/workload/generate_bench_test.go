package workload

import "testing"

// BenchmarkGenerate writes the profile "small" in each layout and order.
func BenchmarkGenerate(b *testing.B) {
	for _, o := range []Options{{Order: Interleaved, Layout: Flat}, {Order: Clustered, Layout: Flat},
		{Order: Interleaved, Layout: HiveMap}} {
		b.Run(string(o.Layout)+"/"+string(o.Order), func(b *testing.B) {
			for b.Loop() {
				s, err := Generate(b.Context(), b.TempDir(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.Bytes)/float64(s.Rows), "B/row")
				b.ReportMetric(s.Stats.RawBytes, "rawB/row")
				b.Logf("%+v", s)
			}
		})
	}
}
