package source

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// A pageReader gives the library's column readers their pages. It stands in for the library's own so that checksums are
// checked, sizes are bounded before anything is allocated for them, and an open column costs no more than its page:
// tables of 20,000 columns have as many of these open.
type pageReader struct {
	r         io.ReaderAt
	pos, end  int64 // what is left of the column chunk
	remaining int64 // values that the pages to come hold, by the footer
	left      int64 // values of the current page that the column reader has not been asked for
	codec     compress.Compression
	limits    *Limits
	buf       []byte // the current page
	page      file.Page
	dict      bool // a dictionary page was seen
	err       error
}

// maxRatio bounds what a codec can make of a byte, so that a tiny page cannot claim a huge buffer. zstd and brotli have
// no such bound that is of use: Limits.PageBytes holds for them.
var maxRatio = map[compress.Compression]int64{
	compress.Codecs.Snappy: 64, compress.Codecs.Gzip: 1100, compress.Codecs.Lz4Raw: 256,
}

// pageScratch holds compressed pages while they are decompressed.
var pageScratch = sync.Pool{New: func() any { return new([]byte) }}

const (
	headerGuess    = 512
	maxHeaderBytes = 16 << 20
	readAhead      = 16 << 10
	// pagePadding bytes follow a page in memory: the library makes pointers to numbers at the end of a page that has none.
	pagePadding = 16
)

// Next moves to the next page that the column reader needs to see: a dictionary, or data with values.
func (p *pageReader) Next() bool {
	if p.err != nil {
		return false
	}
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
	for p.page == nil {
		if p.remaining <= 0 || p.pos >= p.end {
			return false
		}
		if err := p.next(); err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the column chunk ends within a page")
			}
			p.err = err
			return false
		}
	}
	return true
}

func (p *pageReader) next() error {
	scratch := pageScratch.Get().(*[]byte)
	defer pageScratch.Put(scratch)
	h, body, err := p.readPage(scratch)
	if err != nil {
		return err
	}
	if h.hasCRC {
		if got := crc32.ChecksumIEEE(body); got != uint32(h.crc) {
			return fmt.Errorf("page checksum is %08x, its header says %08x", got, uint32(h.crc))
		}
	}
	if h.typ != pageData && h.typ != pageDictionary && h.typ != pageDataV2 {
		return nil
	}
	if !h.body {
		return errors.New("a page header without the part that its type calls for")
	}
	if h.values < 0 || h.nulls < 0 || h.rows < 0 || h.defBytes < 0 || h.repBytes < 0 {
		return errors.New("a negative count in a page header")
	}
	switch h.typ {
	case pageDictionary:
		if p.dict {
			return errors.New("a second dictionary page")
		}
		p.dict = true
		// The column reader keeps the dictionary as long as it lives.
		dict := make([]byte, int(h.uncompressed)+pagePadding)[:h.uncompressed]
		if err := p.decompress(dict, body, p.codec); err != nil {
			return err
		}
		p.page = file.NewDictionaryPage(memory.NewBufferBytes(dict), h.values, parquet.Encoding(h.encoding))
		return nil
	case pageData:
		if err := p.takeValues(&h); err != nil || h.values == 0 {
			return err
		}
		p.resize(int(h.uncompressed))
		if err := p.decompress(p.buf, body, p.codec); err != nil {
			return err
		}
		p.page = file.NewDataPageV1(memory.NewBufferBytes(p.buf), h.values, parquet.Encoding(h.encoding),
			parquet.Encoding(h.defEncoding), parquet.Encoding(h.repEncoding), h.uncompressed)
	case pageDataV2:
		if err := p.takeValues(&h); err != nil || h.values == 0 {
			return err
		}
		levels := int64(h.defBytes) + int64(h.repBytes)
		if levels > int64(len(body)) || levels > int64(h.uncompressed) {
			return fmt.Errorf("levels of %d bytes in a page of %d", levels, len(body))
		}
		p.resize(int(h.uncompressed))
		copy(p.buf, body[:levels])
		codec := p.codec
		if !h.isCompressed {
			codec = compress.Codecs.Uncompressed
		}
		if err := p.decompress(p.buf[levels:], body[levels:], codec); err != nil {
			return err
		}
		p.page = file.NewDataPageV2(memory.NewBufferBytes(p.buf), h.values, h.nulls, h.rows, parquet.Encoding(h.encoding),
			h.defBytes, h.repBytes, h.uncompressed, false)
	}
	p.left = int64(h.values)
	return nil
}

// takeValues accounts for the values of a data page.
func (p *pageReader) takeValues(h *pageHeader) error {
	if int64(h.values) > p.remaining {
		return fmt.Errorf("a page of %d values where the footer leaves %d", h.values, p.remaining)
	}
	p.remaining -= int64(h.values)
	return nil
}

// readPage reads the header and the body at p.pos. The body is in *scratch.
func (p *pageReader) readPage(scratch *[]byte) (h pageHeader, body []byte, err error) {
	have := 0
	for want := headerGuess; ; want *= 8 {
		n := min(int64(max(want, readAhead)), p.end-p.pos)
		if err := p.read(scratch, have, int(n)); err != nil {
			return h, nil, err
		}
		have = int(n)
		var size int
		h, size, err = parsePageHeader((*scratch)[:have])
		if errors.Is(err, errThriftShort) && n < p.end-p.pos && n < maxHeaderBytes {
			continue
		}
		if err != nil {
			return h, nil, fmt.Errorf("page header at offset %d: %w", p.pos, err)
		}
		if h.compressed < 0 || h.uncompressed < 0 {
			return h, nil, fmt.Errorf("page header at offset %d: a negative size", p.pos)
		}
		if int64(h.compressed) > p.end-p.pos-int64(size) {
			return h, nil, fmt.Errorf("page header at offset %d: a page of %d bytes, %d are left in its column chunk", p.pos, h.compressed, p.end-p.pos-int64(size))
		}
		if int64(h.uncompressed) > p.limits.PageBytes {
			return h, nil, fmt.Errorf("page header at offset %d: a page of %d bytes uncompressed, the limit is %d", p.pos, h.uncompressed, p.limits.PageBytes)
		}
		if r := maxRatio[p.codec]; r > 0 && int64(h.uncompressed) > (int64(h.compressed)+64)*r {
			return h, nil, fmt.Errorf("page header at offset %d: %d bytes cannot become %d", p.pos, h.compressed, h.uncompressed)
		}
		whole := size + int(h.compressed)
		if whole > have {
			if err := p.read(scratch, have, whole); err != nil {
				return h, nil, err
			}
		}
		p.pos += int64(whole)
		return h, (*scratch)[size:whole], nil
	}
}

// read fills (*scratch)[have:want] from the file.
func (p *pageReader) read(scratch *[]byte, have, want int) error {
	if cap(*scratch) < want {
		grown := make([]byte, want)
		copy(grown, (*scratch)[:have])
		*scratch = grown
	}
	*scratch = (*scratch)[:want]
	_, err := p.r.ReadAt((*scratch)[have:], p.pos+int64(have))
	return err
}

func (p *pageReader) resize(n int) {
	if cap(p.buf) < n+pagePadding {
		p.buf = make([]byte, n+pagePadding)
	}
	p.buf = p.buf[:n]
}

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		panic(err)
	}
	return d
})

// decompress fills dst, whose length the header states, with what src becomes: neither more nor less.
func (p *pageReader) decompress(dst, src []byte, codec compress.Compression) error {
	short := func(n int) error {
		return fmt.Errorf("a page of %d bytes uncompressed, its header says %d", n, len(dst))
	}
	if codec == compress.Codecs.Uncompressed {
		if len(src) != len(dst) {
			return short(len(src))
		}
		copy(dst, src)
		return nil
	}
	if len(dst) == 0 {
		return nil // whatever the codec makes of nothing
	}
	var out []byte
	var err error
	switch codec {
	case compress.Codecs.Snappy:
		var n int
		if n, err = snappy.DecodedLen(src); err == nil && n != len(dst) {
			return short(n)
		}
		if err == nil {
			out, err = snappy.Decode(dst, src)
		}
	case compress.Codecs.Zstd:
		out, err = zstdDecoder().DecodeAll(src, dst[:0:len(dst)])
	default:
		var c compress.Codec
		if c, err = compress.GetCodec(codec); err == nil {
			out, err = compress.Decode(c, dst, src)
		}
	}
	if err != nil {
		return fmt.Errorf("a page that does not decompress: %w", err)
	}
	if len(out) != len(dst) {
		return short(len(out))
	}
	if len(out) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return nil
}

// Page returns the current page.
func (p *pageReader) Page() file.Page { return p.page }

// Err returns the error that ended Next.
func (p *pageReader) Err() error { return p.err }

// SetMaxPageHeaderSize does nothing: headers have a limit of their own.
func (p *pageReader) SetMaxPageHeaderSize(int) {}

// GetDictionaryPage returns nothing: a dictionary comes with Next, before the data.
func (p *pageReader) GetDictionaryPage() (*file.DictionaryPage, error) { return nil, nil }

// SeekToPageWithRow is not supported: columns are read from start to end.
func (p *pageReader) SeekToPageWithRow(int64) error {
	return errors.New("columns are read from start to end")
}

// Reset is not supported: each column chunk has a pageReader of its own.
func (p *pageReader) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
	p.err = errors.New("a page reader is not used twice")
}

// Close drops the current page.
func (p *pageReader) Close() error {
	if p.page != nil {
		p.page.Release()
	}
	p.page, p.buf = nil, nil
	return nil
}
