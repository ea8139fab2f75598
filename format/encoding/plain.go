package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// Plain (id 2): each value in 1, 2, 4 or 8 bytes, sign-extended.
//
//	+-------+-----------+---------------------+
//	| 2 (1) | width (1) | n * width bytes, LE |
//	+-------+-----------+---------------------+
const IDPlain ID = 2

const nsPlain = 0.5 // a value

func init() {
	registerInts(&intCodec{
		codec: codec{IDPlain, "plain", (*description).firstByte},
		turn:  20, deepest: maxDepth, offer: offerPlain, encode: encodePlain, decode: decodePlain, seeks: seekFew,
	})
}

func offerPlain(_ *encoder, c *intChoice) {
	c.offer(IDPlain, 2+c.n*float64(plainWidth(c.stats.min, c.stats.max)), c.n*nsPlain)
}

func encodePlain(_ *encoder, dst []byte, _ *memory, vals []int64, s *intStats, _ int) ([]byte, bool) {
	return appendPlain(dst, vals, plainWidth(s.min, s.max)), true
}

func appendPlain(dst []byte, vals []int64, width int) []byte {
	dst = append(dst, byte(IDPlain), byte(width))
	pos := len(dst)
	dst = slices.Grow(dst, len(vals)*width)[:pos+len(vals)*width]
	p := dst[pos:]
	switch width {
	case 1:
		for i, v := range vals {
			p[i] = byte(v)
		}
	case 2:
		for _, v := range vals {
			binary.LittleEndian.PutUint16(p, uint16(v))
			p = p[2:]
		}
	case 4:
		for _, v := range vals {
			binary.LittleEndian.PutUint32(p, uint32(v))
			p = p[4:]
		}
	default:
		for _, v := range vals {
			binary.LittleEndian.PutUint64(p, uint64(v))
			p = p[8:]
		}
	}
	return dst
}

// plainWidth returns the fewest bytes that hold every value from lo to hi.
func plainWidth(lo, hi int64) int {
	switch {
	case lo >= math.MinInt8 && hi <= math.MaxInt8:
		return 1
	case lo >= math.MinInt16 && hi <= math.MaxInt16:
		return 2
	case lo >= math.MinInt32 && hi <= math.MaxInt32:
		return 4
	}
	return 8
}

func decodePlain(_ *Decoder, dst []int64, n int, spans []Span, p []byte, _ int) error {
	if len(p) < 1 {
		return errShort
	}
	width := int(p[0])
	p = p[1:]
	if width != 1 && width != 2 && width != 4 && width != 8 {
		return errPlainWidth
	}
	if len(p)/width != n || len(p)%width != 0 {
		return errLength
	}
	if spans == nil {
		widen(dst, p, width)
		return nil
	}
	for _, s := range spans {
		k := int(s.To - s.From)
		widen(dst[:k], p[int(s.From)*width:int(s.To)*width], width)
		dst = dst[k:]
	}
	return nil
}

// widen reads values of width bytes. Hot.
func widen(dst []int64, p []byte, width int) {
	switch width {
	case 1:
		p = p[:len(dst)]
		for i, b := range p {
			dst[i] = int64(int8(b))
		}
	case 2:
		for i := 0; i < len(dst) && len(p) >= 2; i++ {
			dst[i] = int64(int16(binary.LittleEndian.Uint16(p)))
			p = p[2:]
		}
	case 4:
		for i := 0; i < len(dst) && len(p) >= 4; i++ {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(p)))
			p = p[4:]
		}
	case 8:
		for i := 0; i < len(dst) && len(p) >= 8; i++ {
			dst[i] = int64(binary.LittleEndian.Uint64(p))
			p = p[8:]
		}
	}
}
