package encoding

import (
	"math"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
	"github.com/dsistore/dsistore/format/encoding/rans"
)

// A Decoder decodes chunks to values. It reuses its scratch memory, a small multiple of the largest destination (for
// malicious chunks up to 128 bytes per value), and allocates nothing when that is large enough. Not safe for concurrent
// use. The zero Decoder works.
//
// Each method fills dst exactly, from all of src, or returns a *ReasonError with unspecified contents of dst. src is
// untrusted: no method panics, reads outside src, or allocates more than a small multiple of dst and src.
type Decoder struct {
	ints    arena[int64]
	floats  arena[float32]
	doubles arena[float64]
	bytes   arena[byte]
	int32s  arena[int32]
	spans   arena[Span]
	placed  arena[placedSpan]
	block   [bitpack.BlockLen]int64     // one unpacked block
	blocks  [4 * bitpack.BlockLen]int64 // decoded values of a stream, to be used at once
	packed  packedStream                // of a frame of reference that is decoded in pieces
	rans    rans.Decoder
	zstd    *zstd.Decoder
}

// Ints decodes a chunk of len(dst) integers.
func (d *Decoder) Ints(dst []int64, src []byte) error { return d.decodeInts(dst, src, 0) }

// Int32s decodes a chunk of len(dst) integers. It returns an error if one does not fit in 32 bits.
func (d *Decoder) Int32s(dst []int32, src []byte) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if id == IDFOR {
		return d.decodeFOR32(dst, p)
	}
	done, err := d.eachBlock(len(dst), src, 0, func(at int, wide []int64) error {
		return narrow(dst[at:at+len(wide)], wide)
	})
	if done || err != nil {
		return err
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

// decodeFOR32 unpacks block by block through d.block, which stays in the L1 cache.
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

// The methods whose names end in At decode the values of spans of a chunk of n values, one span after the other, in the
// given order. Spans lie in [0, n) and may overlap. len(dst) is the sum of their lengths. If spans is nil, all n values
// are decoded. The values are the same as those of Ints etc. Damage elsewhere in the chunk may not be found. How much
// is decoded depends on the codec:
//
//	constant, plain, frame of reference, patched, byte planes   only these values
//	runs                                                        binary search of the ends of runs
//	dictionary, decimal                                         only the codes or digits of these values
//	sequences                                                   copies are followed back to their literals
//	zstd                                                        decompressed whole, then as the codec inside
//	rans                                                        decoded block by block, up to the last of these values
//	delta                                                       decoded whole

// wholeShare: all values are decoded if at least one in wholeShare is asked for.
const wholeShare = 4

// spanCost is the approximate cost of a span, in values decoded in the same time.
const spanCost = 12

// mostly reports whether decoding all values is faster than decoding n values in so many spans.
func mostly(n, spans, all int) bool { return wholeShare*(n+spanCost*spans) >= all }

// IntsAt decodes spans of a chunk of n integers.
func (d *Decoder) IntsAt(dst []int64, n int, spans []Span, src []byte) error {
	return d.intsAt(dst, n, spans, src, 0)
}

// Int32sAt decodes spans of a chunk of n integers. It returns an error if one does not fit in 32 bits.
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

// eachPosition calls f for each of positions, which ascend, that lies in spans: i is its index among the values of
// spans, x its index in positions.
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

// An arena allocates scratch slices like a stack, and reuses its memory.
type arena[T any] struct {
	buf  []T
	used int
}

// grab returns n elements with unspecified contents, never nil. They are valid until release of a mark taken before.
func (a *arena[T]) grab(n int) []T {
	if a.used+n > len(a.buf) || a.buf == nil {
		// Slices grabbed before keep the old memory alive for as long as they are in use.
		a.buf = make([]T, max(2*len(a.buf), a.used+n, 256))
	}
	s := a.buf[a.used : a.used+n : a.used+n]
	a.used += n
	return s
}

// mark returns the argument of a later release.
func (a *arena[T]) mark() int { return a.used }

// release frees everything grabbed since mark returned m.
func (a *arena[T]) release(m int) { a.used = m }
