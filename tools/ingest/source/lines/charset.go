package lines

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// A charset is an encoding of text other than UTF-8.
type charset uint8

const (
	UTF8 charset = iota
	windows1252Set
	utf16LE
	utf16BE
)

// Charsets are the names that a mapping file may give. latin1 is taken for what programs that say it write: bytes 0x80 to 0x9f are
// control characters there, and punctuation in windows-1252.
var Charsets = map[string]charset{
	"utf-8": UTF8, "latin1": windows1252Set, "iso-8859-1": windows1252Set, "windows-1252": windows1252Set,
	"utf-16le": utf16LE, "utf-16be": utf16BE,
}

// markedCharset returns the encoding that a byte order mark at the start of text says, UTF-8 where there is none.
func markedCharset(head []byte) charset {
	if len(head) >= 2 {
		switch binary.BigEndian.Uint16(head) {
		case 0xfffe:
			return utf16LE
		case 0xfeff:
			return utf16BE
		}
	}
	return UTF8
}

// A charsetReader gives text in UTF-8, a byte order mark included. What is no character is U+FFFD.
type charsetReader struct {
	from *bufio.Reader
	set  charset
	out  []byte // converted and not yet given
	err  error  // of next, for good
	buf  [4 << 10]byte
}

func (r *charsetReader) Read(p []byte) (int, error) {
	if len(r.out) == 0 {
		r.out = r.buf[:0]
		for r.err == nil && len(r.out) < len(r.buf)-utf8.UTFMax {
			var c rune
			if c, r.err = r.next(); r.err == nil {
				r.out = utf8.AppendRune(r.out, c)
			}
		}
		if len(r.out) == 0 {
			return 0, r.err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *charsetReader) next() (rune, error) {
	if r.set == windows1252Set {
		b, err := r.from.ReadByte()
		if b >= 0x80 && b < 0xa0 {
			return Windows1252[b-0x80], err
		}
		return rune(b), err
	}
	a, err := r.unit()
	if err != nil || !utf16.IsSurrogate(rune(a)) {
		return rune(a), err
	}
	next, err := r.from.Peek(2)
	if err != nil {
		return utf8.RuneError, nil // half of a pair at the end
	}
	c := utf16.DecodeRune(rune(a), rune(r.order().Uint16(next)))
	if c != utf8.RuneError {
		_, err = r.from.Discard(2)
	}
	return c, err
}

func (r *charsetReader) order() binary.ByteOrder {
	if r.set == utf16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// unit reads 16 bits.
func (r *charsetReader) unit() (uint16, error) {
	var b [2]byte
	if _, err := io.ReadFull(r.from, b[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("text in UTF-16 of an odd number of bytes: it was cut short")
		}
		return 0, err
	}
	return r.order().Uint16(b[:]), nil
}

// Windows1252 are the characters of the bytes 0x80 to 0x9f. Five of them stand for nothing.
var Windows1252 = [32]rune{
	'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
	utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
}
