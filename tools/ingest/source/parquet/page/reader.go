package page

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
	"github.com/dsistore/dsistore/tools/ingest/source/stream"
	"github.com/klauspost/compress/snappy"
)

// A Reader reads the pages of a column chunk, one data page at a time. It stands in for the library's own so that
// checksums are checked, sizes are bounded before anything is allocated for them, and an open column costs no more than
// its page and its dictionary: tables of 20,000 columns have as many of these open. Even those may be dropped between
// batches, and are then read again.
type Reader struct {
	R         io.ReaderAt
	Pos, End  int64 // what is left of the column chunk
	Remaining int64 // values that the pages to come hold, by the footer
	Left      int64 // values of the current page that have not been read
	Codec     compress.Compression
	Limits    *column.Limits
	Value     valueType
	Quirks    Quirks
	// LevelsOnly: no values are read, so that dictionaries are passed over, and the values of pages whose levels are
	// not compressed with them.
	LevelsOnly bool

	Head       Header     // of the current page
	at, dictAt int64      // offsets of the current page and of the dictionary page; dictAt is 0 until one was seen
	Buf        []byte     // the current page; nil: none, or dropped
	Dict       dictionary // of the column chunk
}

// maxRatio bounds what a codec can make of a byte, so that a tiny page cannot claim a huge buffer. zstd and brotli have
// no such bound that is of use: Limits.PageBytes holds for them.
var maxRatio = map[compress.Compression]int64{
	compress.Codecs.Snappy: 64, compress.Codecs.Gzip: 1100, compress.Codecs.Lz4Raw: 256,
	compress.Codecs.Lz4: 256,
}

// pageScratch holds compressed pages while they are decompressed.
var pageScratch = sync.Pool{New: func() any { return new([]byte) }}

const (
	headerGuess    = 512
	maxHeaderBytes = 16 << 20
	readAhead      = 16 << 10
	// pagePadding bytes follow a page in memory: the library makes pointers to numbers at the end of a page that has
	// none.
	pagePadding = 16
)

// Next moves to the next data page that has values. It returns io.EOF after the last.
func (p *Reader) Next() error {
	p.Left = 0
	for p.Remaining > 0 && p.Pos < p.End {
		at := p.Pos
		n, err := p.load(at)
		if err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				return errors.New("the column chunk ends within a page")
			}
			return err
		}
		p.Pos += n
		if p.Head.Typ != Data && p.Head.Typ != DataV2 {
			continue
		}
		values := int64(p.Head.values)
		if values > p.Remaining {
			return fmt.Errorf("a page of %d values where the footer leaves %d", values, p.Remaining)
		}
		p.Remaining -= values
		if values > 0 {
			p.at, p.Left = at, values
			return nil
		}
	}
	return io.EOF
}

// Drop forgets the bytes of the current page and of the dictionary, until Restore.
func (p *Reader) Drop() { p.Buf, p.Dict = nil, dictionary{} }

// Restore reads again what Drop forgot, as far as it is still of use.
func (p *Reader) Restore() error {
	if !p.Dict.loaded && p.dictAt > 0 {
		at := p.dictAt
		p.dictAt = 0
		if _, err := p.load(at); err != nil {
			return err
		}
	}
	if p.Buf == nil && p.Left > 0 {
		_, err := p.load(p.at)
		return err
	}
	return nil
}

// SizeBytes returns the memory of the page and the dictionary.
func (p *Reader) SizeBytes() int64 { return int64(cap(p.Buf)) + p.Dict.sizeBytes() }

// load reads the page at an offset, of which it returns the length in the file, into p.Head and p.Buf, or p.Dict.
func (p *Reader) load(at int64) (int64, error) {
	scratch := pageScratch.Get().(*[]byte)
	defer pageScratch.Put(scratch)
	h, body, size, err := p.readPage(at, scratch)
	if err != nil {
		return 0, err
	}
	if h.hasCRC {
		if got := crc32.ChecksumIEEE(body); got != uint32(h.crc) {
			return 0, fmt.Errorf("page checksum is %08x, its header says %08x", got, uint32(h.crc))
		}
	}
	if h.Typ != Data && h.Typ != dictionaryPage && h.Typ != DataV2 {
		p.Head = h
		return size, nil
	}
	if !h.body {
		return 0, errors.New("a page header without the part that its type calls for")
	}
	if h.values < 0 || h.nulls < 0 || h.rows < 0 || h.defBytes < 0 || h.repBytes < 0 {
		return 0, errors.New("a negative count in a page header")
	}
	if h.Typ == dictionaryPage && p.LevelsOnly {
		p.Head = h
		return size, nil
	}
	if h.Typ == dictionaryPage {
		if p.dictAt > 0 {
			return 0, errors.New("a second dictionary page")
		}
		if h.Encoding != encodingPlain && h.Encoding != encodingPlainDictionary {
			return 0, fmt.Errorf("a dictionary in encoding %d of Parquet's", h.Encoding)
		}
		b := make([]byte, h.uncompressed)
		if err := p.decompress(b, body, p.Codec); err != nil {
			return 0, err
		}
		p.Head, p.dictAt = h, at
		p.Dict, err = newDictionary(b, int(h.values), p.Value)
		return size, err
	}
	p.resize(int(h.uncompressed))
	levels, codec := int64(0), p.Codec
	if h.Typ == DataV2 {
		levels = int64(h.defBytes) + int64(h.repBytes)
		if levels > int64(len(body)) || levels > int64(h.uncompressed) {
			return 0, fmt.Errorf("levels of %d bytes in a page of %d", levels, len(body))
		}
		copy(p.Buf, body[:levels])
		if !h.IsCompressed && !p.Quirks.alwaysCompressed {
			codec = compress.Codecs.Uncompressed
		}
	}
	p.Head = h
	if h.Typ == DataV2 && p.LevelsOnly {
		p.Buf = p.Buf[:levels]
		return size, nil
	}
	return size, p.decompress(p.Buf[levels:], body[levels:], codec)
}

// readPage reads the header and the body at an offset, and returns their size. The body is in *scratch.
func (p *Reader) readPage(at int64, scratch *[]byte) (h Header, body []byte, length int64, err error) {
	have := 0
	for want := headerGuess; ; want *= 8 {
		n := min(int64(max(want, readAhead)), p.End-at)
		if err := p.read(at, scratch, have, int(n)); err != nil {
			return h, nil, 0, err
		}
		have = int(n)
		var size int
		h, size, err = ParseHeader((*scratch)[:have])
		if errors.Is(err, thrift.ErrShort) && n < p.End-at && n < maxHeaderBytes {
			continue
		}
		if err != nil {
			return h, nil, 0, fmt.Errorf("page header at offset %d: %w", at, err)
		}
		if h.compressed < 0 || h.uncompressed < 0 {
			return h, nil, 0, fmt.Errorf("page header at offset %d: a negative size", at)
		}
		if int64(h.compressed) > p.End-at-int64(size) {
			return h, nil, 0,
				fmt.Errorf("page header at offset %d: a page of %d bytes, %d are left in its column chunk", at,
					h.compressed, p.End-at-int64(size))
		}
		if int64(h.uncompressed) > p.Limits.PageBytes {
			return h, nil, 0, fmt.Errorf("page header at offset %d: a page of %d bytes uncompressed, the limit is %d",
				at, h.uncompressed, p.Limits.PageBytes)
		}
		if r := maxRatio[p.Codec]; r > 0 && int64(h.uncompressed) > (int64(h.compressed)+64)*r {
			return h, nil, 0, fmt.Errorf("page header at offset %d: %d bytes cannot become %d", at, h.compressed,
				h.uncompressed)
		}
		whole := size + int(h.compressed)
		if whole > have {
			if err := p.read(at, scratch, have, whole); err != nil {
				return h, nil, 0, err
			}
		}
		return h, (*scratch)[size:whole], int64(whole), nil
	}
}

// read fills (*scratch)[have:want] from the file, the scratch being what lies at an offset.
func (p *Reader) read(at int64, scratch *[]byte, have, want int) error {
	if cap(*scratch) < want {
		grown := make([]byte, want)
		copy(grown, (*scratch)[:have])
		*scratch = grown
	}
	*scratch = (*scratch)[:want]
	_, err := p.R.ReadAt((*scratch)[have:], at+int64(have))
	return err
}

func (p *Reader) resize(n int) {
	if cap(p.Buf) < n+pagePadding {
		p.Buf = make([]byte, n+pagePadding)
	}
	p.Buf = p.Buf[:n]
}

// decompress fills dst, whose length the header states, with what src becomes: neither more nor less.
func (p *Reader) decompress(dst, src []byte, codec compress.Compression) error {
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
		out, err = stream.ZstdDecoder().DecodeAll(src, dst[:0:len(dst)])
	case compress.Codecs.Lz4:
		if err = decodeOldLZ4(dst, src); err == nil {
			out = dst
		}
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
