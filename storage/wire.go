package storage

import "encoding/binary"

// A decoder takes values off the front of bytes. The first thing that is wrong sets reason, and everything after is
// zero, so that callers check once. What it returns borrows the bytes.
type decoder struct {
	b      []byte
	reason string
}

func (d *decoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
	d.b = nil
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("number cut short")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// max returns a varint that is at most limit.
func (d *decoder) max(limit uint64, what string) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail(what + " out of range")
		return 0
	}
	return v
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail("cut short")
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if b := d.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// bytes returns a byte string that its length precedes.
func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) string() string { return string(d.bytes()) }

// end requires that nothing is left.
func (d *decoder) end() {
	if len(d.b) > 0 {
		d.fail("bytes left over")
	}
}

func appendString[S []byte | string](dst []byte, s S) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
