package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
)

// Patched (id 5): a frame of reference whose width suits most values. The high bits of the few wider ones, the
// exceptions, are stored separately.
//
//	+-------+-----------+---------------+-----------------------+---------------------+
//	| 5 (1) | width (1) | base (varint) | exceptions x (uvarint)| length of positions |
//	|       | 0 to 63   |               |                       | chunk (uvarint)     |
//	+-------+-----------+---------------+-----------------------+---------------------+
//	+-------------------+-------------------+-------------------+---------------------+
//	| positions: ints,x | length of highs   | highs: ints, x    | n low parts,        |
//	|                   | chunk (uvarint)   |                   | bit-packed          |
//	+-------------------+-------------------+-------------------+---------------------+
//
// value = base + low + (high << width), wrapping at 64 bits. Positions increase and are below n; x is at most n.
const IDPatched ID = 5

const nsPatch = 3.0 // an exception

func init() {
	registerInts(&intCodec{
		codec: codec{IDPatched, "patched", describePatched},
		turn:  50, deepest: maxDepth - 1, offer: offerPatched, encode: encodePatched,
		decode: decodePatched, seeks: seekFew,
	})
}

func offerPatched(_ *encoder, c *intChoice) {
	s := c.stats
	if s.width <= 1 {
		return
	}
	if w, _, size := choosePatched(c.sample, s.min, s.max, s.base); w < s.width {
		const exceptions = 0.02 // typical share where patching pays
		c.offer(IDPatched, size*c.n/float64(len(c.sample))+12, c.n*(nsFOR+nsPatch*exceptions))
	}
}

// encodePatched appends a frame of reference if patching saves nothing.
func encodePatched(e *encoder, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	if width, base, _ := choosePatched(vals, s.min, s.max, s.base); width < s.width {
		return e.appendPatched(dst, m, vals, width, base, depth), true
	}
	return appendFOR(dst, vals, s.width, s.base), true
}

func (e *encoder) appendPatched(dst []byte, m *memory, vals []int64, width int, base int64, depth int) []byte {
	dst = append(dst, byte(IDPatched), byte(width))
	dst = binary.AppendVarint(dst, base)
	mark, bmark := e.ints.mark(), e.bytes.mark()
	positions, highs := e.ints.grab(len(vals)), e.ints.grab(len(vals))
	x := 0
	for i, v := range vals {
		if h := uint64(v-base) >> width; h != 0 {
			positions[x], highs[x] = int64(i), int64(h)
			x++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(x))
	chunk := e.appendInts(e.bytes.grab(chunkRoom(x))[:0], m.kid(0), positions[:x], depth+1)
	dst = appendNested(dst, chunk)
	chunk = e.appendInts(chunk[:0], m.kid(1), highs[:x], depth+1)
	dst = appendNested(dst, chunk)
	e.ints.release(mark)
	e.bytes.release(bmark)
	return bitpack.Append(dst, vals, width, base)
}

// choosePatched returns the width and base with which a patched chunk of vals is smallest, and its bytes. vals are in
// [lo, hi]. The base is frame, that of a frame of reference, or 0 if only a few values are far below 0.
func choosePatched(vals []int64, lo, hi, frame int64) (width int, base int64, size float64) {
	var hist [65]int
	for _, v := range vals {
		hist[bits.Len64(uint64(v-frame))]++
	}
	width, size = patchedWidth(&hist, len(vals))
	if lo >= 0 || hi <= 0 || frame == 0 {
		return width, frame, size
	}
	clear(hist[:])
	for _, v := range vals {
		hist[bits.Len64(uint64(v))]++
	}
	if w, s := patchedWidth(&hist, len(vals)); s < size {
		return w, 0, s
	}
	return width, frame, size
}

// patchedWidth returns the width with which a patched chunk is smallest, and its bytes, from the histogram of the bit
// lengths of the values minus the base.
func patchedWidth(hist *[65]int, n int) (width int, size float64) {
	longest := 64
	for longest > 0 && hist[longest] == 0 {
		longest--
	}
	width, size = longest, float64(n)*float64(longest)/8
	x := 0
	for w := longest - 1; w >= 0; w-- {
		x += hist[w+1]
		if x > n/8 {
			break
		}
		apart := float64(bits.Len(uint(n/x))) + 1
		s := float64(n)*float64(w)/8 + float64(x)*(float64(longest-w)+apart)/8 + 12
		if s < size {
			width, size = w, s
		}
	}
	return width, size
}

// A patchedChunk is a decoded patched chunk, except for its low parts.
type patchedChunk struct {
	width            int
	base             int64
	positions, highs []int64 // scratch, from mark on
	mark             int
	packed           []byte
}

// parsePatched decodes all but the low parts of a chunk of n values. The caller releases c.mark if there is no error.
func (d *Decoder) parsePatched(n int, p []byte, depth int) (c patchedChunk, err error) {
	if len(p) < 1 {
		return c, errShort
	}
	if c.width = int(p[0]); c.width > 63 {
		return c, errWidth
	}
	if c.base, p, err = takeVarint(p[1:]); err != nil {
		return c, err
	}
	x, p, err := takeCount(p, n)
	if err != nil {
		return c, err
	}
	c.mark = d.ints.mark()
	defer func() {
		if err != nil {
			d.ints.release(c.mark)
		}
	}()
	c.positions, c.highs = d.ints.grab(x), d.ints.grab(x)
	for _, part := range [2][]int64{c.positions, c.highs} {
		var chunk []byte
		if chunk, p, err = takeNested(p); err != nil {
			return c, err
		}
		if err = d.decodeInts(part, chunk, depth+1); err != nil {
			return c, err
		}
	}
	if len(p) != bitpack.Len(n, c.width) {
		return c, errLength
	}
	c.packed = p
	return c, checkPositions(c.positions, n)
}

func decodePatched(d *Decoder, dst []int64, n int, spans []Span, p []byte, depth int) error {
	c, err := d.parsePatched(n, p, depth)
	if err != nil {
		return err
	}
	defer d.ints.release(c.mark)
	d.unpackAt(dst, n, spans, c.packed, c.width, c.base)
	if spans == nil { // a sixth faster than as one span
		for i, at := range c.positions {
			dst[at] += c.highs[i] << c.width
		}
		return nil
	}
	eachPosition(c.positions, spans, func(i, x int) { dst[i] += c.highs[x] << c.width })
	return nil
}

func describePatched(x *description, p []byte) {
	x.firstByte(p)
	if len(p) > 0 {
		if _, p, x.err = takeVarint(p[1:]); x.err == nil {
			p = x.afterCount(p)
		}
	}
	x.nested(p, 2, false)
}
