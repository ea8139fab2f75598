package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// CopyFile writes a feature file from its directory m and the rest of its bytes, with another salt: body begins with
// the dictionary or the first stripe, behind the header, and is read up to the end of the last stripe. Chunks are
// copied as they are. Their checksums are verified, and made anew; header, directory and tail are made anew too. It
// returns the copy's directory, which shares memory with m, and the bytes written. It holds one stripe at a time.
// Errors of damaged bytes match ErrCorrupt, their offsets count from the start of the file; a body that ends early is
// io.ErrUnexpectedEOF.
func CopyFile(w io.Writer, m *FileMeta, salt uint32, body io.Reader) (*FileMeta, int64, error) {
	out := *m
	out.Salt = salt
	c := copier{w: w, body: body}
	c.write(appendHeader(nil, fileMagic))
	if n := m.Dictionary.Length; n > 0 {
		c.copy(n, []StreamMeta{{Kind: dictionaryKind, Length: n}}, newStreamContext(salt, dictionaryStripe),
			func(src []byte) error { return VerifyDictionary(m, src) })
	}
	for i := range m.Stripes {
		c.copy(m.Stripes[i].Length, m.Stripes[i].Streams, newStreamContext(salt, i), func(src []byte) error {
			return VerifyStripe(m, i, src)
		})
	}
	c.write(appendTail(AppendMeta(nil, &out), 0, fileMagic))
	return &out, c.written, c.err
}

// A copier does nothing after its first error.
type copier struct {
	w       io.Writer
	body    io.Reader
	buf     []byte // of a stripe
	written int64
	err     error
}

func (c *copier) write(b []byte) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(b)
		c.written += int64(n)
	}
}

// copy copies the next n bytes, which are streams that verify accepts. context is that of the copy.
func (c *copier) copy(n uint64, streams []StreamMeta, context streamContext, verify func(src []byte) error) {
	if c.err != nil {
		return
	}
	c.buf = slices.Grow(c.buf[:0], int(n))[:n]
	got, err := io.ReadFull(c.body, c.buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("feature file ends after %d bytes of %d that follow offset %d: %w", got, n, c.written,
			io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = verify(c.buf)
	}
	if c.err = err; err != nil {
		return
	}
	rest := c.buf
	for _, s := range streams {
		chunk := rest[:s.Length-checksumLength]
		binary.LittleEndian.PutUint32(rest[len(chunk):], context.sum(s.Kind, chunk))
		rest = rest[s.Length:]
	}
	c.write(c.buf)
}
