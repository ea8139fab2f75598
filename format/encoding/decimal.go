package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Decimal floats (id 19), after ALP (Afroozeh, Kuffo, Boncz: Adaptive Lossless floating-Point compression, SIGMOD
// 2023): a value v that is a decimal is stored as the integer d = round(v * 10^e * 10^-f), if d * 10^f * 10^-e gives v
// back bit for bit. Other values are exceptions. The chunk has one pair (e, f).
//
//	+--------+-------+-------+------------------------+-------------------+---------------+
//	| 19 (1) | e (1) | f (1) | exceptions x (uvarint) | length of         | integers:     |
//	|        |       |       |                        | integers (uvarint)| ints, n       |
//	+--------+-------+-------+------------------------+-------------------+---------------+
//	+----------------------+--------------------+----------------------------------------+
//	| length of positions  | positions: ints, x | x exceptions, width bytes each, LE     |
//	| (uvarint)            |                    |                                        |
//	+----------------------+--------------------+----------------------------------------+
//
// f <= e, e <= 18 for doubles and 10 for floats. Decoding multiplies in the type of the values, rounding to nearest
// even after each of the two products: first by 10^f, then by the double or float nearest to 10^-e. The integer at the
// position of an exception has no meaning. Positions increase and are below n.
const IDFloatDecimal ID = 19

const nsDecimal = 0.5 // a value

func init() {
	registerFloats(&floatCodec{
		codec: codec{IDFloatDecimal, "decimal", describeDecimal},
		turn:  30, deepest: maxDepth - 2, offer: offerDecimal, encode: encodeDecimal,
		floats: decodeDecimal(&floatFamily), doubles: decodeDecimal(&doubleFamily), seeks: seekFew,
	})
}

const (
	maxExponent32 = 10
	maxExponent64 = 18
	maxDecimal32  = 1 << 31 // integers below this in magnitude
	maxDecimal64  = 1 << 53
)

var (
	tens64 = [maxExponent64 + 1]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
		1e14, 1e15, 1e16, 1e17, 1e18}
	frac64 = [maxExponent64 + 1]float64{1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11,
		1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18}
	tens32 = [maxExponent32 + 1]float32{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}
	frac32 = [maxExponent32 + 1]float32{1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10}
)

// toDecimal64 returns the integer of v for the exponents e and f, and whether decoding it gives v.
func toDecimal64(v float64, e, f int) (int64, bool) {
	r := math.RoundToEven(v * tens64[e] * frac64[f])
	if !(math.Abs(r) < maxDecimal64) {
		return 0, false
	}
	d := int64(r)
	return d, math.Float64bits(float64(d)*tens64[f]*frac64[e]) == math.Float64bits(v)
}

func toDecimal32(v float32, e, f int) (int64, bool) {
	r := math.RoundToEven(float64(v * tens32[e] * frac32[f]))
	if !(math.Abs(r) < maxDecimal32) {
		return 0, false
	}
	d := int64(r)
	return d, math.Float32bits(float32(d)*tens32[f]*frac32[e]) == math.Float32bits(v)
}

// toDecimal is toDecimal64 or toDecimal32 of a value given by its bits.
func toDecimal(raw int64, width, e, f int) (int64, bool) {
	if width == 4 {
		return toDecimal32(math.Float32frombits(uint32(raw)), e, f)
	}
	return toDecimal64(math.Float64frombits(uint64(raw)), e, f)
}

// chooseDecimal returns the exponents with which a sample takes fewest bytes, these bytes, and the number of
// exceptions.
func chooseDecimal(sample []int64, width int) (exponents uint16, size, exceptions float64) {
	const tries = 64 // each pair is tried on so many values, spread evenly over the sample
	step := max(1, len(sample)/tries)
	// A pair with which none of a few values is a decimal is not tried further.
	const few = 8
	fewStep := max(1, len(sample)/few)
	top := maxExponent64
	if width == 4 {
		top = maxExponent32
	}
	bestBits := math.MaxInt
	for e := top; e >= 0; e-- {
		for f := e; f >= 0; f-- {
			if bestBits < math.MaxInt && !anyDecimal(sample, fewStep, width, e, f) {
				continue
			}
			if b, _ := decimalBits(sample, step, width, e, f, bestBits); b < bestBits {
				bestBits, exponents = b, uint16(e)<<8|uint16(f)
			}
		}
	}
	b, x := decimalBits(sample, 1, width, int(exponents>>8), int(exponents&0xff), math.MaxInt)
	return exponents, float64(b) / 8, float64(x)
}

// anyDecimal reports whether one of every step-th value of a sample is a decimal.
func anyDecimal(sample []int64, step, width, e, f int) bool {
	for i := 0; i < len(sample); i += step {
		if _, ok := toDecimal(sample[i], width, e, f); ok {
			return true
		}
	}
	return false
}

// decimalBits returns the bits and the exceptions of every step-th value of a sample, or gives up beyond limit bits.
func decimalBits(sample []int64, step, width, e, f, limit int) (size, exceptions int) {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	n := 0
	for i := 0; i < len(sample); i += step {
		n++
		d, ok := toDecimal(sample[i], width, e, f)
		if !ok {
			if exceptions++; exceptions*(8*width+16) > limit {
				return math.MaxInt, exceptions
			}
			continue
		}
		lo, hi = min(lo, d), max(hi, d)
	}
	size = exceptions * (8*width + 16)
	if hi >= lo {
		size += n * bits.Len64(uint64(hi-lo))
	}
	return size, exceptions
}

func offerDecimal(_ *encoder, c *floatChoice) {
	x, bytes, exceptions := chooseDecimal(c.sample, c.vals.width)
	c.vals.exponents = x
	sn := float64(len(c.sample))
	c.offer(IDFloatDecimal, bytes*c.n/sn+20, c.n*(nsFOR+nsDecimal)+nsPatch*exceptions*c.n/sn)
}

func encodeDecimal(e *encoder, dst []byte, m *memory, vals *floatValues, depth int) ([]byte, bool) {
	raw, width := vals.raw, vals.width
	ex, f := int(vals.exponents>>8), int(vals.exponents&0xff)
	mark, bmark := e.ints.mark(), e.bytes.mark()
	ints, positions, exceptions := e.ints.grab(len(raw)), e.ints.grab(len(raw)), e.ints.grab(len(raw))
	x, last := 0, int64(0)
	for i, v := range raw {
		d, ok := toDecimal(v, width, ex, f)
		if !ok {
			positions[x], exceptions[x] = int64(i), v
			x++
			d = last
			if x == i+1 {
				continue // nothing before: filled below
			}
		} else if x == i {
			fill(ints[:i], d)
		}
		ints[i], last = d, d
	}
	if x == len(raw) {
		clear(ints)
	}
	dst = append(dst, byte(IDFloatDecimal), byte(ex), byte(f))
	dst = binary.AppendUvarint(dst, uint64(x))
	chunk := e.appendInts(e.bytes.grab(chunkRoom(len(raw)))[:0], m.kid(0), ints, depth+1)
	dst = appendNested(dst, chunk)
	chunk = e.appendInts(chunk[:0], m.kid(1), positions[:x], depth+1)
	dst = appendNested(dst, chunk)
	dst = appendFloatBytes(dst, exceptions[:x], width)
	e.ints.release(mark)
	e.bytes.release(bmark)
	return dst, true
}

// A decimalChunk has the parts of a decimal chunk, borrowed from it.
type decimalChunk struct {
	e, f       int
	exceptions int
	ints       []byte // a chunk of n ints
	positions  []byte // a chunk of the positions of the exceptions
	values     []byte // of the exceptions
}

func parseDecimal(n int, p []byte, width int) (c decimalChunk, err error) {
	if len(p) < 2 {
		return c, errShort
	}
	c.e, c.f = int(p[0]), int(p[1])
	top := maxExponent64
	if width == 4 {
		top = maxExponent32
	}
	if c.e > top || c.f > c.e {
		return c, errExponent
	}
	if c.exceptions, p, err = takeCount(p[2:], n); err != nil {
		return c, err
	}
	if c.ints, p, err = takeNested(p); err != nil {
		return c, err
	}
	if c.positions, p, err = takeNested(p); err != nil {
		return c, err
	}
	if len(p) != c.exceptions*width {
		return c, errLength
	}
	c.values = p
	return c, nil
}

func decodeDecimal[T float32 | float64](k *floatKind[T]) decodeFunc[T] {
	return func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		c, err := parseDecimal(n, p, k.size)
		if err != nil {
			return err
		}
		m := d.ints.mark()
		defer d.ints.release(m)
		ints, positions := d.ints.grab(len(dst)), d.ints.grab(c.exceptions)
		if err := d.intsAt(ints, n, spans, c.ints, depth+1); err != nil {
			return err
		}
		if err := d.decodeInts(positions, c.positions, depth+1); err != nil {
			return err
		}
		if err := checkPositions(positions, n); err != nil {
			return err
		}
		a, b := k.tens[c.f], k.frac[c.e]
		ints = ints[:len(dst)]
		for i, v := range ints {
			dst[i] = T(v) * a * b
		}
		if spans == nil {
			setFloats(dst, positions, c.values)
			return nil
		}
		eachPosition(positions, spans, func(i, x int) { readFloats(dst[i:i+1], c.values[k.size*x:]) })
		return nil
	}
}

func describeDecimal(x *description, p []byte) {
	x.b.WriteString(":" + byteAt(p, 0) + "-" + byteAt(p, 1))
	if len(p) > 2 {
		p = x.afterCount(p[2:])
	}
	x.nested(p, 2, false)
}
