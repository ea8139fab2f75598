package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/format/vector"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
)

var recordsSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "price", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "narrow", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "history", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "vector", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64), Nullable: true},
	{Name: "weighted", Type: arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "score",
			Type: arrow.PrimitiveTypes.Float32})), Nullable: true},
	{Name: "part", Type: arrow.PrimitiveTypes.Int8},
}, nil)

// randomRecord returns rows of recordsSchema, cut out of more rows so that nothing starts at a byte's or a buffer's
// edge.
func randomRecord(mem memory.Allocator, rng *rand.Rand, rows int) arrow.RecordBatch {
	b := arrowarray.NewRecordBuilder(mem, recordsSchema)
	defer b.Release()
	before, after := rng.IntN(20), rng.IntN(20)
	history := b.Field(4).(*arrowarray.ListBuilder)
	fixed := b.Field(5).(*arrowarray.FixedSizeListBuilder)
	weighted := b.Field(6).(*arrowarray.ListBuilder)
	pair := weighted.ValueBuilder().(*arrowarray.StructBuilder)
	for range before + rows + after {
		for i := range 7 {
			if rng.IntN(4) == 0 {
				b.Field(i).AppendNull()
				continue
			}
			switch i {
			case 0:
				b.Field(0).(*arrowarray.Int64Builder).Append(rng.Int64())
			case 1:
				b.Field(1).(*arrowarray.Float32Builder).Append(rng.Float32())
			case 2:
				b.Field(2).(*arrowarray.Int16Builder).Append(int16(rng.Int()))
			case 3:
				b.Field(3).(*arrowarray.StringBuilder).Append(fmt.Sprint(rng.IntN(1000)))
			case 4:
				history.Append(true)
				for range rng.IntN(5) {
					history.ValueBuilder().(*arrowarray.Int64Builder).Append(rng.Int64())
				}
			case 5:
				fixed.Append(true)
				for range 3 {
					fixed.ValueBuilder().(*arrowarray.Float64Builder).Append(rng.Float64())
				}
			case 6:
				weighted.Append(true)
				for range rng.IntN(4) {
					pair.Append(true)
					pair.FieldBuilder(0).(*arrowarray.Int64Builder).Append(rng.Int64())
					pair.FieldBuilder(1).(*arrowarray.Float32Builder).Append(rng.Float32())
				}
			}
		}
		b.Field(7).(*arrowarray.Int8Builder).Append(int8(rng.IntN(2)))
	}
	whole := b.NewRecordBatch()
	defer whole.Release()
	for i, c := range whole.Columns()[:2] { // what stands under a null means nothing
		values, width := c.Data().Buffers()[1].Bytes(), 8-4*i
		for row := range c.Len() {
			if c.IsNull(row) {
				values[row*width]++
			}
		}
	}
	return whole.NewSlice(int64(before), int64(before+rows))
}

// memoryOf returns a copy of all buffers.
func memoryOf(records []arrow.RecordBatch) (out []byte) {
	var add func(arrow.ArrayData)
	add = func(d arrow.ArrayData) {
		for _, b := range d.Buffers() {
			if b != nil {
				out = append(out, b.Bytes()...)
			}
		}
		for _, c := range d.Children() {
			add(c)
		}
	}
	for _, rec := range records {
		for _, c := range rec.Columns() {
			add(c.Data())
		}
	}
	return out
}

// readerOf gives records that mem made, which it takes over.
func readerOf(t *testing.T, records []arrow.RecordBatch) arrowsource.RecordReader {
	t.Helper()
	r, err := arrowarray.NewRecordReader(recordsSchema, records)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		rec.Release()
	}
	return r
}

// joined returns the rows of all chunks, feature by feature, and partition by partition.
func joined(chunks []*Chunk) map[string]*vector.Column {
	out := map[string]*vector.Column{}
	for _, c := range chunks {
		for i, f := range c.Fields {
			key := f.Name + " of " + c.Partition.String()
			if out[key] == nil {
				out[key] = vector.NewColumn(f.Type)
			}
			out[key].AppendRows(c.Columns[i], 0, c.Rows)
		}
	}
	return out
}

// TestRecordsAreRowsOfTheirStream: records give the rows that the same records give as an IPC stream, of which
// everything is copied; they stay as they were, and nothing of them is held once every chunk is released.
func TestRecordsAreRowsOfTheirStream(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		var records []arrow.RecordBatch
		var stream bytes.Buffer
		w := ipc.NewWriter(&stream, ipc.WithSchema(recordsSchema))
		for range 1 + rng.IntN(3) {
			rec := randomRecord(mem, rng, rng.IntN(700))
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			records = append(records, rec)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		before := memoryOf(records)
		for _, rec := range records {
			rec.Retain()
		}
		opts := Options{Format: "arrow"}
		if rng.IntN(2) == 0 {
			opts.PartitionBy = []string{"part"}
		}
		want, err := fromStdin(t, stream.Bytes(), opts)
		if err != nil {
			t.Fatal(err)
		}
		wantChunks, err := readAll(t, want)
		if err != nil {
			t.Fatal(err)
		}
		resident := rng.IntN(2) == 0
		in := arrowsource.NewRecords(readerOf(t, records), resident)
		opts.Records = in
		got, err := fromStdin(t, nil, opts)
		if err != nil {
			t.Fatal(err)
		}
		gotChunks, err := readAll(t, got)
		if err != nil {
			t.Fatal(err)
		}
		want2, have := joined(wantChunks), joined(gotChunks)
		if len(want2) != len(have) {
			t.Fatalf("seed %d: %d columns: want %d", seed, len(have), len(want2))
		}
		for name, c := range want2 {
			if have[name] == nil || have[name].Rows != c.Rows {
				t.Fatalf("seed %d: %s: %d rows missing", seed, name, c.Rows)
			}
			for row := range c.Rows {
				if !vector.RowsEqual(c, row, have[name], row) {
					t.Fatalf("seed %d: %s: row %d differs", seed, name, row)
				}
			}
		}
		lent := int64(0)
		for _, c := range gotChunks {
			lent += c.Lent
		}
		if whole := opts.PartitionBy == nil; resident && whole && len(gotChunks) > 0 && lent == 0 || !resident &&
			lent > 0 {
			t.Errorf("seed %d: %d bytes lent, resident %v", seed, lent, resident)
		}
		if !bytes.Equal(memoryOf(records), before) {
			t.Fatalf("seed %d: the records were changed", seed)
		}
		if _, err := in.Sum(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		for _, c := range gotChunks {
			c.Release()
		}
		for _, rec := range records {
			rec.Release()
		}
		mem.AssertSize(t, 0)
	}
}

// TestRecordsFingerprint tells rows apart, and knows the same ones again.
func TestRecordsFingerprint(t *testing.T) {
	sum := func(seed uint64, opts Options) string {
		in := arrowsource.NewRecords(readerOf(t, []arrow.RecordBatch{randomRecord(memory.DefaultAllocator,
			rand.New(rand.NewPCG(seed, 2)), 50)}), true)
		defer in.Close()
		opts.Format, opts.Records = "arrow", in
		if _, err := in.Sum(); err == nil {
			t.Error("a fingerprint before anything was read")
		}
		s, err := fromStdin(t, nil, opts)
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := readAll(t, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			c.Release()
		}
		out, err := in.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if a, b := sum(1, Options{}), sum(1, Options{}); a != b {
		t.Errorf("the same rows have %s and %s", a, b)
	}
	if a, b := sum(1, Options{}), sum(2, Options{}); a == b {
		t.Errorf("other rows have %s too", a)
	}
}

// TestRecordsFingerprintKnowsBitmaps: the same words in memory, where a bitmap is in one and values are in the other,
// are other rows.
func TestRecordsFingerprintKnowsBitmaps(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "b", Type: arrow.PrimitiveTypes.Int64,
			Nullable: true},
	}, nil)
	column := func(bitmap []byte, values ...int64) arrow.Array {
		buffers, nulls := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(values))}, 0
		if bitmap != nil {
			buffers[0], nulls = memory.NewBufferBytes(bitmap), 1
		}
		return arrowarray.NewInt64Data(arrowarray.NewData(schema.Field(0).Type, len(values), buffers, nil, nulls, 0))
	}
	sum := func(a, b arrow.Array) string {
		r, err := arrowarray.NewRecordReader(schema, []arrow.RecordBatch{arrowarray.NewRecordBatch(schema,
			[]arrow.Array{a, b}, 2)})
		if err != nil {
			t.Fatal(err)
		}
		in := arrowsource.NewRecords(r, true)
		defer in.Close()
		s, err := fromStdin(t, nil, Options{Format: "arrow", Records: in})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, s); err != nil {
			t.Fatal(err)
		}
		out, err := in.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// In words, without what tells them apart: 2, 1, 7, 2, 2, 5, 6.
	if x, y := sum(column([]byte{1}, 7, 2), column(nil, 5, 6)), sum(column(nil, 1, 7),
		column([]byte{2}, 5, 6)); x == y {
		t.Errorf("other rows have %s too", x)
	}
}

// TestRecordsFingerprintKnowsEach: rows that differ in one respect alone are other rows.
func TestRecordsFingerprintKnowsEach(t *testing.T) {
	sum := func(name string, of arrow.DataType, batches ...string) string {
		schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: of, Nullable: true}}, nil)
		var records []arrow.RecordBatch
		for _, rows := range batches {
			rec, _, err := arrowarray.RecordFromJSON(memory.DefaultAllocator, schema,
				strings.NewReader(strings.ReplaceAll(rows, "a:", `"`+name+`":`)))
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, rec)
		}
		r, err := arrowarray.NewRecordReader(schema, records)
		if err != nil {
			t.Fatal(err)
		}
		in := arrowsource.NewRecords(r, true)
		defer in.Close()
		s, err := fromStdin(t, nil, Options{Format: "arrow", Records: in})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, s); err != nil {
			t.Fatal(err)
		}
		out, err := in.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	number, list := arrow.PrimitiveTypes.Int64, arrow.ListOf(arrow.PrimitiveTypes.Int64)
	for what, pair := range map[string][2]string{
		"presence":      {sum("x", number, `[{a: 1}, {a: 0}]`), sum("x", number, `[{a: 1}, {a: null}]`)},
		"null or empty": {sum("x", list, `[{a: [1]}, {a: []}]`), sum("x", list, `[{a: [1]}, {a: null}]`)},
		"lengths":       {sum("x", list, `[{a: [1, 2]}, {a: [3]}]`), sum("x", list, `[{a: [1]}, {a: [2, 3]}]`)},
		"values":        {sum("x", list, `[{a: [1, 2]}]`), sum("x", list, `[{a: [1, 3]}]`)},
		"names":         {sum("x", number, `[{a: 1}]`), sum("y", number, `[{a: 1}]`)},
		"types":         {sum("x", number, `[{a: 1}]`), sum("x", arrow.PrimitiveTypes.Uint64, `[{a: 1}]`)},
		"rows of nulls": {sum("x", arrow.Null, `[{a: null}]`), sum("x", arrow.Null, `[{a: null}, {a: null}]`)},
		"batches":       {sum("x", number, `[{a: 1}, {a: 2}]`), sum("x", number, `[{a: 1}]`, `[{a: 2}]`)},
	} {
		if pair[0] == pair[1] {
			t.Errorf("rows that differ in %s have the same fingerprint", what)
		}
	}
}

// A releasedReader says when it was released.
type releasedReader struct {
	arrowsource.RecordReader
	released chan struct{}
}

func (r *releasedReader) Release() {
	r.RecordReader.Release()
	close(r.released)
}

// TestClosedRecordsKeepNothing: the reader, and the record that it had ready, are released, also where nothing was
// read.
func TestClosedRecordsKeepNothing(t *testing.T) {
	for _, read := range []int{0, 1} {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		rng := rand.New(rand.NewPCG(1, 1))
		r := &releasedReader{readerOf(t, []arrow.RecordBatch{randomRecord(mem, rng, 5), randomRecord(mem, rng, 5),
			randomRecord(mem, rng, 5)}), make(chan struct{})}
		in := arrowsource.NewRecords(r, false)
		for range read {
			rec, err := in.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rec.Release()
		}
		in.Close()
		select {
		case <-r.released:
		case <-time.After(time.Minute):
			t.Fatalf("after %d records: the reader is never released", read)
		}
		mem.AssertSize(t, 0)
	}
}

// A stuckReader never returns from Next until it is let go.
type stuckReader struct {
	arrowsource.RecordReader
	let, released chan struct{}
}

func (r *stuckReader) Next() bool { <-r.let; return false }
func (r *stuckReader) Err() error { return nil }
func (r *stuckReader) Release()   { close(r.released) }

// TestStuckRecordsDelayNothing: a cancelled read ends while its reader does not, which is released when it comes back.
func TestStuckRecordsDelayNothing(t *testing.T) {
	r := &stuckReader{let: make(chan struct{}), released: make(chan struct{})}
	in := arrowsource.NewRecords(r, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := in.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	in.Close()
	close(r.let)
	<-r.released
}

// TestRecordsOfNothing: without a record the schema is the reader's; closed records give an error.
func TestRecordsOfNothing(t *testing.T) {
	in := arrowsource.NewRecords(readerOf(t, nil), true)
	s, err := fromStdin(t, nil, Options{Format: "arrow", Records: in})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(context.Background()); err != io.EOF || len(s.Fields()) != len(recordsSchema.Fields()) {
		t.Errorf("%d fields, %v", len(s.Fields()), err)
	}
	in.Close()
	in = arrowsource.NewRecords(readerOf(t, nil), true)
	in.Close()
	if _, err := fromStdin(t, nil, Options{Format: "arrow", Records: in}); !errors.Is(err,
		arrowsource.ErrRecordsClosed) {
		t.Errorf("closed: %v", err)
	}
}
