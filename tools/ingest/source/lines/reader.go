package lines

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/stream"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxTextFile is how many bytes a file has at most that ReadFile reads.
const maxTextFile = 64 << 20

// ReadFile reads a file whole that says how others are read; kind is what it is.
func ReadFile(path, kind string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxTextFile+1))
	if err == nil && len(raw) > maxTextFile {
		err = fmt.Errorf("%s: a %s file has at most %d bytes", path, kind, maxTextFile)
	}
	return raw, err
}

// A Reader reads the lines of a file that may be compressed with gzip, zstd or bzip2, as its first bytes tell,
// or with deflate, as its name does. Lines end with \n or \r\n; or with \r in text whose first lines have no other end.
type Reader struct {
	src   io.Closer // nil: closed
	unzip func()    // frees the decompressor; nil: none
	r     *bufio.Reader
	limit int64
	buf   []byte
	Line  int64  // number of the last line, counted from 1
	end   []byte // of the last line: "\n", "\r\n" or "\r", or at the end of the file "" or "\r". Borrowed with it
	eol   byte   // that ends lines
	// ended: the last line has been given.
	ended bool
}

// Open reads text in an encoding that a byte order mark may overrule. It takes over in, also where it returns an error.
func Open(path string, in io.ReadCloser, set charset, limits *column.Limits) (*Reader, error) {
	l := &Reader{limit: limits.LineBytes, src: in, eol: '\n'}
	if err := l.begin(path, in, set); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// begin decompresses and decodes what in gives.
func (l *Reader) begin(path string, in io.Reader, set charset) error {
	br := bufio.NewReaderSize(in, bufferBytes)
	head, err := br.Peek(stream.TarHead)
	if err != nil && err != io.EOF {
		return err
	}
	if what := stream.Tar(path, head); what != "" {
		return column.Refuse("", "%s", what)
	}
	if in, err = l.decompress(path, head, br); err != nil {
		return err
	}
	if in != br {
		br = bufio.NewReaderSize(in, bufferBytes)
		head, _ := br.Peek(stream.TarHead) // an error comes again with the first line
		if what := stream.Tar("", head); what != "" {
			return column.Refuse("", "%s", what)
		}
	}
	if head, _ := br.Peek(2); markedCharset(head) != nil {
		set = markedCharset(head)
	}
	if set != nil {
		br = bufio.NewReaderSize(set(br), bufferBytes)
	}
	l.r = br
	// The mark that some programs put before their text is no part of it.
	if head, _ := br.Peek(len(ByteOrderMark)); string(head) == ByteOrderMark {
		if _, err := br.Discard(len(head)); err != nil {
			return err
		}
	}
	// As in files of old Macs. To Hadoop \r always ends a line.
	head, _ = br.Peek(64 << 10) // an error comes again with the first line
	if at := bytes.IndexByte(head, '\r'); bytes.IndexByte(head, '\n') < 0 && at >= 0 && at < len(head)-1 {
		l.eol = '\r'
	}
	return nil
}

const bufferBytes = 256 << 10

// skippableZstd reports whether a file begins with a frame that decoders of zstd skip, as those of pzstd do.
func skippableZstd(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

// decompress returns what in becomes by its first bytes or its name: in itself where it is not compressed.
func (l *Reader) decompress(path string, head []byte, in io.Reader) (io.Reader, error) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		l.unzip = func() { z.Close() }
		return z, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), skippableZstd(head):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		l.unzip = z.Close
		return z, nil
	case strings.HasSuffix(path, ".deflate"): // Hadoop's default, which its first bytes do not tell from text
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("deflate: %w", err)
		}
		l.unzip = func() { z.Close() }
		return z, nil
	case stream.Foreign(path, head) != "":
		return nil, column.Refuse("", "%s", stream.Foreign(path, head))
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(in), nil
	}
	return in, nil
}

// ByteOrderMark is what some programs put before text in UTF-8.
const ByteOrderMark = "\xef\xbb\xbf"

// Next returns the next line without its end, and io.EOF after the last. The line is borrowed.
func (l *Reader) Next() ([]byte, error) {
	if l.ended {
		return nil, io.EOF
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice(l.eol)
		if int64(len(l.buf)+len(part)) > l.limit {
			return nil, &LongLine{l.Line + 1, l.limit, append(l.buf, part...)[0]}
		}
		if err != nil || len(l.buf) > 0 {
			l.buf = append(l.buf, part...)
			part = l.buf
		}
		switch l.ended = err == io.EOF; {
		case err == bufio.ErrBufferFull:
			continue
		case l.ended && len(part) == 0:
			return nil, io.EOF
		case err == nil || l.ended:
			l.Line++
			return l.trimEnd(part), nil
		}
		return nil, fmt.Errorf("line %d: %w", l.Line+1, damage(err))
	}
}

// A LongLine is the error of a line that is longer than it may be.
type LongLine struct {
	line, limit int64
	Begins      byte // its first byte
}

func (e *LongLine) Error() string {
	return fmt.Sprintf("line %d is longer than %d bytes", e.line, e.limit)
}

// damaged are errors of decompressing.
var damaged = []error{gzip.ErrChecksum, gzip.ErrHeader, zlib.ErrChecksum, zstd.ErrCRCMismatch, zstd.ErrMagicMismatch,
	zstd.ErrFrameSizeExceeded, zstd.ErrFrameSizeMismatch, zstd.ErrReservedBlockType}

// damage says what to do about an error of decompressing; others stay as they are.
func damage(err error) error {
	var deflated flate.CorruptInputError
	var bzipped bzip2.StructuralError
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(io.ErrUnexpectedEOF):
		return fmt.Errorf("the compressed file is cut short or damaged: copy it again (%w)", err)
	case is(zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("it was compressed with zstd --long, and cannot be read in bounded memory: `zstd -d "+
			"--long=31` decompresses it (%w)", err)
	case errors.As(err, &deflated), errors.As(err, &bzipped), slices.ContainsFunc(damaged, is):
		return fmt.Errorf("the compressed file is damaged: copy it again (%w)", err)
	}
	return err
}

// Sample returns what reads the text's first lines again, of so many bytes at most, whether they are the whole text,
// and why there are no more where that is an error, which comes again with its line. It is called before the first
// Next; what it returns is not used after that, or after the next Sample.
func (l *Reader) Sample(size int) (sample *Reader, whole bool, err error) {
	l.r = bufio.NewReaderSize(l.r, size)
	head, err := l.r.Peek(size)
	if whole = err == io.EOF; whole {
		err = nil
	} else {
		head = head[:bytes.LastIndexByte(head, l.eol)+1]
	}
	return &Reader{r: bufio.NewReader(bytes.NewReader(head)), limit: l.limit, eol: l.eol}, whole, damage(err)
}

// trimEnd returns a line without its end.
func (l *Reader) trimEnd(line []byte) []byte {
	trimmed := line
	if l.eol != '\r' {
		trimmed = bytes.TrimSuffix(trimmed, []byte("\n"))
	}
	trimmed = bytes.TrimSuffix(trimmed, []byte("\r"))
	l.end = line[len(trimmed):]
	return trimmed
}

func (l *Reader) Close() error {
	if l.unzip != nil {
		l.unzip()
		l.unzip = nil
	}
	if l.src == nil {
		return nil
	}
	err := l.src.Close()
	l.src = nil
	return err
}
