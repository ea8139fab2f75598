package encoding

import (
	"math"

	"github.com/klauspost/compress/zstd"
)

// A Decoder turns chunks back into values. It holds scratch memory that decoding reuses, a small multiple of the
// largest destination (for chunks made to be wasteful, up to 16 words of 8 bytes a value), and then allocates nothing.
// Not safe for concurrent use. The zero Decoder works.
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
	block   [blockLen]int64     // one block on its way to where it goes
	codes   [4 * blockLen]int64 // a few, between a chunk of codes and a look-up
	packed  packedStream        // of frame of reference, decoded in pieces
	rans    ransDecoder
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
	fits := width < 32 && base >= math.MinInt32 && base <= math.MaxInt32-int64(maskOf(width))
	block := &d.block
	for len(dst) > 0 {
		n := min(len(dst), blockLen)
		size := packedLen(n, width)
		unpack(block[:n], packed[:size], width, base)
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
