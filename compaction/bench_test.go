package compaction

import (
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// BenchmarkRun merges the segments of 20 small ingests. It reports what the compaction writes of the bytes that the
// table has afterwards (write amplification), and how many rows per second it merges.
func BenchmarkRun(b *testing.B) {
	const ingests, rows = 20, 2000
	b.ReportAllocs()
	var written, stored uint64
	for b.Loop() {
		b.StopTimer()
		blobs := object.NewCounted(object.NewMemory())
		x := newTester(b, blobs, 1)
		for range ingests {
			x.ingest(x.newRows(rows, 1))
		}
		opts := x.options()
		opts.Full, opts.SegmentRows = true, 0
		before := blobs.Counts()
		b.StartTimer()
		x.compact(opts)
		b.StopTimer()
		written += uint64(blobs.Counts().Sub(before).BytesWritten)
		stored += x.latest().Info().Bytes
		b.StartTimer()
	}
	b.ReportMetric(float64(written)/float64(stored), "write-amplification")
	b.ReportMetric(float64(ingests*rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}
