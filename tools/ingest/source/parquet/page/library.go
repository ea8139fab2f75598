package page

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A Library has the library decode pages whose values are in one of the rarer encodings: the DELTA ones and
// BYTE_STREAM_SPLIT. The library gets one page at a time.
type Library struct {
	reader file.ColumnChunkReader
	pages  onePage
	Fixed  int // the length of values of fixed length that are read as byte arrays; else 0
}

// FixedAsBytes returns what Library.Fixed is for pages of a column in an encoding.
func FixedAsBytes(col *schema.Column, encoding int32) int {
	if encoding == encodingDeltaByteArray && col.PhysicalType() == parquet.Types.FixedLenByteArray {
		return col.TypeLength()
	}
	return 0
}

// NewLibrary returns a reader of pages in an encoding. The library reads DELTA_BYTE_ARRAY of byte arrays only; those
// of fixed length look the same there.
func NewLibrary(col *schema.Column, encoding int32) (*Library, error) {
	l := &Library{Fixed: FixedAsBytes(col, encoding)}
	if l.Fixed > 0 {
		n, err := schema.NewPrimitiveNode(col.Name(), col.SchemaNode().RepetitionType(), parquet.Types.ByteArray, -1,
			-1)
		if err != nil {
			return nil, err
		}
		col = schema.NewColumn(n, col.MaxDefinitionLevel(), col.MaxRepetitionLevel())
	}
	//lint:ignore SA1019 the readers that would replace it take pages from the file alone, and ours check them
	l.reader = file.NewColumnReader(col, &l.pages, memory.DefaultAllocator, nil)
	return l, nil
}

// Begin starts with a page, whose bytes must stay as they are until its last value has been read.
func (l *Library) Begin(h *Header, page []byte) error {
	buf := memory.NewBufferBytes(page)
	if h.Typ == DataV2 {
		l.pages.next = file.NewDataPageV2(buf, h.values, h.nulls, h.rows, parquet.Encoding(h.Encoding),
			h.defBytes, h.repBytes, h.uncompressed, false)
	} else {
		l.pages.next = file.NewDataPageV1(buf, h.values, parquet.Encoding(h.Encoding),
			parquet.Encoding(h.DefEncoding), parquet.Encoding(h.RepEncoding), h.uncompressed)
	}
	if !l.reader.HasNext() {
		if err := l.reader.Err(); err != nil {
			return err
		}
		return ErrShortPage
	}
	return nil
}

// Decode reads up to n levels of the page and their values, which go into s. It returns how many of each it read.
func (l *Library) Decode(n int, defs, reps []int16, s *Values) (levels int64, values int, err error) {
	switch r := l.reader.(type) {
	case *file.BooleanColumnChunkReader:
		return decode(r, &s.Bools, n, defs, reps)
	case *file.Int32ColumnChunkReader:
		return decode(r, &s.I32, n, defs, reps)
	case *file.Int64ColumnChunkReader:
		return decode(r, &s.I64, n, defs, reps)
	case *file.Int96ColumnChunkReader:
		return decode(r, &s.I96, n, defs, reps)
	case *file.Float32ColumnChunkReader:
		return decode(r, &s.F32, n, defs, reps)
	case *file.Float64ColumnChunkReader:
		return decode(r, &s.F64, n, defs, reps)
	case *file.FixedLenByteArrayColumnChunkReader:
		return decode(r, &s.Fixed, n, defs, reps)
	case *file.ByteArrayColumnChunkReader:
		if levels, values, err = decode(r, &s.Bytes, n, defs, reps); l.Fixed == 0 || err != nil {
			return levels, values, err
		}
		s.Fixed = column.Resize(s.Fixed, n)
		for i, v := range s.Bytes[:values] {
			if len(v) != l.Fixed {
				return 0, 0, fmt.Errorf("a value of %d bytes where each has %d", len(v), l.Fixed)
			}
			s.Fixed[i] = parquet.FixedLenByteArray(v)
		}
		return levels, values, nil
	}
	return 0, 0, fmt.Errorf("no reader of physical type %v", l.reader.Type())
}

// A pageDecoder is the library's reader of a physical type.
type pageDecoder[T any] interface {
	ReadBatchInPage(n int64, values []T, defs, reps []int16) (int64, int, error)
}

func decode[T any](r pageDecoder[T], to *[]T, n int, defs, reps []int16) (int64, int, error) {
	*to = column.Resize(*to, n)
	return r.ReadBatchInPage(int64(n), *to, defs, reps)
}

// A onePage is the library's source of pages: the one that was set last. The library does not call the other methods.
type onePage struct {
	file.PageReader
	next, page file.Page
}

// Next moves to the page that was set last, if any was.
func (p *onePage) Next() bool {
	p.page, p.next = p.next, nil
	return p.page != nil
}

// Page returns the current page.
func (p *onePage) Page() file.Page { return p.page }

// Err returns nil: reading pages is the Reader's.
func (p *onePage) Err() error { return nil }
