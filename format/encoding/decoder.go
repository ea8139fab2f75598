package encoding

import (
	"math"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
	"github.com/dsistore/dsistore/format/encoding/rans"
)

// A Decoder turns chunks back into values. It holds scratch memory that decoding reuses, a small multiple of the
// largest destination (for chunks made to be wasteful, up to 16 words of 8 bytes per value), and then allocates
// nothing. Not safe for concurrent use. The zero Decoder works.
//
// Each method fills dst exactly, from all of src, or returns a *ReasonError and leaves dst in any state. src may hold
// anything: no method panics, reads outside src, or allocates more than a small multiple of dst and src.
type Decoder struct {
	ints    arena[int64]
	floats  arena[float32]
	doubles arena[float64]
	bytes   arena[byte]
	int32s  arena[int32]
	spans   arena[Span]
	block   [bitpack.BlockLen]int64     // one block on its way to where it goes
	codes   [4 * bitpack.BlockLen]int64 // a few, between a chunk of codes and a look-up
	packed  packedStream                // of frame of reference, decoded in pieces
	rans    rans.Decoder
	zstd    *zstd.Decoder
}

// Ints decodes a chunk of len(dst) integers.
func (d *Decoder) Ints(dst []int64, src []byte) error { return d.decodeInts(dst, src, 0) }

// Int32s decodes a chunk of len(dst) integers and refuses those that do not fit in 32 bits.
func (d *Decoder) Int32s(dst []int32, src []byte) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if id == IDFOR {
		return d.decodeFOR32(dst, p)
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	wide := d.ints.grab(len(dst))
	if err := d.decodeInts(wide, src, 0); err != nil {
		return err
	}
	return narrow(dst, wide)
}

// narrow copies wide to dst, which is as long.
func narrow(dst []int32, wide []int64) error {
	wide = wide[:len(dst)]
	var bad uint64
	for i, v := range wide {
		dst[i] = int32(v)
		bad |= uint64(v + 1<<31)
	}
	if bad > math.MaxUint32 {
		return errRange
	}
	return nil
}

// decodeFOR32 unpacks through one block that stays in the first-level cache.
func (d *Decoder) decodeFOR32(dst []int32, p []byte) error {
	packed, width, base, err := parseFOR(len(dst), p)
	if err != nil {
		return err
	}
	fits := width < 32 && base >= math.MinInt32 && base <= math.MaxInt32-int64(bitpack.Mask(width))
	block := &d.block
	for len(dst) > 0 {
		n := min(len(dst), bitpack.BlockLen)
		size := bitpack.Len(n, width)
		bitpack.Unpack(block[:n], packed[:size], width, base)
		if fits {
			for i, v := range block[:n] {
				dst[i] = int32(v)
			}
		} else if err := narrow(dst[:n], block[:n]); err != nil {
			return err
		}
		dst, packed = dst[n:], packed[size:]
	}
	return nil
}

// A Span is values [From, To) of a chunk.
type Span struct{ From, To int32 }

// The methods whose names end in At decode parts of a chunk: of its n values those of spans, which lie in [0, n), one
// after the other in the order given, to dst, which has room for just these. Spans may overlap; where spans is nil, all
// n values are decoded, as by Ints and the others. What each codec allows is used:
//
//	constant, plain, frame of reference, patched, byte planes   a value is where its number says
//	runs                                                        searched by their ends
//	dictionary, decimal                                         codes or digits as above
//	sequences                                                   copies are followed to the literals they come from
//	zstd                                                        decompressed whole, then what is inside
//	delta, rans                                                 decoded whole
//
// What is decoded is what Ints and the others give for those values. Damage elsewhere in the chunk may go unnoticed.

// wholeShare is the share of a chunk's values from which all are decoded: 1 in so many.
const wholeShare = 4

// spanCost is about how many values decode in the time that a span takes beyond its own.
const spanCost = 12

// mostly reports whether n values in so many spans are better decoded with all others.
func mostly(n, spans, all int) bool { return wholeShare*(n+spanCost*spans) >= all }

// IntsAt decodes spans of a chunk of n integers.
func (d *Decoder) IntsAt(dst []int64, n int, spans []Span, src []byte) error {
	return d.intsAt(dst, n, spans, src, 0)
}

// Int32sAt decodes spans of a chunk of n integers and refuses those that do not fit in 32 bits.
func (d *Decoder) Int32sAt(dst []int32, n int, spans []Span, src []byte) error {
	if spans == nil {
		return d.Int32s(dst, src)
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	wide := d.ints.grab(len(dst))
	if err := d.intsAt(wide, n, spans, src, 0); err != nil {
		return err
	}
	return narrow(dst, wide)
}

// FloatsAt decodes spans of a chunk of n floats, bit for bit.
func (d *Decoder) FloatsAt(dst []float32, n int, spans []Span, src []byte) error {
	return floatFamily.decodeAt(d, dst, n, spans, src, 0)
}

// DoublesAt decodes spans of a chunk of n doubles, bit for bit.
func (d *Decoder) DoublesAt(dst []float64, n int, spans []Span, src []byte) error {
	return doubleFamily.decodeAt(d, dst, n, spans, src, 0)
}

// eachPosition calls f with the number among the values of spans, and that among positions, of each position that lies
// in spans. Positions ascend.
func eachPosition(positions []int64, spans []Span, f func(i, x int)) {
	if len(positions) == 0 {
		return
	}
	i := 0
	for _, s := range spans {
		x := sort.Search(len(positions), func(x int) bool { return positions[x] >= int64(s.From) })
		for ; x < len(positions) && positions[x] < int64(s.To); x++ {
			f(i+int(positions[x]-int64(s.From)), x)
		}
		i += int(s.To - s.From)
	}
}

// checkPositions returns an error unless positions increase and lie in [0, n).
func checkPositions(positions []int64, n int) error {
	last := int64(-1)
	for _, at := range positions {
		if at <= last || at >= int64(n) {
			return errPosition
		}
		last = at
	}
	return nil
}

// An arena hands out scratch slices, last out first back, and reaches a size at which it allocates no more.
type arena[T any] struct {
	buf  []T
	used int
}

// grab returns n elements of scratch, whatever they hold, never nil. They are good until release of a mark taken
// before.
func (a *arena[T]) grab(n int) []T {
	if a.used+n > len(a.buf) || a.buf == nil {
		// Slices grabbed before keep the old memory alive for as long as they are in use.
		a.buf = make([]T, max(2*len(a.buf), a.used+n, 256))
	}
	s := a.buf[a.used : a.used+n : a.used+n]
	a.used += n
	return s
}

// mark returns what release takes to give back everything grabbed after it.
func (a *arena[T]) mark() int     { return a.used }
func (a *arena[T]) release(m int) { a.used = m }
