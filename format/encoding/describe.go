package encoding

import (
	"strconv"
	"strings"
	"sync"
)

// decoders are for Describe alone, which has no receiver to keep one.
var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Describe returns the tree of codecs in a chunk, as "dict(delta(for:3), for:17)": the numbers are bit widths (plain:
// bytes; decimal: exponents). What cannot be told apart is "?". The count of values is not known here, so that damage
// behind the heads is not seen.
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

// A description is that of one chunk being written.
type description struct {
	b     *strings.Builder
	d     *Decoder
	depth int
	err   error // what kept the nested chunks from being found
}

// byteAt returns byte i of a payload as a number.
func byteAt(p []byte, i int) string {
	if i < len(p) {
		return strconv.Itoa(int(p[i]))
	}
	return "?"
}

// firstByte writes the number that a payload begins with: mostly a width.
func (x *description) firstByte(p []byte) { x.b.WriteString(":" + byteAt(p, 0)) }

// afterCount returns what stands behind a count.
func (x *description) afterCount(p []byte) []byte {
	_, p, x.err = takeUvarint(p)
	return p
}

// nested describes chunks: all but the last behind their length, or all when tail is false.
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

// describeCounted describes a count and two chunks, the second of which ends the payload.
func describeCounted(x *description, p []byte) { x.nested(x.afterCount(p), 2, true) }
