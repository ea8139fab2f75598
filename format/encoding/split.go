package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Byte-split (id 18): plane i has byte i of all values, the lowest first. Each plane is raw or compressed by itself.
// Before splitting, each value is rotated left by one bit. This moves the sign into the lowest byte, to the noise of
// the mantissa, and aligns the exponent to a byte, so that the highest plane holds little else.
//
//	+--------+------------------------------------------+
//	| 18 (1) | width planes, each:                      |
//	|        | +----------+-------------------+-------+ |
//	|        | | form (1) | size s (uvarint,  | bytes | |
//	|        | |          | form 2 only)      |       | |
//	|        | +----------+-------------------+-------+ |
//	+--------+------------------------------------------+
//
//	form 0: n raw bytes · form 1: one byte, repeated n times · form 2: one zstd frame of s bytes that holds n
const IDFloatSplit ID = 18

const nsSplitByte = 0.4 // a byte of a value

func init() {
	registerFloats(&floatCodec{
		codec: codec{id: IDFloatSplit, name: "split"},
		turn:  50, deepest: maxDepth - 1, fewest: 128, offer: offerSplit, encode: encodeSplit,
		floats: decodeSplit(&floatFamily), doubles: decodeSplit(&doubleFamily), seeks: seekFew,
	})
}

const (
	planeRaw      = 0
	planeConstant = 1
	planeZstd     = 2
)

func offerSplit(e *encoder, c *floatChoice) {
	mark := e.ints.mark()
	defer e.ints.release(mark)
	long := sampleInts(&e.ints, c.vals.raw, 4, 1024)
	scale := c.n / float64(len(long))
	if bytes, packed := e.splitSize(long, c.vals.width); bytes*scale+16 < (1-zstdMargin)*c.bytes {
		c.offer(IDFloatSplit, bytes*scale+16, c.n*float64(c.vals.width)*nsSplitByte+packed*scale*nsZstdByte)
	}
}

func encodeSplit(e *encoder, dst []byte, _ *memory, v *floatValues, _ int) ([]byte, bool) {
	raw, width := v.raw, v.width
	dst = append(dst, byte(IDFloatSplit))
	mark := e.bytes.mark()
	plane := e.bytes.grab(len(raw))
	packed := e.bytes.grab(len(raw) + 64)
	for j := range width {
		if constant := splitPlane(plane, raw, width, j); constant {
			dst = append(dst, planeConstant, plane[0])
			continue
		}
		packed := e.compress(packed[:0], plane)
		if float64(len(packed)) < (1-zstdMargin)*float64(len(plane)) {
			dst = appendNested(append(dst, planeZstd), packed)
			continue
		}
		dst = append(append(dst, planeRaw), plane...)
	}
	e.bytes.release(mark)
	return dst, true
}

// splitSize returns the bytes of the planes of raw, and how many bytes decoding would decompress.
func (e *encoder) splitSize(raw []int64, width int) (bytes, inflated float64) {
	mark := e.bytes.mark()
	plane := e.bytes.grab(len(raw))
	packed := e.bytes.grab(len(raw) + 64)
	for j := range width {
		if splitPlane(plane, raw, width, j) {
			continue
		}
		size := float64(len(e.compress(packed[:0], plane)))
		if size < (1-zstdMargin)*float64(len(plane)) {
			bytes += size
			inflated += float64(len(plane))
		} else {
			bytes += float64(len(plane))
		}
	}
	e.bytes.release(mark)
	return bytes, inflated
}

// splitPlane writes plane j of raw and reports whether all its bytes are equal.
func splitPlane(plane []byte, raw []int64, width, j int) bool {
	plane = plane[:len(raw)]
	var differ byte
	if width == 4 {
		first := byte(bits.RotateLeft32(uint32(raw[0]), 1) >> (8 * j))
		for i, v := range raw {
			b := byte(bits.RotateLeft32(uint32(v), 1) >> (8 * j))
			plane[i] = b
			differ |= b ^ first
		}
		return differ == 0
	}
	first := byte(bits.RotateLeft64(uint64(raw[0]), 1) >> (8 * j))
	for i, v := range raw {
		b := byte(bits.RotateLeft64(uint64(v), 1) >> (8 * j))
		plane[i] = b
		differ |= b ^ first
	}
	return differ == 0
}

// planes sets out to the planes of n values, which are all of p. Raw ones are borrowed from p, the others from scratch.
func (d *Decoder) planes(out [][]byte, n int, p []byte) error {
	for j := range out {
		if len(p) == 0 {
			return errShort
		}
		form := p[0]
		p = p[1:]
		switch form {
		case planeRaw:
			if len(p) < n {
				return errShort
			}
			out[j], p = p[:n], p[n:]
		case planeConstant:
			if len(p) == 0 {
				return errShort
			}
			out[j] = d.bytes.grab(n)
			fill(out[j], p[0])
			p = p[1:]
		case planeZstd:
			frame, rest, err := takeNested(p)
			if err != nil {
				return err
			}
			out[j], p = d.bytes.grab(n), rest
			if err := d.inflate(out[j], frame); err != nil {
				return err
			}
		default:
			return errPlane
		}
	}
	if len(p) != 0 {
		return errLength
	}
	return nil
}

func decodeSplit[T float32 | float64](k *floatKind[T]) decodeFunc[T] {
	return func(d *Decoder, dst []T, n int, spans []Span, p []byte, _ int) error {
		m := d.bytes.mark()
		defer d.bytes.release(m)
		var planes [8][]byte
		if err := d.planes(planes[:k.size], n, p); err != nil {
			return err
		}
		if spans == nil {
			join(dst, &planes)
			return nil
		}
		for _, s := range spans {
			part := planes
			for j := range k.size {
				part[j] = part[j][s.From:s.To]
			}
			n := int(s.To - s.From)
			join(dst[:n], &part)
			dst = dst[n:]
		}
		return nil
	}
}

// join makes len(dst) values from the bytes at the front of planes.
func join[T float32 | float64](dst []T, planes *[8][]byte) {
	switch dst := any(dst).(type) {
	case []float32:
		joinFloats(dst, planes)
	case []float64:
		joinDoubles(dst, planes)
	}
}

// joinFloats is join for floats. Hot.
func joinFloats(dst []float32, planes *[8][]byte) {
	p0, p1, p2, p3 := planes[0][:len(dst)], planes[1][:len(dst)], planes[2][:len(dst)], planes[3][:len(dst)]
	for i := range dst {
		v := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		dst[i] = math.Float32frombits(bits.RotateLeft32(v, -1))
	}
}

// joinDoubles is join for doubles. Hot.
func joinDoubles(dst []float64, planes *[8][]byte) {
	// Four values at a time, with one load of 4 bytes from each plane.
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		var a, b, c, e uint64
		for j := 7; j >= 0; j-- {
			w := binary.LittleEndian.Uint32(planes[j][i:])
			a = a<<8 | uint64(byte(w))
			b = b<<8 | uint64(byte(w>>8))
			c = c<<8 | uint64(byte(w>>16))
			e = e<<8 | uint64(w>>24)
		}
		o := dst[i : i+4 : i+4]
		o[0] = math.Float64frombits(bits.RotateLeft64(a, -1))
		o[1] = math.Float64frombits(bits.RotateLeft64(b, -1))
		o[2] = math.Float64frombits(bits.RotateLeft64(c, -1))
		o[3] = math.Float64frombits(bits.RotateLeft64(e, -1))
	}
	for ; i < len(dst); i++ {
		var v uint64
		for j := 7; j >= 0; j-- {
			v = v<<8 | uint64(planes[j][i])
		}
		dst[i] = math.Float64frombits(bits.RotateLeft64(v, -1))
	}
}
