package encoding

import (
	"strconv"
	"strings"
	"sync"
)

// decoders are used by Describe, which has no receiver to keep one.
var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Describe returns the tree of codecs in a chunk, such as "dict(delta(for:3), for:17)". The numbers are bit widths (for
// plain: bytes; for decimal: exponents). A part that cannot be parsed is "?". Describe reads only the heads of chunks,
// so it does not find damage behind them.
func Describe(src []byte) string {
	var b strings.Builder
	d := decoders.Get().(*Decoder)
	describe(&b, d, src, 0)
	decoders.Put(d)
	return b.String()
}

func describe(b *strings.Builder, d *Decoder, src []byte, depth int) {
	id, p, err := head(src)
	c := id.codec()
	if err != nil || c == nil || depth > maxDepth {
		b.WriteByte('?')
		return
	}
	b.WriteString(c.name)
	if c.describe != nil {
		c.describe(&description{b: b, d: d, depth: depth}, p)
	}
}

// A description is the state of describing one chunk.
type description struct {
	b     *strings.Builder
	d     *Decoder
	depth int
	err   error // of parsing; nested chunks cannot be found after it
}

// byteAt returns byte i of a payload as a number.
func byteAt(p []byte, i int) string {
	if i < len(p) {
		return strconv.Itoa(int(p[i]))
	}
	return "?"
}

// firstByte writes the first byte of a payload, usually a width.
func (x *description) firstByte(p []byte) { x.b.WriteString(":" + byteAt(p, 0)) }

// afterCount returns the payload without the count at its front.
func (x *description) afterCount(p []byte) []byte {
	_, p, x.err = takeUvarint(p)
	return p
}

// nested describes count nested chunks. Each has its length before it, except the last if tail is true.
func (x *description) nested(p []byte, count int, tail bool) {
	x.b.WriteByte('(')
	for i := range count {
		if i > 0 {
			x.b.WriteString(", ")
		}
		chunk := p
		if i < count-1 || !tail {
			chunk, p, x.err = takeNested(p)
		}
		if x.err != nil {
			x.b.WriteByte('?')
			break
		}
		describe(x.b, x.d, chunk, x.depth+1)
	}
	x.b.WriteByte(')')
}

// describeCounted describes a payload of a count and two chunks, the second without a length.
func describeCounted(x *description, p []byte) { x.nested(x.afterCount(p), 2, true) }
