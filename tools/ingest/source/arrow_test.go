package source

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fromStdin opens data as "-".
func fromStdin(t *testing.T, data []byte, opts Options) (Source, error) {
	t.Helper()
	opts.Stdin = bytes.NewReader(data)
	files, err := Discover(context.Background(), []string{"-"}, opts)
	if err != nil {
		return nil, err
	}
	return files[0].Open(context.Background())
}

// readAll reads a source to its end, checking that every column is valid.
func readAll(t *testing.T, s Source) ([]*Chunk, error) {
	t.Helper()
	defer s.Close()
	var out []*Chunk
	for {
		c, err := s.Next(context.Background())
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for i, col := range c.Columns {
			if err := col.Validate(); err != nil || col.Rows != c.Rows || col.Type != c.Fields[i].Type {
				t.Fatalf("column %q of %d rows, type %v for %v: %v", c.Fields[i].Name, col.Rows, col.Type,
					c.Fields[i].Type, err)
			}
		}
		out = append(out, c)
	}
}

func smallStream(t testing.TB, opts ...ipc.Option) []byte {
	t.Helper()
	mem := memory.DefaultAllocator
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8,
			ValueType: arrow.BinaryTypes.String}, Nullable: true},
	}, nil)
	b := arrowarray.NewRecordBuilder(mem, schema)
	defer b.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, append(opts, ipc.WithSchema(schema))...)
	for range 2 {
		b.Field(0).(*arrowarray.Int32Builder).AppendValues([]int32{1, 2, 3}, []bool{true, false, true})
		lb := b.Field(1).(*arrowarray.ListBuilder)
		vb := lb.ValueBuilder().(*arrowarray.Int64Builder)
		lb.Append(true)
		vb.AppendValues([]int64{7, 8}, nil)
		lb.AppendNull()
		lb.Append(true)
		db := b.Field(2).(*arrowarray.BinaryDictionaryBuilder)
		for _, s := range []string{"x", "y", "x"} {
			if err := db.AppendString(s); err != nil {
				t.Fatal(err)
			}
		}
		rec := b.NewRecordBatch()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestArrowStreamCutShort(t *testing.T) {
	for _, opts := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
		data := smallStream(t, opts...)
		s, err := fromStdin(t, data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := readAll(t, s)
		if err != nil || len(chunks) != 2 || chunks[0].Rows != 3 || len(chunks[0].Fields) != 3 {
			t.Fatalf("whole stream: %v, %d chunks", err, len(chunks))
		}
		for n := range data {
			s, err := fromStdin(t, data[:n], Options{})
			if err == nil {
				_, err = readAll(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), "cut short") {
				t.Fatalf("the first %d of %d bytes: %v", n, len(data), err)
			}
		}
		s, err = fromStdin(t, append(bytes.Clone(data), 0), Options{})
		if err == nil {
			_, err = readAll(t, s)
		}
		if err == nil {
			t.Fatal("a byte after the end marker went unnoticed")
		}
	}
}

// TestBinaryKeys: Hive's older writers left strings as plain bytes, the keys of maps too.
func TestBinaryKeys(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.Binary,
		arrow.PrimitiveTypes.Int32)}}, nil)
	for key, want := range map[string]string{"é": "m=1 m.é=7\n", "\xff": "a key in a map that is not UTF-8",
		"": "an empty key"} {
		b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, schema)
		m := b.Field(0).(*arrowarray.MapBuilder)
		m.Append(true)
		m.KeyBuilder().(*arrowarray.BinaryBuilder).Append([]byte(key))
		m.ItemBuilder().(*arrowarray.Int32Builder).Append(7)
		rec := b.NewRecordBatch()
		data, err := writeParquet(rec)
		rec.Release()
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := readBytes(t, "a.parquet", data, Options{})
		if got := dump(chunks); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %s, %v; want %s", key, got, err, want)
		}
	}
}

// TestNoArrowStream: what comes on stdin is an Arrow stream unless the user says what it is, which an error asks for.
func TestNoArrowStream(t *testing.T) {
	for text, want := range map[string]string{
		"id,name\n1,x\n": `no Arrow stream, or one that was cut short: it begins with "id,name\n"; --format csv`,
		"":               "there is nothing in it",
	} {
		if _, err := fromStdin(t, []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
