package encoding

// Top byte (id 9): a frame of reference cut in two: the highest byte, whose values may be of very unequal frequency (codes
// by frequency are), goes through zstd's entropy coder; the bits below it are packed as they are.
//
//	+-------+----------------+------------------+--------------------+----------------+----------------------+
//	| 9 (1) | low width (1)  | minimum (varint) | size of the frame  | zstd frame of  | n low parts,         |
//	|       | 0 to 56        |                  | (uvarint)          | n bytes        | bit-packed           |
//	+-------+----------------+------------------+--------------------+----------------+----------------------+
//
// value = minimum + low + (top << low width), wrapping at 64 bits. This version reads it, and writes entropy-coded classes instead.
// parseTopByte reads the head of a chunk of n values: the width of the low parts, the minimum, the frame and the low parts.
func parseTopByte(n int, p []byte) (low int, base int64, frame, packed []byte, err error) {
	if len(p) < 1 {
		return 0, 0, nil, nil, errShort
	}
	if low = int(p[0]); low > 56 {
		return 0, 0, nil, nil, errWidth
	}
	if base, p, err = takeVarint(p[1:]); err != nil {
		return 0, 0, nil, nil, err
	}
	if frame, p, err = takeNested(p); err != nil {
		return 0, 0, nil, nil, err
	}
	if len(p) != packedLen(n, low) {
		return 0, 0, nil, nil, errLength
	}
	return low, base, frame, p, nil
}

func (d *Decoder) decodeTopByte(dst []int64, p []byte) error {
	low, base, frame, p, err := parseTopByte(len(dst), p)
	if err != nil {
		return err
	}
	m := d.bytes.mark()
	defer d.bytes.release(m)
	top := d.bytes.grab(len(dst))
	if err := d.inflate(top, frame); err != nil {
		return err
	}
	for len(dst) > 0 { // a block at a time, which stays in the first-level cache
		n := min(len(dst), blockLen)
		size := packedLen(n, low)
		unpack(dst[:n], p[:size], low, base)
		addTop(dst[:n], top[:n], low)
		dst, top, p = dst[n:], top[n:], p[size:]
	}
	return nil
}

// addTopPlain adds each top byte to its low part. Hot: addTop replaces it where the processor has vectors.
func addTopPlain(dst []int64, top []byte, low int) {
	top = top[:len(dst)]
	for i, t := range top {
		dst[i] += int64(uint64(t) << (low & 63))
	}
}
