package wire

import "encoding/binary"

// A Decoder takes values off the front of Rest. The first thing that is wrong sets Reason. What it returns borrows the
// bytes.
type Decoder struct {
	Rest   []byte
	Reason string
	Left   int // how many bytes were left when Reason was set
}

// Fail sets Reason, unless it is set.
func (d *Decoder) Fail(reason string) {
	if d.Reason == "" {
		d.Reason, d.Left = reason, len(d.Rest)
	}
	d.Rest = nil
}

// Uvarint returns a varint.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.Rest)
	if n <= 0 {
		d.Fail("number cut short")
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// Max returns a varint that is at most limit.
func (d *Decoder) Max(limit uint64, what string) uint64 {
	v := d.Uvarint()
	if v > limit {
		d.Fail(what + " out of range")
		return 0
	}
	return v
}

// Count returns a number of things that take size bytes each at least, so that it sizes nothing that the bytes do not.
func (d *Decoder) Count(size int) uint64 {
	v := d.Uvarint()
	if v > uint64(len(d.Rest)/size) {
		d.Fail("more than there is room for")
		return 0
	}
	return v
}

// Take returns the next n bytes.
func (d *Decoder) Take(n uint64) []byte {
	if n > uint64(len(d.Rest)) {
		d.Fail("cut short")
		return nil
	}
	out := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return out
}

// Byte returns the next byte.
func (d *Decoder) Byte() byte {
	if b := d.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U16, U32 and U64 return little-endian numbers.
func (d *Decoder) U16() uint16 {
	if b := d.Take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *Decoder) U32() uint32 {
	if b := d.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *Decoder) U64() uint64 {
	if b := d.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Bytes returns a byte string that its length precedes.
func (d *Decoder) Bytes() []byte { return d.Take(d.Uvarint()) }

// String is Bytes as a string.
func (d *Decoder) String() string { return string(d.Bytes()) }

// End requires that nothing is left.
func (d *Decoder) End() {
	if len(d.Rest) > 0 {
		d.Fail("bytes left over")
	}
}

// AppendString appends a byte string behind its length.
func AppendString[S []byte | string](dst []byte, s S) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
