package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// An index that lies, though its checksums are right, gives a CorruptError or batches: never a panic, a hang or a large
// allocation.
func TestUntrustedIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		if len(table.segments) == 0 {
			return
		}
		d := &table.segments[rapid.IntRange(0, len(table.segments)-1).Draw(t, "segment")]
		index := table.indexes[d.ID]
		number := func(old uint64) uint64 {
			return rapid.SampledFrom([]uint64{
				0, 1, old + 1, old - 1, old / 2, old * 2, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, math.MaxInt64,
				1 << 63, math.MaxUint64,
			}).Draw(t, "number")
		}
		number32 := func(old uint32) uint32 { return uint32(number(uint64(old))) }
		for range rapid.IntRange(1, 3).Draw(t, "lies") {
			var ids []catalog.FeatureID
			for id := range index.entries {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			what := rapid.IntRange(0, 18).Draw(t, "what")
			if len(ids) == 0 || what == 0 {
				i := rapid.IntRange(0, len(index.stripeRows)-1).Draw(t, "stripe")
				index.stripeRows[i] = number32(index.stripeRows[i])
				continue
			}
			id := rapid.SampledFrom(ids).Draw(t, "feature")
			e := *index.entries[id]
			m := *e.Meta
			m.Stripes = slices.Clone(m.Stripes)
			s := &m.Stripes[rapid.IntRange(0, len(m.Stripes)-1).Draw(t, "stripe")]
			s.Streams = slices.Clone(s.Streams)
			switch what {
			case 1:
				e.Offset = number(e.Offset)
			case 2:
				e.Length = number(e.Length)
			case 3:
				e.ObjectSize = number(e.ObjectSize) % (1 << 62)
			case 4:
				e.Object = "nowhere"
			case 16:
				m.Dictionary.Values = number32(m.Dictionary.Values)
			case 17:
				m.Dictionary.Length = number(m.Dictionary.Length)
			case 18:
				m.Salt = number32(m.Salt)
			case 5:
				s.Offset = number(s.Offset)
			case 6:
				s.Length = number(s.Length)
			case 7:
				s.Rows = number32(s.Rows)
			case 8:
				s.Slots = number32(s.Slots)
			case 9:
				s.Present = number32(s.Present)
			case 10:
				s.Runs = number32(s.Runs)
			case 11:
				s.Elements = number(s.Elements)
			case 12:
				m.Type = vectortest.DrawType(t)
			case 13:
				m.Group = rapid.SampledFrom([]uint64{0, 1, 1 << 40, 77}).Draw(t, "group")
			case 14:
				m.Stripes = m.Stripes[:len(m.Stripes)-1]
			case 15:
				if len(s.Streams) > 0 {
					x := &s.Streams[rapid.IntRange(0, len(s.Streams)-1).Draw(t, "stream")]
					x.Length = number(x.Length)
				}
			}
			e.Meta = &m
			if len(m.Stripes) == 0 && what != 14 {
				continue
			}
			index.entries[id] = &e
			if what == 14 {
				break
			}
		}
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		features := drawProjection(t, table)
		takeUntrusted(t, table.layout(features, 1, output))
		s := open(t, table.dedupLayout(features, drawBatchSize(t), output, drawDedup(t)), drawOptions(t))
		defer s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for {
			b, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				if !errors.Is(err, format.ErrCorrupt) {
					t.Fatalf("%v (%T)", err, err)
				}
				return
			}
			for _, c := range b.Columns {
				if c != nil && c.Validate() != nil {
					t.Fatalf("batch %d: %v", b.Index, c.Validate())
				}
			}
			b.Release()
		}
	})
}

// takeUntrusted takes some rows: a CorruptError, or a batch that is sound.
func takeUntrusted(t *rapid.T, l *Layout) {
	taker, err := l.Taker(Options{RoundIntegers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	b, err := taker.Take(context.Background(), drawPositions(t, int(l.Rows())))
	if err != nil {
		if !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("%v (%T)", err, err)
		}
		return
	}
	for _, c := range b.Columns {
		if c != nil && c.Validate() != nil {
			t.Fatalf("taken: %v", c.Validate())
		}
	}
	b.Release()
}

// One goroutine reads, seeks and closes at any time, others release and ask for statistics; what a batch holds is the
// model's until its Release.
func TestUseFromManyGoroutines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		l := table.dedupLayout(features, drawBatchSize(t), output, drawDedup(t))
		s := open(t, l, drawOptions(t))
		batches := make(chan *Batch, s.opts.MaxBatches)
		var wg sync.WaitGroup
		var wrong atomic.Pointer[string]
		for range 2 {
			wg.Go(func() {
				for b := range batches {
					checkBatch(failure{&wrong}, table, features, b, int(b.FirstRow))
					b.Release()
					_ = s.Stats()
				}
			})
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "seek") == 0 {
				p := Position{Batch: rapid.Uint64Range(0, s.Batches()).Draw(t, "position")}
				if err := s.Seek(p); err != nil || s.Position() != p {
					t.Fatal(err)
				}
			}
			want := s.Position().Batch
			b, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) && want == s.Batches() {
				continue
			}
			if err != nil || b.Index != want {
				t.Fatalf("%v at batch %d", err, want)
			}
			batches <- b
		}
		if rapid.Bool().Draw(t, "close first") {
			s.Close()
		}
		close(batches)
		wg.Wait()
		s.Close()
		s.Close()
		if w := wrong.Load(); w != nil {
			t.Fatal(*w)
		}
	})
}

// A failure collects what checkBatch finds in another goroutine than the test's.
type failure struct{ text *atomic.Pointer[string] }

func (f failure) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.text.CompareAndSwap(nil, &text)
}

// What a tensor makes of numbers that a float32 does not hold: the nearest, infinity beyond, and NaN and -0 as they
// are.
func TestTensorsRound(t *testing.T) {
	negativeZero := math.Copysign(0, -1)
	for _, c := range []struct {
		elem    vector.Elem
		ints    []int64
		doubles []float64
		want    []float32
	}{
		{elem: vector.Int64, ints: []int64{1<<24 + 1, math.MinInt64, -1}, want: []float32{1 << 24, -1 << 63, -1}},
		{elem: vector.Uint64, ints: []int64{-1, math.MinInt64, 3}, want: []float32{1 << 64, 1 << 63, 3}},
		{elem: vector.Bool, ints: []int64{1, 0, 1}, want: []float32{1, 0, 1}},
		{
			elem: vector.Float64, doubles: []float64{1e300, -1e300, 1e-300},
			want: []float32{float32(math.Inf(1)), float32(math.Inf(-1)), 0},
		},
		{
			elem: vector.Float64, doubles: []float64{math.NaN(), negativeZero, 0.1},
			want: []float32{float32(math.NaN()), float32(negativeZero), 0.1},
		},
	} {
		f := catalog.Feature{ID: 1, Name: "f", Type: vector.Type{Kind: vector.Dense, Elem: c.elem}}
		column := vector.NewColumn(f.Type)
		column.Ints, column.Doubles = c.ints, c.doubles
		for range 3 {
			column.AddSlot()
		}
		table := singleTable(t, f, column)
		s := open(t, table.layout([]int{0}, 3, OutputTensors), Options{RoundIntegers: true})
		b, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range b.Tensors.Dense.Values {
			if math.Float32bits(got) != math.Float32bits(c.want[i]) && !(got != got && c.want[i] != c.want[i]) {
				t.Errorf("%v: %v, want %v", c.elem, got, c.want[i])
			}
		}
		b.Release()
		s.Close()
	}
}

// singleTable is a table of one feature and one stripe.
func singleTable(t *testing.T, f catalog.Feature, c *vector.Column) *testTable {
	t.Helper()
	var file bytes.Buffer
	w, err := format.NewWriter(&file, f.Type, format.WriterOptions{Feature: uint64(f.ID), Name: f.Name})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteStripe(c); err != nil {
		t.Fatal(err)
	}
	meta, size, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(size)
	index := &testIndex{stripeRows: []uint32{uint32(c.Rows)}, entries: map[catalog.FeatureID]*segment.Entry{
		f.ID: {Object: "file", ObjectSize: n, Length: n, Meta: meta},
	}}
	return &testTable{
		model: model{features: []catalog.Feature{f}},
		blobs: &memoryBlobs{objects: map[string][]byte{"file": file.Bytes()}},
		segments: []catalog.SegmentDescriptor{{ID: "s",
			Rows: uint64(c.Rows)}}, indexes: map[string]*testIndex{"s": index},
	}
}
