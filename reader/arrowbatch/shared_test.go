package arrowbatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// sharedType returns the type that a feature's column has.
func sharedType(f testFeature, dedup reader.Dedup, opts Options) string {
	list := f.typ.Kind == vector.Sparse || f.typ.Kind == vector.Weighted
	switch {
	case dedup == reader.DedupKJT || opts.Plain || !list &&
		(!opts.Dictionaries || strings.HasPrefix(f.arrow, "extension")):
		return f.arrow
	case !list || dedup == reader.DedupIKJT:
		return fmt.Sprintf("dictionary<values=%s, indices=int32, ordered=false>", f.arrow)
	case f.logical == "map":
		return f.arrow
	}
	return strings.Replace(f.arrow, "list<", "list_view<", 1)
}

// Every type goes through an IPC stream as dictionary and as view, and has the rows that it has plain.
func TestSharedRows(t *testing.T) {
	inverse := []int32{0, 0, 1, 2, 2, 0, 1, 1, 2}
	for _, dedup := range []reader.Dedup{reader.DedupKJT, reader.DedupIKJT, reader.DedupPartial} {
		for _, opts := range []Options{{}, {Dictionaries: true}, {Plain: true, Dictionaries: true}} {
			for _, batch := range []int{1, 2, 3, 100} {
				var buf bytes.Buffer
				s := scanRows(t, testFeatures, inverse, reader.PlanOptions{BatchSize: batch, Dedup: dedup})
				if rows, err := Write(context.Background(), &buf, IPCStream, s, opts); err != nil ||
					rows != uint64(len(inverse)+1) {
					t.Fatalf("%d rows, %v", rows, err)
				}
				r, err := ipc.NewReader(&buf)
				if err != nil {
					t.Fatal(err)
				}
				got := make([][]string, len(testFeatures))
				for r.Next() {
					for i := range testFeatures {
						got[i] = append(got[i], rowsOf(t, []arrow.RecordBatch{r.RecordBatch()}, i)...)
					}
				}
				if r.Err() != nil {
					t.Fatal(r.Err())
				}
				for i, f := range testFeatures {
					if typ := r.Schema().Field(i).Type.String(); typ != sharedType(f, dedup, opts) {
						t.Errorf("%v: %s: type %s, want %s", dedup, f.name, typ, sharedType(f, dedup, opts))
					}
					var want []string
					for _, k := range inverse {
						want = append(want, []string{f.want[0], "null", f.want[1]}[k])
					}
					if want = append(want, "null"); !sameJSON(got[i], want) {
						t.Errorf("%v, batches of %d: %s: %v, want %v", dedup, batch, f.name, got[i], want)
					}
				}
				r.Release()
			}
		}
	}
}

// Rows that share long values have more together than an offset holds: an error, before memory is taken for them.
func TestSharedOfTooMuch(t *testing.T) {
	const rows = 1<<11 + 1
	text := vector.Type{Kind: vector.String}
	c := &vector.Column{Type: text, Rows: rows, Slots: 1, Data: make([]byte, 1<<20), Offsets: []int32{0, 1 << 20},
		Inverse: make([]int32, rows)}
	f := &featureColumn{leaf: newLeaf(text, "")}
	_, err := f.data(&reader.Batch{Rows: rows, Columns: []*vector.Column{c}})
	if err == nil || !strings.Contains(err.Error(), "use smaller batches") {
		t.Error(err)
	}
	list := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	parts := &vector.Column{Type: list, Rows: rows, Slots: rows, Ints: make([]int64, 1<<20),
		Offsets: make([]int32, rows), Lengths: slices.Repeat([]int32{1 << 20}, rows)}
	f = &featureColumn{leaf: newLeaf(list, ""), form: dictionaryForm}
	if _, err := f.data(&reader.Batch{Rows: rows, Columns: []*vector.Column{parts}}); err == nil {
		t.Error("a dictionary of slots that have more values than an offset holds")
	}
}

// A dictionary has an entry per slot and shares the batch's memory, and so do views.
func TestSharedMemory(t *testing.T) {
	features := []testFeature{{name: "ids", typ: sparse(vector.Int64), fill: ints([]int64{1, -2}, []int64{3})}}
	for _, dedup := range []reader.Dedup{reader.DedupIKJT, reader.DedupPartial} {
		s := scanRows(t, features, []int32{0, 0, 1, 2, 2, 0}, reader.PlanOptions{BatchSize: 6, Dedup: dedup})
		c, err := NewConverter(s.Plan(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rec, err := c.Record(b)
		if err != nil {
			t.Fatal(err)
		}
		var values arrow.Array
		switch x := rec.Column(0).(type) {
		case *array.Dictionary:
			if x.Dictionary().Len() != 3 || x.NullN() != 1 {
				t.Errorf("a dictionary of %d, %d nulls", x.Dictionary().Len(), x.NullN())
			}
			values = x.Dictionary().(*array.List).ListValues()
		case *array.ListView:
			values = x.ListValues()
		}
		ids := values.(*array.Int64).Int64Values()
		if len(ids) != 3 || &ids[0] != &b.Columns[0].Ints[0] {
			t.Errorf("%v: values %v are copied", dedup, ids)
		}
		rec.Release()
		b.Release()
	}
}

// Dictionaries that arrow-go's writer would take for the one before: as long, and about the same.
func TestNearlyEqualDictionaries(t *testing.T) {
	near := floats([]float32{1}, []float32{1.000001})
	features := []testFeature{{name: "x", typ: sparse(vector.Float32), fill: near}}
	s := scanRows(t, features, []int32{0, 2, 0, 2}, reader.PlanOptions{BatchSize: 1, Dedup: reader.DedupIKJT})
	var buf bytes.Buffer
	if _, err := Write(context.Background(), &buf, IPCStream, s, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for r.Next() {
		got = append(got, rowsOf(t, []arrow.RecordBatch{r.RecordBatch()}, 0)...)
	}
	if text := fmt.Sprint(got); text != "[[1] [1.000001] [1] [1.000001] null]" {
		t.Error(text)
	}
}

// What is folded is plain; Parquet is plain; an IPC file has views, and refuses dictionaries by name.
func TestSharedFoldAndFormats(t *testing.T) {
	inverse := []int32{0, 0, 1, 2, 2, 0}
	fold := func(dedup reader.Dedup) string {
		s := scanRows(t, foldFeatures, inverse, reader.PlanOptions{BatchSize: 4, Dedup: dedup})
		c, err := NewConverter(s.Plan(), Options{Fold: true})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for {
			b, err := s.Next(context.Background())
			if err != nil {
				break
			}
			rec, err := c.Record(b)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(rec)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(data))
			rec.Release()
			b.Release()
		}
		return fmt.Sprint(c.Schema().Field(1), out)
	}
	plain := fold(reader.DedupKJT)
	for _, dedup := range []reader.Dedup{reader.DedupIKJT, reader.DedupPartial} {
		if got := fold(dedup); got != plain {
			t.Errorf("%v:\n%s, want\n%s", dedup, got, plain)
		}
		var buf bytes.Buffer
		s := scanRows(t, testFeatures, inverse, reader.PlanOptions{BatchSize: 4, Dedup: dedup})
		if rows, err := Write(context.Background(), &buf, Parquet, s, Options{Dictionaries: true}); err != nil ||
			rows != 7 {
			t.Errorf("%v: %d rows, %v", dedup, rows, err)
		} else if pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes())); err != nil || pf.NumRows() != 7 {
			t.Errorf("%v: %v", dedup, err)
		}
		s = scanRows(t, testFeatures, inverse, reader.PlanOptions{BatchSize: 4, Dedup: dedup})
		_, err := Write(context.Background(), &buf, IPCFile, s, Options{})
		if dedup == reader.DedupIKJT && (err == nil || !strings.Contains(err.Error(),
			`column "ids" would be a dictionary`)) {
			t.Errorf("%v: %v", dedup, err)
		}
		if dedup == reader.DedupPartial && err != nil {
			t.Errorf("%v: %v", dedup, err)
		}
	}
}
