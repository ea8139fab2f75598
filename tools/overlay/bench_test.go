package overlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

const benchRows = 1 << 20

// benchFile writes an Arrow file of keys, in a random order, and a column of 0 and 1.
func benchFile(b *testing.B, seed uint64, column string) string {
	b.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: column, Type: arrow.PrimitiveTypes.Int8},
	}, nil)
	path := filepath.Join(b.TempDir(), "rows.arrow")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		b.Fatal(err)
	}
	build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer build.Release()
	keys := r.Perm(benchRows)
	for len(keys) > 0 {
		n := min(len(keys), 1<<16)
		for _, k := range keys[:n] {
			build.Field(0).(*array.Int64Builder).Append(int64(k) * 7919)
			build.Field(1).(*array.Int8Builder).Append(int8(r.IntN(2)))
		}
		keys = keys[n:]
		rec := build.NewRecordBatch()
		if err := w.Write(rec); err != nil {
			b.Fatal(err)
		}
		rec.Release()
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkAdd makes a label of 0 and 1 for 2^20 rows: computed, joined in memory, joined on disk.
func BenchmarkAdd(b *testing.B) {
	s, err := storage.Create(b.Context(), object.NewMemory(), storage.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := ingest.Run(b.Context(), s, "ads", []string{benchFile(b, 1, "click")}, ingest.Options{}); err != nil {
		b.Fatal(err)
	}
	labels := benchFile(b, 2, "label")
	n := 0
	for _, c := range []struct {
		name string
		opts Options
	}{
		{"expression", Options{Exprs: []string{"y = click = 1"}}},
		{"join", Options{From: []string{labels}, Key: []string{"id"}}},
		{"spilled", Options{From: []string{labels}, Key: []string{"id"}, Memory: 16 << 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.opts.TempDir = b.TempDir()
			for b.Loop() {
				n++
				r, err := Add(b.Context(), s, "ads", fmt.Sprint("o", n), c.opts)
				if err != nil {
					b.Fatal(err)
				}
				if r.Covered != benchRows || (r.Spills > 0) != (c.name == "spilled") {
					b.Fatalf("%+v", r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}
