package source

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

// A libraryReader has the library decode pages whose values are in one of the rarer encodings: the DELTA ones and
// BYTE_STREAM_SPLIT. The library gets one page at a time.
type libraryReader struct {
	reader file.ColumnChunkReader
	pages  onePage
	fixed  int // the length of values of fixed length that are read as byte arrays; else 0
}

// fixedAsBytes returns what libraryReader.fixed is for pages of a column in an encoding.
func fixedAsBytes(col *schema.Column, encoding int32) int {
	if encoding == encodingDeltaByteArray && col.PhysicalType() == parquet.Types.FixedLenByteArray {
		return col.TypeLength()
	}
	return 0
}

// newLibraryReader returns a reader of pages in an encoding. The library reads DELTA_BYTE_ARRAY of byte arrays only; those
// of fixed length look the same there.
func newLibraryReader(col *schema.Column, encoding int32) (*libraryReader, error) {
	l := &libraryReader{fixed: fixedAsBytes(col, encoding)}
	if l.fixed > 0 {
		n, err := schema.NewPrimitiveNode(col.Name(), col.SchemaNode().RepetitionType(), parquet.Types.ByteArray, -1, -1)
		if err != nil {
			return nil, err
		}
		col = schema.NewColumn(n, col.MaxDefinitionLevel(), col.MaxRepetitionLevel())
	}
	//lint:ignore SA1019 the readers that would replace it take pages from the file alone, and ours check them
	l.reader = file.NewColumnReader(col, &l.pages, memory.DefaultAllocator, nil)
	return l, nil
}

// begin starts with a page, whose bytes must stay as they are until its last value has been read.
func (l *libraryReader) begin(h *pageHeader, page []byte) error {
	buf := memory.NewBufferBytes(page)
	if h.typ == pageDataV2 {
		l.pages.next = file.NewDataPageV2(buf, h.values, h.nulls, h.rows, parquet.Encoding(h.encoding),
			h.defBytes, h.repBytes, h.uncompressed, false)
	} else {
		l.pages.next = file.NewDataPageV1(buf, h.values, parquet.Encoding(h.encoding),
			parquet.Encoding(h.defEncoding), parquet.Encoding(h.repEncoding), h.uncompressed)
	}
	if !l.reader.HasNext() {
		if err := l.reader.Err(); err != nil {
			return err
		}
		return errShortPage
	}
	return nil
}

func (l *libraryReader) decode(n int, defs, reps []int16, s *pageValues) (int64, int, error) {
	switch r := l.reader.(type) {
	case *file.BooleanColumnChunkReader:
		s.bools = column.Resize(s.bools, n)
		return r.ReadBatchInPage(int64(n), s.bools, defs, reps)
	case *file.Int32ColumnChunkReader:
		s.i32 = column.Resize(s.i32, n)
		return r.ReadBatchInPage(int64(n), s.i32, defs, reps)
	case *file.Int64ColumnChunkReader:
		s.i64 = column.Resize(s.i64, n)
		return r.ReadBatchInPage(int64(n), s.i64, defs, reps)
	case *file.Int96ColumnChunkReader:
		s.i96 = column.Resize(s.i96, n)
		return r.ReadBatchInPage(int64(n), s.i96, defs, reps)
	case *file.Float32ColumnChunkReader:
		s.f32 = column.Resize(s.f32, n)
		return r.ReadBatchInPage(int64(n), s.f32, defs, reps)
	case *file.Float64ColumnChunkReader:
		s.f64 = column.Resize(s.f64, n)
		return r.ReadBatchInPage(int64(n), s.f64, defs, reps)
	case *file.ByteArrayColumnChunkReader:
		s.bytes = column.Resize(s.bytes, n)
		levels, values, err := r.ReadBatchInPage(int64(n), s.bytes, defs, reps)
		if l.fixed > 0 && err == nil {
			s.fixed = column.Resize(s.fixed, n)
			for i, v := range s.bytes[:values] {
				if len(v) != l.fixed {
					return 0, 0, fmt.Errorf("a value of %d bytes where each has %d", len(v), l.fixed)
				}
				s.fixed[i] = parquet.FixedLenByteArray(v)
			}
		}
		return levels, values, err
	case *file.FixedLenByteArrayColumnChunkReader:
		s.fixed = column.Resize(s.fixed, n)
		return r.ReadBatchInPage(int64(n), s.fixed, defs, reps)
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

// Err returns nil: reading pages is the pageReader's.
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
