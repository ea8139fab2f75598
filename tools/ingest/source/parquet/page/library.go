package page

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
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

// FixedAsBytes returns what Library.fixed is for pages of a column in an encoding.
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
func (l *Library) Decode(n int, defs, reps []int16, s *Values) (int64, int, error) {
	switch r := l.reader.(type) {
	case *file.BooleanColumnChunkReader:
		s.Bools = column.Resize(s.Bools, n)
		return r.ReadBatchInPage(int64(n), s.Bools, defs, reps)
	case *file.Int32ColumnChunkReader:
		s.I32 = column.Resize(s.I32, n)
		return r.ReadBatchInPage(int64(n), s.I32, defs, reps)
	case *file.Int64ColumnChunkReader:
		s.I64 = column.Resize(s.I64, n)
		return r.ReadBatchInPage(int64(n), s.I64, defs, reps)
	case *file.Int96ColumnChunkReader:
		s.I96 = column.Resize(s.I96, n)
		return r.ReadBatchInPage(int64(n), s.I96, defs, reps)
	case *file.Float32ColumnChunkReader:
		s.F32 = column.Resize(s.F32, n)
		return r.ReadBatchInPage(int64(n), s.F32, defs, reps)
	case *file.Float64ColumnChunkReader:
		s.F64 = column.Resize(s.F64, n)
		return r.ReadBatchInPage(int64(n), s.F64, defs, reps)
	case *file.ByteArrayColumnChunkReader:
		s.Bytes = column.Resize(s.Bytes, n)
		levels, values, err := r.ReadBatchInPage(int64(n), s.Bytes, defs, reps)
		if l.Fixed > 0 && err == nil {
			s.Fixed = column.Resize(s.Fixed, n)
			for i, v := range s.Bytes[:values] {
				if len(v) != l.Fixed {
					return 0, 0, fmt.Errorf("a value of %d bytes where each has %d", len(v), l.Fixed)
				}
				s.Fixed[i] = parquet.FixedLenByteArray(v)
			}
		}
		return levels, values, err
	case *file.FixedLenByteArrayColumnChunkReader:
		s.Fixed = column.Resize(s.Fixed, n)
		return r.ReadBatchInPage(int64(n), s.Fixed, defs, reps)
	}
	return 0, 0, fmt.Errorf("no reader of physical type %v", l.reader.Type())
}

// A onePage is the library's source of pages: the one that was set last.
type onePage struct{ next, page file.Page }

// Next moves to the page that was set last, if any was.
func (p *onePage) Next() bool {
	p.page, p.next = p.next, nil
	return p.page != nil
}

// Page returns the current page.
func (p *onePage) Page() file.Page { return p.page }

// Err returns nil: reading pages is the Reader's.
func (p *onePage) Err() error { return nil }

// SetMaxPageHeaderSize does nothing: headers have a limit of their own.
func (p *onePage) SetMaxPageHeaderSize(int) {}

// GetDictionaryPage returns nothing: pages that need a dictionary do not come here.
func (p *onePage) GetDictionaryPage() (*file.DictionaryPage, error) { return nil, nil }

// SeekToPageWithRow is not supported: columns are read from start to end.
func (p *onePage) SeekToPageWithRow(int64) error {
	return errors.New("columns are read from start to end")
}

// Reset drops the page: each column chunk has a reader of its own.
func (p *onePage) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
	*p = onePage{}
}

// Close drops the page.
func (p *onePage) Close() error {
	*p = onePage{}
	return nil
}
