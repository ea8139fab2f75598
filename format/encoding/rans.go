package encoding

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/dsistore/dsistore/format/encoding/rans"
)

// Entropy-coded classes (id 11, "rans"): a frame of reference whose distances are divided into 16 classes. A class is a
// power of two of neighbouring distances. The class is entropy-coded, the position in the class is stored in bits: see
// package rans. Dictionary codes that are sorted by frequency so take nearly their entropy, with a table of 32 bytes.
//
//	+--------+---------------+------------------+---------------------+--------------+-------------+-----------+
//	| 11 (1) | low width (1) | minimum (varint) | 16 buckets, each    | 32 states    | words       | n low     |
//	|        | 0 to 48       |                  | cut (1), class      | (4 each, LE) | (2 each,    | parts,    |
//	|        |               |                  | and size (1/2 each) |              | LE)         | packed    |
//	+--------+---------------+------------------+---------------------+--------------+-------------+-----------+
const IDRANS ID = 11

const nsRANS = 1.5 // a value, with AVX2: less than half of it with AVX-512, five times as much in plain Go

func init() {
	registerInts(&intCodec{
		codec: codec{IDRANS, "rans", (*description).firstByte},
		turn:  70, deepest: maxDepth - 1, fewest: 256, offer: offerRANS, encode: encodeRANS, below: 1,
		decode: decodeRANS, seeks: seekAlways, stream: ransStream,
	})
}

var ransStream = &intStream{open: openRANS, next: nextRANS, close: closeRANS}

// offerRANS estimates the size from the entropy of the classes of a sample.
func offerRANS(e *encoder, c *intChoice) {
	if c.bytes <= c.n/16 {
		return
	}
	total := e.rans().EstimateBits(c.sample, c.stats.width, c.stats.base)
	// Half of the bytes of the states hold information about the values.
	bytes := total/8*c.n/float64(len(c.sample)) + rans.TableLen + rans.StateLen/2 + 12
	c.offer(IDRANS, bytes, c.n*nsRANS)
}

// encodeRANS returns false if all values are equal: the states would never change, so a decoder could not check the
// number of values.
func encodeRANS(e *encoder, dst []byte, _ *memory, vals []int64, s *intStats, _ int) ([]byte, bool) {
	if s.width == 0 {
		return dst, false
	}
	dst = append(dst, byte(IDRANS), byte(rans.LowWidth(s.width)))
	dst = binary.AppendVarint(dst, s.base)
	return e.rans().Append(dst, vals, s.width, s.base), true
}

// rans returns the encoder of entropy-coded classes, which is large and therefore allocated when first needed.
func (e *encoder) rans() *rans.Encoder {
	if e.ransEncoder == nil {
		e.ransEncoder = new(rans.Encoder)
	}
	return e.ransEncoder
}

func openRANS(d *Decoder, n int, p []byte) error {
	if len(p) < 1 {
		return errShort
	}
	low := int(p[0])
	if low > rans.MaxLow {
		return errWidth
	}
	base, p, err := takeVarint(p[1:])
	if err != nil {
		return err
	}
	if !d.rans.Open(n, low, base, p) {
		return errLength
	}
	return nil
}

func nextRANS(d *Decoder, dst []int64) error {
	if !d.rans.Next(dst) {
		return errRANS
	}
	return nil
}

func closeRANS(d *Decoder) error {
	if !d.rans.Close() {
		return errRANS
	}
	return nil
}

func decodeRANS(d *Decoder, dst []int64, n int, spans []Span, p []byte, _ int) error {
	if spans != nil {
		return decodeRANSAt(d, dst, n, spans, p)
	}
	if err := openRANS(d, n, p); err != nil {
		return err
	}
	err := nextRANS(d, dst)
	if end := closeRANS(d); err == nil {
		err = end
	}
	return err
}

// errEnough ends a stream of which no more is needed.
var errEnough = errors.New("enough")

// A placedSpan is a span whose values go to position at on.
type placedSpan struct {
	Span
	at int32
}

// decodeRANSAt copies the values of spans out of each block, up to the last one that has any.
func decodeRANSAt(d *Decoder, dst []int64, n int, spans []Span, p []byte) error {
	m := d.placed.mark()
	defer d.placed.release(m)
	placed := d.placed.grab(len(spans))
	ascend, sum := true, int32(0)
	for i, s := range spans {
		placed[i] = placedSpan{s, sum}
		sum += s.To - s.From
		ascend = ascend && (i == 0 || spans[i-1].From <= s.From)
	}
	if !ascend {
		slices.SortFunc(placed, func(a, b placedSpan) int { return int(a.From - b.From) })
	}
	from, to := 0, 0 // the spans that have begun, and have not ended before the block
	err := ransStream.each(d, n, p, func(at int, block []int64) error {
		if from == len(placed) {
			return errEnough
		}
		end := int32(at + len(block))
		for to < len(placed) && placed[to].From < end {
			to++
		}
		left := to
		for i := to - 1; i >= from; i-- {
			s := placed[i]
			lo, hi := max(s.From, int32(at)), min(s.To, end)
			copy(dst[s.at+lo-s.From:], block[lo-int32(at):hi-int32(at)])
			if s.To > end {
				left--
				placed[left] = s
			}
		}
		from = left
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}
