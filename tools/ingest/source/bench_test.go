package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestThroughput reads the file that DSISTORE_BENCH_FILE names and prints how fast that was.
func TestThroughput(t *testing.T) {
	path := os.Getenv("DSISTORE_BENCH_FILE")
	if path == "" {
		t.Skip("DSISTORE_BENCH_FILE names no file")
	}
	for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
		ctx := context.Background()
		files, err := Discover(ctx, []string{path}, Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		rows, raw, peak := 0, 0, uint64(0)
		for _, f := range files {
			s, err := f.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; ; n++ {
				c, err := s.Next(ctx)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				rows += c.Rows
				for _, col := range c.Columns {
					raw += col.SizeBytes()
				}
				var m runtime.MemStats
				if n%8 == 0 {
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapInuse)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		d := time.Since(start).Seconds()
		size := int64(0)
		for _, f := range files {
			size += f.Size
		}
		fmt.Printf("%d threads: %.0f rows/s, %.0f MB/s of file, %.0f MB/s decoded, %d rows, heap in use up to %d MB\n",
			threads, float64(rows)/d, float64(size)/1e6/d, float64(raw)/1e6/d, rows, peak>>20)
	}
}
