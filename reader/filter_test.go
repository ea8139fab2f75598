package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// A drawnFilter is a filter as text and as the model has it.
type drawnFilter struct {
	text string
	// holds: 1 true, -1 false, 0 unknown.
	holds func(row []value) int
}

func sign(b bool) int {
	if b {
		return 1
	}
	return -1
}

func drawCondition(t *rapid.T, table *testTable) drawnFilter {
	f := rapid.IntRange(0, len(table.features)-1).Draw(t, "feature")
	x := table.features[f]
	typ := x.Type
	n := rapid.SampledFrom([]int64{0, 1, 100, -7}).Draw(t, "n")
	switch {
	case IsPartitionKey(x):
		return drawnFilter{x.Name + " >= '2'", func(row []value) int {
			if row[f].null {
				return 0
			}
			return sign(row[f].text >= "2")
		}}
	case rapid.IntRange(0, 3).Draw(t, "null") == 0:
		return drawnFilter{x.Name + " IS NULL", func(row []value) int { return sign(row[f].null) }}
	case typ.Kind == vector.String || typ.Kind == vector.Bytes:
		return drawnFilter{x.Name + " < 'm'", func(row []value) int {
			if row[f].null {
				return 0
			}
			return sign(row[f].text < "m")
		}}
	case typ.Kind == vector.Embedding:
		return drawnFilter{x.Name + " IS NOT NULL", func(row []value) int { return -sign(row[f].null) }}
	}
	above := func(v number64) bool {
		switch {
		case typ.Elem == vector.Uint64:
			return n < 0 || uint64(v.i) > uint64(n)
		case typ.Elem.IsInteger():
			return v.i > n
		}
		return v.f > float64(n)
	}
	switch {
	case typ.Kind == vector.Dense:
		return drawnFilter{fmt.Sprintf("%s > %d", x.Name, n), func(row []value) int {
			if row[f].null {
				return 0
			}
			return sign(above(row[f].numbers[0]))
		}}
	case n == 1:
		return drawnFilter{fmt.Sprintf("len(%s) > 1", x.Name), func(row []value) int {
			if row[f].null {
				return 0
			}
			return sign(len(row[f].numbers) > 1)
		}}
	}
	return drawnFilter{fmt.Sprintf("any(%s) > %d", x.Name, n), func(row []value) int {
		if row[f].null {
			return 0
		}
		return sign(slices.ContainsFunc(row[f].numbers, above))
	}}
}

func drawFilter(t *rapid.T, table *testTable) drawnFilter {
	out := drawCondition(t, table)
	for range rapid.IntRange(0, 2).Draw(t, "more conditions") {
		a, b := out, drawCondition(t, table)
		switch rapid.IntRange(0, 2).Draw(t, "joined by") {
		case 0:
			out = drawnFilter{"(" + a.text + ") AND " + b.text,
				func(row []value) int { return min(a.holds(row), b.holds(row)) }}
		case 1:
			out = drawnFilter{"(" + a.text + ") OR " + b.text,
				func(row []value) int { return max(a.holds(row), b.holds(row)) }}
		case 2:
			out = drawnFilter{"NOT (" + a.text + ")", func(row []value) int { return -a.holds(row) }}
		}
	}
	return out
}

// parse types a filter against the table's features.
func (table *testTable) parse(t interface{ Fatal(...any) }, text string) (*expr.Filter, []catalog.Feature) {
	find := func(name string) catalog.Feature {
		return table.features[slices.IndexFunc(table.features, func(f catalog.Feature) bool { return f.Name == name })]
	}
	f, err := expr.ParseFilter(text, func(names []string) ([]expr.Field, error) {
		var out []expr.Field
		for _, n := range names {
			x := find(n)
			out = append(out, expr.Field{Partition: IsPartitionKey(x), Type: x.Type})
		}
		return out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var features []catalog.Feature
	for _, n := range f.Features() {
		features = append(features, find(n))
	}
	return f, features
}

// A filtered scan gives the rows that the model selects, and reads no stripe that has none; a second one gives the same
// out of what was kept.
func TestFilterEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := smallShape
		shape.whole = true
		table := drawTable(t, shape)
		filter := drawFilter(t, table)
		var want []int
		for r, row := range table.rows {
			if filter.holds(row) > 0 {
				want = append(want, r)
			}
		}
		features := drawProjection(t, table)
		f, filterFeatures := table.parse(t, filter.text)
		kept := NewSelections(rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "kept bytes"))
		for range 2 {
			l := table.dedupLayout(features, drawBatchSize(t),
				rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output"), drawDedup(t))
			l.rowSelectRatio, l.gatheredRun = drawRowSelectRatio(t)
			opts := drawOptions(t)
			err := l.filter(context.Background(), f, filterFeatures, LayoutOptions{Read: opts, Selections: kept})
			if err != nil {
				t.Fatal(err)
			}
			if p := l.Pruning(); l.Rows() != uint64(len(want)) || p.RowsSelected != l.Rows() ||
				p.Rows != uint64(len(table.rows)) {
				t.Fatalf("%s: %d rows, want %d: %+v", filter.text, l.Rows(), len(want), p)
			}
			s := open(t, l, opts)
			row := 0
			for {
				b, err := s.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				checkRows(t, table, features, b, want[row:row+b.Rows])
				row += b.Rows
				b.Release()
			}
			if err := s.Close(); err != nil || row != len(want) {
				t.Fatalf("%d rows of %d: %v", row, len(want), err)
			}
		}
	})
}

// TestFilterPrunes counts what is read: nothing of what statistics and partitions decide, nothing the second time.
func TestFilterPrunes(t *testing.T) {
	table := sessionsOfStripes(t)
	f, features := table.parse(t, "row >= 30 AND row < 45")
	kept := NewSelections(1 << 20)
	l := table.layout([]int{0}, 4, OutputColumns)
	reads := len(table.blobs.reads)
	if err := l.filter(t.Context(), f, features, LayoutOptions{Selections: kept}); err != nil {
		t.Fatal(err)
	}
	// Stripes of ten rows, three a segment: 30 to 39 is the first of the second one, whole, and 40 to 49 has five.
	p := *l.Pruning()
	if p.SegmentsNever != 3 || p.StripesAlways != 1 || p.StripesEvaluated != 1 || p.StripesNever != 1 ||
		p.RowsSelected != 15 {
		t.Fatalf("%+v", p)
	}
	if n := len(table.blobs.reads) - reads; n != 1 || p.Requests != 1 {
		t.Fatalf("%d reads to filter, %+v", n, p)
	}
	cost, err := l.Cost(t.Context(), Options{})
	if err != nil || cost.Stripes != 2 || cost.Rows != 15 {
		t.Fatalf("%+v, %v", cost, err)
	}
	reads = len(table.blobs.reads)
	again := table.layout([]int{0}, 4, OutputColumns)
	if err := again.filter(t.Context(), f, features, LayoutOptions{Selections: kept}); err != nil {
		t.Fatal(err)
	}
	if p := again.Pruning(); len(table.blobs.reads) != reads || p.SegmentsKept != 4 || again.Rows() != 15 {
		t.Fatalf("the second time: %+v", p)
	}
}

// sessionsOfStripes returns four segments of three stripes of ten rows; the feature row is the number of the row.
func sessionsOfStripes(t *testing.T) *testTable {
	table := &testTable{blobs: &memoryBlobs{objects: map[string][]byte{}}, indexes: map[string]*testIndex{}}
	table.features = []catalog.Feature{{ID: 1, Name: "row", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}}
	for i := range 4 {
		name := fmt.Sprintf("seg%d", i)
		var file strings.Builder
		w, err := format.NewWriter(&file, table.features[0].Type, format.WriterOptions{Feature: 1, Name: "row"})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			c := vector.NewColumn(table.features[0].Type)
			for r := range 10 {
				c.Ints = append(c.Ints, int64(30*i+10*k+r))
				c.AddSlot()
				table.rows = append(table.rows, []value{{numbers: []number64{{i: int64(30*i + 10*k + r)}}}})
			}
			if err := w.WriteStripe(c); err != nil {
				t.Fatal(err)
			}
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		table.blobs.objects[name] = []byte(file.String())
		d := catalog.SegmentDescriptor{ID: name, Rows: 30, Index: name + "/index", Objects: 1}
		table.segments = append(table.segments, d)
		table.indexes[name] = &testIndex{stripeRows: []uint32{10, 10, 10},
			entries: map[catalog.FeatureID]*segment.Entry{
				1: {Object: name, Length: uint64(file.Len()), ObjectSize: uint64(file.Len()), Meta: meta},
			}}
	}
	return table
}

// TestFilterFails: of several damaged segments the first in order is reported, and a ctx that ends stops the filter.
func TestFilterFails(t *testing.T) {
	table := sessionsOfStripes(t)
	f, features := table.parse(t, "row != 45 AND row != 75")
	for _, name := range []string{"seg1", "seg2"} {
		data := table.blobs.objects[name]
		for i := range data {
			data[i] ^= 0x55
		}
	}
	l := table.layout([]int{0}, 4, OutputColumns)
	var corrupt *format.CorruptError
	err := l.filter(t.Context(), f, features, LayoutOptions{Selections: NewSelections(0)})
	if !errors.As(err, &corrupt) || corrupt.Object != "seg1" || corrupt.Feature != "row" || corrupt.Stripe != 1 {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.filter(ctx, f, features, LayoutOptions{Selections: NewSelections(0)}); !errors.Is(err,
		context.Canceled) {
		t.Fatalf("after its ctx has ended: %v", err)
	}
}

// A segment may have more rows than can be selected from: what partitions and statistics rule out is left out, and the
// rest is an error. The rows of the segment are of one stripe of 0 and 256 of 1, of 2^24 rows each.
func TestFilterOfTooManyRows(t *testing.T) {
	const stripes, rows = 257, 1 << 24
	table := &testTable{blobs: &memoryBlobs{objects: map[string][]byte{}}, indexes: map[string]*testIndex{}}
	table.features = []catalog.Feature{{ID: 1, Name: "n", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}}
	var file strings.Builder
	w, err := format.NewWriter(&file, table.features[0].Type, format.WriterOptions{Feature: 1, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for k := range stripes {
		c := vector.NewColumn(table.features[0].Type)
		c.Ints = append(c.Ints, int64(min(k, 1)))
		c.AddSlot()
		if err := w.WriteStripe(c); err != nil {
			t.Fatal(err)
		}
	}
	meta, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	meta.Rows = stripes * rows
	for k := range meta.Stripes {
		meta.Stripes[k].Rows = rows
	}
	table.segments = []catalog.SegmentDescriptor{{ID: "s", Rows: stripes * rows, Index: "s/index", Objects: 1}}
	table.indexes["s"] = &testIndex{stripeRows: slices.Repeat([]uint32{rows}, stripes),
		entries: map[catalog.FeatureID]*segment.Entry{
			1: {Object: "s", Length: uint64(file.Len()), ObjectSize: uint64(file.Len()), Meta: meta},
		}}
	for text, want := range map[string]struct {
		rows uint64
		err  string
	}{
		"n = 7":  {},
		"n >= 0": {rows: stripes * rows},
		"n = 1":  {err: "segment s: 4311744512 rows are too many to select from: want at most 4294967295"},
	} {
		f, features := table.parse(t, text)
		l := table.layout([]int{0}, 4, OutputColumns)
		err := l.filter(t.Context(), f, features, LayoutOptions{Selections: NewSelections(0)})
		switch {
		case want.err != "" && (err == nil || err.Error() != want.err):
			t.Errorf("%s: %v, want %s", text, err, want.err)
		case want.err == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want.err == "" && l.Rows() != want.rows:
			t.Errorf("%s: %d rows", text, l.Rows())
		}
	}
}

// What a layout tells of its filter does not keep what the filter was evaluated with.
func TestPruningKeepsNothing(t *testing.T) {
	table := sessionsOfStripes(t)
	l := table.layout([]int{0}, 4, OutputColumns)
	filtered := func() weak.Pointer[expr.Filter] { // a filter executor has its filter
		f, features := table.parse(t, "row >= 30 AND row < 45")
		if err := l.filter(t.Context(), f, features, LayoutOptions{Selections: NewSelections(0)}); err != nil {
			t.Fatal(err)
		}
		return weak.Make(f)
	}()
	for range 3 {
		runtime.GC()
	}
	if filtered.Value() != nil {
		t.Error("the filter executor is still there")
	}
	if p := l.Pruning(); p.RowsSelected != 15 || p.StripesEvaluated != 1 {
		t.Errorf("%+v", p)
	}
}

// Options.Requests bounds what a filter reads at once, of all segments together.
func TestFilterReadsWithinRequests(t *testing.T) {
	table := sessionsOfStripes(t)
	f, features := table.parse(t, "row != 5 AND row != 35 AND row != 65 AND row != 95")
	for _, requests := range []int{1, 2} {
		var mu sync.Mutex
		now, most := 0, 0
		table.blobs.hook = func(context.Context, string, []byte, int64) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond) // for others to come, if they may
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		l := table.layout([]int{0}, 4, OutputColumns)
		opts := LayoutOptions{Read: Options{Requests: requests, Workers: 4}, Selections: NewSelections(0)}
		if err := l.filter(t.Context(), f, features, opts); err != nil {
			t.Fatal(err)
		}
		if most > requests || l.Rows() != 116 {
			t.Errorf("%d reads at once of %d; %d rows", most, requests, l.Rows())
		}
	}
}

// What a filter reads at once, from a disk and from an object store, fits Options.MemoryBudget, also where a stripe is
// more than a share of it.
func TestFilterMemory(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 4, stripes: 16, stripeRows: 2000})
	f, features := table.parse(t, "len(sparse0) > 15")
	for _, budget := range []int64{1, 1 << 20, 16 << 20} {
		nearAndFar(t, func(t *testing.T, far bool) {
			table.blobs.far = far
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most, largest := 0, 0, 0
				table.blobs.hook = func(_ context.Context, _ string, p []byte, _ int64) error {
					mu.Lock()
					largest = max(largest, len(p))
					now += len(p)
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now -= len(p)
					mu.Unlock()
					return nil
				}
				l := table.layout([]int{0}, 4, OutputColumns)
				opts := LayoutOptions{Read: Options{MemoryBudget: budget, Workers: 64}, Selections: NewSelections(0)}
				if err := l.filter(t.Context(), f, features, opts); err != nil {
					t.Fatal(err)
				}
				if most > max(int(budget), largest) || most < min(int(budget)/8, 4*largest) {
					t.Errorf("%d bytes were read at once of %d, %d with one request", most, budget, largest)
				}
			})
		})
	}
}
