package lines

import (
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// A charset is an encoding of text; nil: UTF-8. It returns text in UTF-8, with its byte order mark. What is no
// character is U+FFFD.
type charset func(io.Reader) io.Reader

// UTF8 is the charset that needs no decoding.
var UTF8 charset

// Charsets are the names that a mapping file may give. latin1 is taken for what programs that say it write: bytes 0x80
// to 0x9f are control characters there, and punctuation in windows-1252.
var Charsets = map[string]charset{
	"utf-8": UTF8, "latin1": windows1252, "iso-8859-1": windows1252, "windows-1252": windows1252, "utf-16le": utf16LE,
	"utf-16be": utf16BE,
}

// markedCharset returns the encoding that a byte order mark at the start of text says, UTF-8 where there is none.
func markedCharset(head []byte) charset {
	switch string(head) {
	case "\xff\xfe":
		return utf16LE
	case "\xfe\xff":
		return utf16BE
	}
	return UTF8
}

// windows1252 decodes the five bytes that stand for nothing as U+FFFD: charmap has control characters for them.
func windows1252(from io.Reader) io.Reader {
	return transform.NewReader(from, transform.Chain(charmap.Windows1252.NewDecoder(), runes.Map(func(r rune) rune {
		if r >= 0x80 && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	})))
}

func utf16LE(from io.Reader) io.Reader { return utf16(from, unicode.LittleEndian) }
func utf16BE(from io.Reader) io.Reader { return utf16(from, unicode.BigEndian) }

func utf16(from io.Reader, order unicode.Endianness) io.Reader {
	return transform.NewReader(&evenReader{from: from}, unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder())
}

// An evenReader returns an error at the end of an odd number of bytes.
type evenReader struct {
	from io.Reader
	odd  bool
}

func (r *evenReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.odd = r.odd != (n%2 == 1); err == io.EOF && r.odd {
		err = errors.New("text in UTF-16 of an odd number of bytes: it was cut short")
	}
	return n, err
}
