// Package encoding turns values into bytes and back.
package encoding

// STUB: the signatures that format codes against; the encoding owner replaces this file.

import "errors"

var errStub = errors.New("encoding: not built yet")

// A Chooser picks codecs for one feature's streams and remembers its choices from stripe to stripe. Not safe for
// concurrent use. The zero Chooser works (balanced).
type Chooser struct{}

// Each Append writes one self-describing chunk (codec id, then payload; nested chunks inside) for vals; the count is
// not stored. stream is a small number that the caller uses to tell apart the streams whose choices are remembered.
func (c *Chooser) AppendInts(dst []byte, stream int, vals []int64) []byte      { return dst }
func (c *Chooser) AppendFloats(dst []byte, stream int, vals []float32) []byte  { return dst }
func (c *Chooser) AppendDoubles(dst []byte, stream int, vals []float64) []byte { return dst }
func (c *Chooser) AppendBits(dst []byte, stream int, b []uint64, n int) []byte { return dst } // n bits
func (c *Chooser) AppendInt32s(dst []byte, stream int, vals []int32) []byte    { return dst } // lengths, inverse
func (c *Chooser) AppendStrings(dst []byte, stream int, data []byte, offsets []int32) []byte {
	return dst
} // len(offsets)-1 strings

// A Decoder holds scratch memory that decoding reuses. Not safe for concurrent use.
type Decoder struct{}

// Each decode fills dst exactly, from all of src, or returns an error (a ReasonError; the caller adds the place).
func (d *Decoder) Ints(dst []int64, src []byte) error         { return errStub }
func (d *Decoder) Int32s(dst []int32, src []byte) error       { return errStub }
func (d *Decoder) Floats(dst []float32, src []byte) error     { return errStub }
func (d *Decoder) Doubles(dst []float64, src []byte) error    { return errStub }
func (d *Decoder) Bits(dst []uint64, n int, src []byte) error { return errStub }

// Strings decodes the bytes of strings whose lengths the caller already knows: offsets has count+1 entries from 0 and
// len(dst) == offsets[count].
func (d *Decoder) Strings(dst []byte, offsets []int32, src []byte) error { return errStub }

// Describe returns the tree of codecs in a chunk, as "dict(for:17, zstd(bytes))".
func Describe(src []byte) string { return "" }
