package lines

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// A charset is an encoding of text; nil: UTF-8. It returns text in UTF-8, with its byte order mark. What is no
// character is U+FFFD.
type charset func(io.Reader) io.Reader

// UTF8 is the charset that needs no decoding.
var UTF8 charset

// charsets are the names that a mapping file and a DDL may give. latin1 is taken for what programs that say it write:
// bytes 0x80 to 0x9f are control characters there, and punctuation in windows-1252.
var charsets = map[string]charset{
	"utf-8": UTF8, "latin1": windows(charmap.Windows1252), "iso-8859-1": windows(charmap.Windows1252),
	"utf-16le": utf16LE, "utf-16be": utf16BE,
	"windows-1250": windows(charmap.Windows1250), "windows-1251": windows(charmap.Windows1251),
	"windows-1252": windows(charmap.Windows1252), "windows-1254": windows(charmap.Windows1254),
	"koi8-r": decoded(charmap.KOI8R), "iso-8859-2": decoded(charmap.ISO8859_2),
	"gbk": decoded(simplifiedchinese.GBK), "gb18030": decoded(simplifiedchinese.GB18030),
	"big5": decoded(traditionalchinese.Big5), "euc-kr": decoded(korean.EUCKR),
	"shift-jis": decoded(japanese.ShiftJIS), "euc-jp": decoded(japanese.EUCJP),
}

// otherNames are what other programs call a charset.
var otherNames = map[string]string{
	"utf8": "utf-8", "iso8859-1": "latin1", "cp1250": "windows-1250", "cp1251": "windows-1251",
	"cp1252": "windows-1252", "cp1254": "windows-1254", "gb2312": "gbk", "cp936": "gbk",
	"sjis": "shift-jis", "cp932": "shift-jis", "windows-31j": "shift-jis",
	"cp949": "euc-kr", "ks-c-5601-1987": "euc-kr",
}

// Charset returns the encoding of a name, in any case and with _ for -. Its error lists the names.
func Charset(name string) (charset, error) {
	key := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	set, ok := charsets[cmp.Or(otherNames[key], key)]
	if !ok {
		return nil, fmt.Errorf("encoding %q is none of %s: iconv -f %[1]s -t UTF-8 FILE makes UTF-8 of it", name,
			strings.Join(slices.Sorted(maps.Keys(charsets)), ", "))
	}
	return set, nil
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

func decoded(from encoding.Encoding) charset {
	return func(in io.Reader) io.Reader { return transform.NewReader(in, from.NewDecoder()) }
}

// windows decodes the few bytes that stand for nothing as U+FFFD: charmap has control characters for them.
func windows(from encoding.Encoding) charset {
	return func(in io.Reader) io.Reader {
		return transform.NewReader(in, transform.Chain(from.NewDecoder(), runes.Map(func(r rune) rune {
			if r >= 0x80 && r < 0xa0 {
				return utf8.RuneError
			}
			return r
		})))
	}
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
