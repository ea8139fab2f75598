package page_test

import (
	"io"
	"testing"

	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/tools/report/page/pagetest"
)

// BenchmarkWrite writes the page of 20,000 features.
func BenchmarkWrite(b *testing.B) {
	r := pagetest.Report(1, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := page.Write(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}
