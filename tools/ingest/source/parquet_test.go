package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	parquetsource "github.com/dsistore/dsistore/tools/ingest/source/parquet"
	"pgregory.net/rapid"
)

// readBytes reads data as a file called name.
func readBytes(t *testing.T, name string, data []byte, opts Options) ([]*Chunk, error) {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return readPath(t, p, opts)
}

// A modelRow is a row of the round trip; a nil pointer or slice is null.
type modelRow struct {
	i    *int32
	s    *string
	f    *float64
	ids  []int64
	pair []modelPair
	m    []modelEntry
}

type modelPair struct {
	id    int64
	score float32
}

type modelEntry struct {
	key   string
	value int64
}

func genRow(keys []string) *rapid.Generator[modelRow] {
	return rapid.Custom(func(t *rapid.T) modelRow {
		var r modelRow
		if rapid.Bool().Draw(t, "i?") {
			r.i = new(rapid.Int32().Draw(t, "i"))
		}
		if rapid.Bool().Draw(t, "s?") {
			r.s = new(rapid.StringN(0, 5, 20).Draw(t, "s"))
		}
		if rapid.Bool().Draw(t, "f?") {
			r.f = new(rapid.Float64().Draw(t, "f"))
		}
		if rapid.Bool().Draw(t, "ids?") {
			r.ids = append([]int64{}, rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 6).Draw(t, "ids")...)
		}
		if rapid.Bool().Draw(t, "pair?") {
			r.pair = []modelPair{}
			for range rapid.IntRange(0, 3).Draw(t, "pairs") {
				r.pair = append(r.pair, modelPair{rapid.Int64().Draw(t, "id"), rapid.Float32().Draw(t, "score")})
			}
		}
		if rapid.Bool().Draw(t, "m?") {
			r.m = []modelEntry{}
			for _, k := range keys {
				if rapid.Bool().Draw(t, "key") {
					r.m = append(r.m, modelEntry{k, rapid.Int64().Draw(t, "v")})
				}
			}
		}
		return r
	})
}

var modelSchema = arrow.NewSchema([]arrow.Field{
	{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "pair", Type: arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "score",
			Type: arrow.PrimitiveTypes.Float32},
	)), Nullable: true},
	{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true},
}, nil)

func modelRecord(rows []modelRow) arrow.RecordBatch {
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, modelSchema)
	defer b.Release()
	ids := b.Field(3).(*arrowarray.ListBuilder)
	pair := b.Field(4).(*arrowarray.ListBuilder)
	pairs := pair.ValueBuilder().(*arrowarray.StructBuilder)
	m := b.Field(5).(*arrowarray.MapBuilder)
	for _, r := range rows {
		if r.i == nil {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*arrowarray.Int32Builder).Append(*r.i)
		}
		if r.s == nil {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*arrowarray.StringBuilder).Append(*r.s)
		}
		if r.f == nil {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*arrowarray.Float64Builder).Append(*r.f)
		}
		ids.Append(r.ids != nil)
		for _, v := range r.ids {
			ids.ValueBuilder().(*arrowarray.Int64Builder).Append(v)
		}
		pair.Append(r.pair != nil)
		for _, p := range r.pair {
			pairs.Append(true)
			pairs.FieldBuilder(0).(*arrowarray.Int64Builder).Append(p.id)
			pairs.FieldBuilder(1).(*arrowarray.Float32Builder).Append(p.score)
		}
		m.Append(r.m != nil)
		for _, e := range r.m {
			m.KeyBuilder().(*arrowarray.StringBuilder).Append(e.key)
			m.ItemBuilder().(*arrowarray.Int64Builder).Append(e.value)
		}
	}
	return b.NewRecordBatch()
}

// modelCells is what the cells of a row should print as.
func modelCells(r modelRow, keys []string) map[string]string {
	list := func(n int, item func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = item(i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	out := map[string]string{"i": "null", "s": "null", "f": "null", "ids": "null", "pair": "null", "m": "null"}
	if r.i != nil {
		out["i"] = fmt.Sprint(*r.i)
	}
	if r.s != nil {
		out["s"] = fmt.Sprintf("%q", *r.s)
	}
	if r.f != nil {
		out["f"] = fmt.Sprint(*r.f)
	}
	if r.ids != nil {
		out["ids"] = list(len(r.ids), func(i int) string { return fmt.Sprint(r.ids[i]) })
	}
	if r.pair != nil {
		out["pair"] = list(len(r.pair), func(i int) string { return fmt.Sprint(r.pair[i].id, ":", r.pair[i].score) })
		out["pair"] = strings.ReplaceAll(out["pair"], " ", "")
	}
	for _, k := range keys {
		out["m."+k] = "null"
	}
	if r.m != nil {
		out["m"] = "1"
		for _, e := range r.m {
			out["m."+e.key] = fmt.Sprint(e.value)
		}
	}
	return out
}

func checkModel(t *rapid.T, chunks []*Chunk, rows []modelRow, keys []string) {
	at := 0
	for _, c := range chunks {
		for r := range c.Rows {
			want := modelCells(rows[at], keys)
			for i, f := range c.Fields {
				if got := cellText(c.Columns[i], r); got != want[f.Name] {
					t.Fatalf("row %d, %s: got %s, want %s", at, f.Name, got, want[f.Name])
				}
				delete(want, f.Name)
			}
			for name, w := range want {
				if w != "null" {
					t.Fatalf("row %d: no feature %s, want %s", at, name, w)
				}
			}
			at++
		}
	}
	if at != len(rows) {
		t.Fatalf("%d rows, want %d", at, len(rows))
	}
}

func writeParquet(rec arrow.RecordBatch, props ...parquet.WriterProperty) ([]byte, error) {
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, parquet.NewWriterProperties(props...),
		pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	err = w.Close()
	return buf.Bytes(), err
}

func TestParquetRoundTrip(t *testing.T) {
	keys := []string{"a", "b", "c"}
	codecs := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd,
		compress.Codecs.Gzip, compress.Codecs.Lz4Raw, compress.Codecs.Brotli}
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(genRow(keys), 0, 60).Draw(rt, "rows")
		rec := modelRecord(rows)
		defer rec.Release()
		version := parquet.DataPageV1
		if rapid.Bool().Draw(rt, "v2") {
			version = parquet.DataPageV2
		}
		ints := rapid.SampledFrom([]parquet.Encoding{parquet.Encodings.Plain,
			parquet.Encodings.DeltaBinaryPacked}).Draw(rt, "ints")
		data, err := writeParquet(rec, parquet.WithCompression(rapid.SampledFrom(codecs).Draw(rt, "codec")),
			parquet.WithDataPageVersion(version), parquet.WithDictionaryDefault(rapid.Bool().Draw(rt, "dictionary")),
			parquet.WithEncodingFor("i", ints), parquet.WithEncodingFor("ids.list.element", ints),
			parquet.WithEncodingFor("m.key_value.value", ints),
			parquet.WithMaxRowGroupLength(int64(rapid.IntRange(1, 40).Draw(rt, "group"))),
			parquet.WithDataPageSize(int64(rapid.SampledFrom([]int{1, 64, 1 << 20}).Draw(rt, "page"))),
			parquet.WithBatchSize(3))
		if err != nil {
			rt.Fatal(err)
		}
		chunks, err := readBytes(t, "x.parquet", data, Options{
			ChunkBytes: int64(rapid.SampledFrom([]int{1, 100, 1 << 20}).Draw(rt, "chunk")),
			PageBytes:  int64(rapid.SampledFrom([]int{1, 300, 0}).Draw(rt, "held")),
		})
		if err != nil {
			rt.Fatal(err)
		}
		checkModel(rt, chunks, rows, keys)
	})
}

// TestParquetLists reads the list [1, 2], the empty list, null where the form has it, and [3], in every form that
// writers have given lists.
func TestParquetLists(t *testing.T) {
	rep := parquet.Repetitions
	prim := func(name string, r parquet.Repetition) schema.Node { return schema.NewInt32Node(name, r, -1) }
	group := func(name string, r parquet.Repetition, fields ...schema.Node) schema.Node {
		return schema.MustGroup(schema.NewGroupNode(name, r, fields, -1))
	}
	list := func(r parquet.Repetition, inner schema.Node) schema.Node {
		return schema.MustGroup(schema.NewGroupNodeConverted("l", r, []schema.Node{inner}, schema.ConvertedTypes.List,
			-1))
	}
	for _, tc := range []struct {
		name   string
		node   schema.Node
		maxDef int16
		empty  int16 // definition level of the empty list
		null   int16 // of the null list; -1: there is none
		want   string
	}{
		{"standard", list(rep.Optional, group("list", rep.Repeated, prim("element", rep.Optional))), 3, 1, 0,
			"[1,2] [] null [3]"},
		{"required element", list(rep.Optional, group("list", rep.Repeated, prim("element", rep.Required))), 2, 1, 0,
			"[1,2] [] null [3]"},
		{"required list", list(rep.Required, group("list", rep.Repeated, prim("element", rep.Required))), 1, 0, -1,
			"[1,2] [] [3]"},
		{"other names", list(rep.Optional, group("bag", rep.Repeated, prim("array_element", rep.Optional))), 3, 1, 0,
			"[1,2] [] null [3]"},
		{"two levels", list(rep.Optional, prim("element", rep.Repeated)), 2, 1, 0, "[1,2] [] null [3]"},
		{"no annotation", prim("l", rep.Repeated), 1, 0, -1, "[1,2] [] [3]"},
		{"no annotation, in a struct", group("l", rep.Optional, prim("x", rep.Repeated)), 2, 1, 0, "[1,2] [] null [3]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := schema.MustGroup(schema.NewGroupNode("schema", rep.Required, schema.FieldList{tc.node}, -1))
			var buf bytes.Buffer
			w := file.NewParquetWriter(&buf, root)
			group, err := w.AppendRowGroupChecked()
			if err != nil {
				t.Fatal(err)
			}
			cw, err := group.NextColumn()
			if err != nil {
				t.Fatal(err)
			}
			defs := []int16{tc.maxDef, tc.maxDef, tc.empty}
			reps := []int16{0, 1, 0}
			if tc.null >= 0 {
				defs, reps = append(defs, tc.null), append(reps, 0)
			}
			defs, reps = append(defs, tc.maxDef), append(reps, 0)
			if _, err := cw.(*file.Int32ColumnChunkWriter).WriteBatch([]int32{1, 2, 3}, defs, reps); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(cw.Close(), w.Close()); err != nil {
				t.Fatal(err)
			}
			chunks, err := readBytes(t, "x.parquet", buf.Bytes(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range chunks {
				for r := range c.Rows {
					last := len(c.Columns) - 1
					if c.Fields[last].Type != (vector.Type{Kind: vector.Sparse, Elem: vector.Int32}) {
						t.Fatalf("type %v", c.Fields[last].Type)
					}
					got = append(got, cellText(c.Columns[last], r))
				}
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
		})
	}
}

// TestWideHeap reads a row group of 3,000 list columns whose pages take some 50 MB a few rows at a time: what stays in
// memory is bounded by PageBytes, and what is handed over by ChunkBytes.
func TestWideHeap(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own")
	}
	const columns, rows = 3000, 200
	fields := make([]arrow.Field, columns)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprint("c", i), Type: arrow.ListOf(arrow.PrimitiveTypes.Int64),
			Nullable: true}
	}
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for c := range columns {
		l := b.Field(c).(*arrowarray.ListBuilder)
		for r := range rows {
			l.Append(true)
			for k := range 10 {
				l.ValueBuilder().(*arrowarray.Int64Builder).Append(int64(c*rows+r) << k)
			}
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	data, err := writeParquet(rec, parquet.WithDictionaryDefault(false), parquet.WithStats(false))
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "wide.parquet")
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	data = nil
	ctx := context.Background()
	for _, held := range []int64{1, 0} {
		files, err := Discover(ctx, []string{p}, Options{ChunkBytes: 4 << 20, PageBytes: held})
		if err != nil {
			t.Fatal(err)
		}
		s, err := files[0].Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		live := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := live()
		for at := 0; ; {
			c, err := s.Next(ctx)
			if err == io.EOF {
				if at != rows {
					t.Fatalf("%d rows, want %d", at, rows)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Columns[columns-1].Ints[0]; got != int64((columns-1)*rows+at) {
				t.Fatalf("row %d: %d", at, got)
			}
			at += c.Rows
			pages := s.(*tableSource).reader.(*parquetsource.Reader).Held.Load()
			if held == 1 && pages > 1 {
				t.Errorf("pages hold %d bytes", pages)
			}
			c = nil
			// A column's reader takes some 600 bytes.
			if d := live() - before; d > pages+columns*1500 {
				t.Errorf("%d rows read: %d bytes are held besides %d of pages", at, d-pages, pages)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// mutants calls visit with damaged copies of data.
func mutants(data []byte, n int, visit func(seed int, bad []byte)) {
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		bad := bytes.Clone(data)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(bad))
			if r.IntN(3) == 0 {
				at = len(bad) - 1 - r.IntN(min(len(bad), 600)) // the footer
			}
			bad[at] ^= 1 << r.IntN(8)
		}
		if r.IntN(10) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		visit(seed, bad)
	}
}

// readDamaged reads what may be damaged: it must end, with or without an error, and never with an invalid column.
func readDamaged(t *testing.T, name string, data []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := Discover(ctx, []string{p}, Options{Limits: column.Limits{PageBytes: 16 << 20, BlockBytes: 16 << 20,
		BatchBytes: 64 << 20}})
	if err != nil || len(files) == 0 {
		return err
	}
	s, err := files[0].Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	for rows := 0; rows < 1_000_000; {
		c, err := s.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("a damaged file takes for ever")
		}
		if err != nil {
			return err
		}
		rows += c.Rows
		for i, col := range c.Columns {
			if err := col.Validate(); err != nil || col.Rows != c.Rows {
				t.Fatalf("column %q: %v", c.Fields[i].Name, err)
			}
		}
	}
	return nil
}

func TestParquetDamaged(t *testing.T) {
	var rows []modelRow
	for i := range 300 {
		rows = append(rows, genRow([]string{"a", "b"}).Example(i))
	}
	rec := modelRecord(rows)
	defer rec.Release()
	for _, props := range [][]parquet.WriterProperty{
		{parquet.WithDataPageSize(512), parquet.WithDataPageVersion(parquet.DataPageV1)},
		{parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		{parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy),
			parquet.WithMaxRowGroupLength(50)},
		{parquet.WithDictionaryFor("s", false), parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray),
			parquet.WithCompression(compress.Codecs.Gzip)},
	} {
		data, err := writeParquet(rec, props...)
		if err != nil {
			t.Fatal(err)
		}
		if err := readDamaged(t, "x.parquet", data); err != nil {
			t.Fatalf("undamaged: %v", err)
		}
		failed := 0
		mutants(data, 200, func(seed int, bad []byte) {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("seed %d: panic: %v", seed, p)
				}
			}()
			if readDamaged(t, "x.parquet", bad) != nil {
				failed++
			}
		})
		t.Logf("%d bytes: %d of 200 damaged files failed to read", len(data), failed)
	}
}

func TestArrowDamaged(t *testing.T) {
	data := smallStream(t)
	failed := 0
	mutants(data, 400, func(seed int, bad []byte) {
		defer func() {
			if p := recover(); p != nil {
				t.Fatalf("seed %d: panic: %v", seed, p)
			}
		}()
		if readDamaged(t, "x.arrows", bad) != nil {
			failed++
		}
	})
	t.Logf("%d of 400 damaged streams failed to read", failed)
}
