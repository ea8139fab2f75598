package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// Floats (32 bits) and doubles (64 bits) share their codecs; width is 4 or 8. Encoding works on the bits of the values,
// so that NaNs keep their payloads and -0 its sign.

// A floatCodec is a codec of floats and doubles. Its fields are those of an intCodec.
type floatCodec struct {
	codec

	turn, deepest, fewest int
	offer                 func(e *encoder, c *floatChoice)
	encode                func(e *encoder, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool)
	below                 float64 // the share of the size of plain

	floats  decodeFunc[float32]
	doubles decodeFunc[float64]
	seeks   seeking
}

var (
	floatCodecs [idEnd]*floatCodec
	floatTurns  []*floatCodec // those that are offered, by turn
)

func registerFloats(c *floatCodec) {
	c.register()
	floatCodecs[c.id] = c
	floatFamily.readers[c.id] = reader[float32]{c.floats, c.seeks}
	doubleFamily.readers[c.id] = reader[float64]{c.doubles, c.seeks}
	if c.offer != nil {
		floatTurns = append(floatTurns, c)
		slices.SortFunc(floatTurns, func(a, b *floatCodec) int { return a.turn - b.turn })
	}
}

// floatValues are values to encode, given by their bits.
type floatValues struct {
	raw       []int64
	width     int // of a value, in bytes
	runs      int
	exponents uint16 // of decimals
}

// append appends a chunk of other values of the same width.
func (v *floatValues) append(e *encoder, dst []byte, m *memory, raw []int64, depth int) []byte {
	return e.appendFloats(dst, m, raw, v.width, depth)
}

// A floatChoice is the state of choosing a codec of floats.
type floatChoice struct {
	best
	vals   *floatValues
	sample []int64 // blocks of the values, spread evenly
	copied float64 // the share of the values that sequences would copy
}

// Constant (id 16):
//
//	+--------+---------------+
//	| 16 (1) | value (width) |
//	+--------+---------------+
//
// Plain (id 17):
//
//	+--------+-------------------+
//	| 17 (1) | n * width, LE     |
//	+--------+-------------------+
const (
	IDFloatConstant ID = 16
	IDFloatPlain    ID = 17
)

func init() {
	registerFloats(&floatCodec{
		codec:  codec{id: IDFloatConstant, name: "constant"},
		floats: decodeFloatConstant(&floatFamily), doubles: decodeFloatConstant(&doubleFamily), seeks: seekAlways,
	})
	registerFloats(&floatCodec{
		codec: codec{id: IDFloatPlain, name: "plain"},
		turn:  10, deepest: maxDepth, offer: offerFloatPlain, encode: encodeFloatPlain,
		floats: decodeFloatPlain(&floatFamily), doubles: decodeFloatPlain(&doubleFamily), seeks: seekFew,
	})
}

func offerFloatPlain(_ *encoder, c *floatChoice) {
	c.offer(IDFloatPlain, 1+c.n*float64(c.vals.width), c.n*nsPlain)
}

func encodeFloatPlain(_ *encoder, dst []byte, _ *memory, v *floatValues, _ int) ([]byte, bool) {
	return appendFloatBytes(append(dst, byte(IDFloatPlain)), v.raw, v.width), true
}

// AppendFloats appends a chunk of vals, bit for bit.
func (c *Chooser) AppendFloats(dst []byte, stream int, vals []float32) []byte {
	e := c.encoder()
	m := e.ints.mark()
	raw := e.ints.grab(len(vals))
	for i, v := range vals {
		raw[i] = int64(math.Float32bits(v))
	}
	dst = e.appendFloats(dst, c.stream(stream), raw, 4, 0)
	e.ints.release(m)
	encoders.Put(e)
	return dst
}

// AppendDoubles appends a chunk of vals, bit for bit.
func (c *Chooser) AppendDoubles(dst []byte, stream int, vals []float64) []byte {
	e := c.encoder()
	m := e.ints.mark()
	raw := e.ints.grab(len(vals))
	for i, v := range vals {
		raw[i] = int64(math.Float64bits(v))
	}
	dst = e.appendFloats(dst, c.stream(stream), raw, 8, 0)
	e.ints.release(m)
	encoders.Put(e)
	return dst
}

// appendFloats appends a floats chunk of values of width bytes, given by their bits.
func (e *encoder) appendFloats(dst []byte, m *memory, raw []int64, width, depth int) []byte {
	if len(raw) == 0 {
		return append(dst, byte(IDFloatPlain))
	}
	runs := 1
	for i, v := range raw[1:] {
		if v != raw[i] {
			runs++
		}
	}
	if runs == 1 {
		return appendFloatBytes(append(dst, byte(IDFloatConstant)), raw[:1], width)
	}
	var seen traits
	if m != nil && len(raw) >= rememberFrom {
		seen = floatTraits(raw, width)
	}
	v := floatValues{raw: raw, width: width, runs: runs}
	if m != nil {
		v.exponents = m.exponents
	}
	dst, fresh := m.appendAgain(dst, len(raw), m != nil && !seen.turned(m.traits), func(without uint64) ID {
		v.exponents = 0
		codec := e.chooseFloats(&v, depth, without)
		m.turn(codec)
		return codec
	}, func(dst []byte, codec ID) ([]byte, bool) { return e.appendFloatsAs(codec, dst, m, &v, depth) })
	if fresh && m != nil {
		m.exponents, m.traits = v.exponents, seen
	}
	return dst
}

// appendFloatsAs appends v in a codec, or returns false if the codec turns out unsuitable.
func (e *encoder) appendFloatsAs(codec ID, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool) {
	c, start := floatCodecs[codec], len(dst)
	dst, ok := c.encode(e, dst, m, v, depth)
	if ok && c.below > 0 && float64(len(dst)-start) >= c.below*float64(len(v.raw)*v.width) {
		dst = appendFloatBytes(append(dst[:start], byte(IDFloatPlain)), v.raw, v.width)
	}
	return dst, ok
}

// chooseFloats returns the codec with the lowest expected cost, and sets the exponents of decimals.
func (e *encoder) chooseFloats(v *floatValues, depth int, without uint64) ID {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	c := floatChoice{best: best{profile: e.profile, n: float64(len(v.raw)), without: without}, vals: v}
	c.sample = sampleInts(&e.ints, v.raw, 16, 256)
	for _, x := range floatTurns {
		if depth <= x.deepest && len(v.raw) >= x.fewest {
			x.offer(e, &c)
		}
	}
	return c.codec
}

// appendFloatBytes appends the width low bytes of each value.
func appendFloatBytes(dst []byte, raw []int64, width int) []byte {
	pos := len(dst)
	dst = slices.Grow(dst, len(raw)*width)[:pos+len(raw)*width]
	p := dst[pos:]
	if width == 4 {
		for _, v := range raw {
			binary.LittleEndian.PutUint32(p, uint32(v))
			p = p[4:]
		}
		return dst
	}
	for _, v := range raw {
		binary.LittleEndian.PutUint64(p, uint64(v))
		p = p[8:]
	}
	return dst
}

// Floats decodes a chunk of len(dst) floats, bit for bit.
func (d *Decoder) Floats(dst []float32, src []byte) error { return floatFamily.decode(d, dst, src, 0) }

// Doubles decodes a chunk of len(dst) doubles, bit for bit.
func (d *Decoder) Doubles(dst []float64, src []byte) error {
	return doubleFamily.decode(d, dst, src, 0)
}

func decodeFloatConstant[T float32 | float64](k *floatKind[T]) decodeFunc[T] {
	return func(_ *Decoder, dst []T, _ int, _ []Span, p []byte, _ int) error {
		if len(p) != k.size {
			return errLength
		}
		var v [1]T
		readFloats(v[:], p)
		fill(dst, v[0])
		return nil
	}
}

func decodeFloatPlain[T float32 | float64](k *floatKind[T]) decodeFunc[T] {
	return func(_ *Decoder, dst []T, n int, spans []Span, p []byte, _ int) error {
		if len(p)%k.size != 0 || len(p)/k.size != n {
			return errLength
		}
		k.read(dst, spans, p)
		return nil
	}
}

// read reads the values of spans of p, or all if spans is nil.
func (k *floatKind[T]) read(dst []T, spans []Span, p []byte) {
	if spans == nil {
		readFloats(dst, p)
		return
	}
	for _, s := range spans {
		n := int(s.To - s.From)
		readFloats(dst[:n], p[k.size*int(s.From):])
		dst = dst[n:]
	}
}

// readFloats reads len(dst) values from the front of p. Hot.
func readFloats[T float32 | float64](dst []T, p []byte) {
	switch dst := any(dst).(type) {
	case []float32:
		for i := 0; i < len(dst) && len(p) >= 4; i++ {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p))
			p = p[4:]
		}
	case []float64:
		for i := 0; i < len(dst) && len(p) >= 8; i++ {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(p))
			p = p[8:]
		}
	}
}

// setFloats reads the values of p to positions of dst.
func setFloats[T float32 | float64](dst []T, positions []int64, p []byte) {
	switch dst := any(dst).(type) {
	case []float32:
		for i, at := range positions {
			dst[at] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
		}
	case []float64:
		for i, at := range positions {
			dst[at] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
	}
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// traits are properties of a small sample of floats. They show that values changed when the size does not: the size of
// plain and of raw byte planes does not depend on the values, so their memory never drifts. Without the traits, values
// that change from noise to prices would stay plain until the choice expires.
type traits struct {
	distinct int16 // distinct values of the sample
	decimals int16 // values of the sample with few decimal places
}

const (
	traitSample = 256 // values: not more than rememberFrom
	traitBlock  = 16  // of them next to each other, so that runs show
	traitChange = traitSample / 8
)

// turned reports whether t differs so much from was that the codec should be chosen again.
func (t traits) turned(was traits) bool {
	apart := func(a, b int16) bool { return max(a, b)-min(a, b) > traitChange }
	return apart(t.distinct, was.distinct) || apart(t.decimals, was.decimals)
}

// floatTraits returns the traits of values, given by their bits. There are at least traitSample values.
func floatTraits(raw []int64, width int) traits {
	var t traits
	var table [4 * traitSample]int64 // open addressing; the key zero is counted apart
	zero := false
	const blocks = traitSample / traitBlock
	for i := range blocks {
		from := i * (len(raw) - traitBlock) / (blocks - 1)
		for _, v := range raw[from : from+traitBlock] {
			if isDecimal(v, width) {
				t.decimals++
			}
			if v == 0 {
				zero = true
				continue
			}
			at := hash(uint64(v)) >> 54
			for table[at] != 0 && table[at] != v {
				at = (at + 1) % uint64(len(table))
			}
			if table[at] == 0 {
				table[at] = v
				t.distinct++
			}
		}
	}
	if zero {
		t.distinct++
	}
	return t
}

// isDecimal reports whether a double has at most six decimal places, a float at most three.
func isDecimal(raw int64, width int) bool {
	if width == 4 {
		v := math.Float32frombits(uint32(raw))
		return float32(math.RoundToEven(float64(v)*1e3)/1e3) == v
	}
	v := math.Float64frombits(uint64(raw))
	return math.RoundToEven(v*1e6)/1e6 == v
}
