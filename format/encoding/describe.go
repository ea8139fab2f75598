package encoding

import (
	"strconv"
	"strings"
	"sync"
)

// describeLimit is the most that Describe uncompresses to see what lies inside.
const describeLimit = 1 << 24

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
	if _, known := names[id]; err != nil || !known || depth > maxDepth {
		b.WriteByte('?')
		return
	}
	b.WriteString(id.String())
	arg := func(i int) string {
		if i < len(p) {
			return strconv.Itoa(int(p[i]))
		}
		return "?"
	}
	// nested describes chunks: all but the last behind their length, or all when tail is false.
	nested := func(p []byte, count int, tail bool) {
		b.WriteByte('(')
		for i := range count {
			if i > 0 {
				b.WriteString(", ")
			}
			chunk := p
			if i < count-1 || !tail {
				chunk, p, err = takeNested(p)
			}
			if err != nil {
				b.WriteByte('?')
				break
			}
			describe(b, d, chunk, depth+1)
		}
		b.WriteByte(')')
	}
	afterCount := func(p []byte) []byte {
		_, p, err = takeUvarint(p)
		return p
	}
	switch id {
	case IDPlain, IDFOR, IDRANS:
		b.WriteString(":" + arg(0))
	case IDDelta:
		_, p, err = takeVarint(p)
		nested(p, 1, true)
	case IDPatched:
		b.WriteString(":" + arg(0))
		if len(p) > 0 {
			if _, p, err = takeVarint(p[1:]); err == nil {
				p = afterCount(p)
			}
		}
		nested(p, 2, false)
	case IDDictionary, IDRuns, IDFloatDictionary, IDFloatRuns, IDStringDictionary:
		nested(afterCount(p), 2, true)
	case IDZstd:
		size, frame, err := takeUvarint(p)
		chunk := []byte(nil)
		if err == nil && size <= describeLimit {
			chunk = make([]byte, size)
			if d.inflate(chunk, frame) != nil {
				chunk = nil
			}
		}
		nested(chunk, 1, true)
	case IDRepeats, IDFloatRepeats:
		nested(afterCount(afterCount(p)), 4, true)
	case IDFloatSplit:
		// Planes cannot be told apart without the count of values.
	case IDFloatDecimal:
		b.WriteString(":" + arg(0) + "-" + arg(1))
		if len(p) > 2 {
			p = afterCount(p[2:])
		}
		nested(p, 2, false)
	case IDBitsRuns, IDBitsPositions:
		if len(p) > 0 {
			p = afterCount(p[1:])
		}
		nested(p, 1, true)
	}
}
