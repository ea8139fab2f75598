package encoding

import "slices"

// Strings are byte strings. Their lengths are stored elsewhere: a chunk of strings holds only bytes.

// A stringCodec is a codec of strings. String i is data[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]].
type stringCodec struct {
	codec

	// turn is the order in which the chooser considers codecs, low ones first. In nested chunks it always uses plain.
	turn  int
	offer func(e *encoder, c *stringChoice)
	// encode appends a chunk, or returns false if the codec turns out unsuitable. Then zstd is used.
	encode func(e *encoder, dst []byte, m *memory, data []byte, offsets []int32, depth int) ([]byte, bool)
	// below, unless 0: if a chunk is at least this share of the size of all bytes, plain is written instead.
	below float64
	// decode decodes a payload to dst. offsets start with 0 and end with len(dst), but may decrease in between.
	decode func(d *Decoder, dst []byte, offsets []int32, p []byte, depth int) error
}

var (
	stringCodecs [idEnd]*stringCodec
	stringTurns  []*stringCodec
)

func registerStrings(c *stringCodec) {
	c.register()
	stringCodecs[c.id] = c
	stringTurns = append(stringTurns, c)
	slices.SortFunc(stringTurns, func(a, b *stringCodec) int { return a.turn - b.turn })
}

// A stringChoice is the state of choosing a codec of strings.
type stringChoice struct {
	best
	data    []byte
	offsets []int32
	size    float64 // of all bytes
	sample  []byte  // blocks of data, spread evenly
	ratio   float64 // of zstd on the sample
}

// Plain (id 48):
//
//	+--------+------------------------------+
//	| 48 (1) | all strings, one after other |
//	+--------+------------------------------+
//
// Zstd (id 49):
//
//	+--------+--------------------------------------------+
//	| 49 (1) | one zstd frame of all strings, as in plain |
//	+--------+--------------------------------------------+
const (
	IDStringPlain ID = 48
	IDStringZstd  ID = 49
)

const nsStringByte = 0.1 // a byte

func init() {
	registerStrings(&stringCodec{
		codec: codec{id: IDStringPlain, name: "plain"},
		turn:  10, offer: offerStringPlain, encode: encodeStringPlain, decode: decodeStringPlain,
	})
	registerStrings(&stringCodec{
		codec: codec{id: IDStringZstd, name: "zstd"},
		turn:  20, offer: offerStringZstd, encode: encodeStringZstd, below: 1 - zstdMargin, decode: decodeStringZstd,
	})
}

func offerStringPlain(_ *encoder, c *stringChoice) {
	c.offer(IDStringPlain, 1+c.size, c.size*nsStringByte)
}

func encodeStringPlain(_ *encoder, dst []byte, _ *memory, data []byte, _ []int32, _ int) ([]byte, bool) {
	return append(append(dst, byte(IDStringPlain)), data...), true
}

func decodeStringPlain(_ *Decoder, dst []byte, _ []int32, p []byte, _ int) error {
	if len(p) != len(dst) {
		return errLength
	}
	copy(dst, p)
	return nil
}

func offerStringZstd(e *encoder, c *stringChoice) {
	bmark := e.bytes.mark()
	defer e.bytes.release(bmark)
	c.ratio = float64(len(e.compress(e.bytes.grab(len(c.sample) + 64)[:0], c.sample))) / float64(len(c.sample))
	if c.ratio < 1-zstdMargin {
		c.offer(IDStringZstd, c.size*c.ratio, c.size*nsZstdByte)
	}
}

func encodeStringZstd(e *encoder, dst []byte, _ *memory, data []byte, _ []int32, _ int) ([]byte, bool) {
	return e.compress(append(dst, byte(IDStringZstd)), data), true
}

func decodeStringZstd(d *Decoder, dst []byte, _ []int32, p []byte, _ int) error {
	return d.inflate(dst, p)
}

// AppendStrings appends a chunk of len(offsets)-1 byte strings: string i is data[offsets[i]:offsets[i+1]].
func (c *Chooser) AppendStrings(dst []byte, stream int, data []byte, offsets []int32) []byte {
	e := c.encoder()
	dst = e.appendStrings(dst, c.stream(stream), data, offsets, 0)
	encoders.Put(e)
	return dst
}

func (e *encoder) appendStrings(dst []byte, m *memory, data []byte, offsets []int32, depth int) []byte {
	n := max(0, len(offsets)-1)
	if n == 0 || offsets[0] == offsets[n] {
		return append(dst, byte(IDStringPlain))
	}
	data = data[offsets[0]:offsets[n]]
	// Plain is never recalled: its size does not show that the strings changed.
	dst, _ = m.appendAgain(dst, n, m != nil && m.codec != IDStringPlain, func(without uint64) ID {
		if without != 0 {
			return IDStringZstd // a dictionary was unsuitable
		}
		return e.chooseStrings(data, offsets, depth)
	}, func(dst []byte, codec ID) ([]byte, bool) {
		return e.appendStringsAs(codec, dst, m, data, offsets, depth)
	})
	return dst
}

// appendStringsAs appends strings in a codec, or returns false if the codec turns out unsuitable.
func (e *encoder) appendStringsAs(codec ID, dst []byte, m *memory, data []byte, offsets []int32, depth int) ([]byte,
	bool) {
	c, start := stringCodecs[codec], len(dst)
	dst, ok := c.encode(e, dst, m, data, offsets, depth)
	if ok && c.below > 0 && float64(len(dst)-start) >= c.below*float64(len(data)) {
		dst = append(append(dst[:start], byte(IDStringPlain)), data...)
	}
	return dst, ok
}

// chooseStrings returns the codec with the lowest expected cost, from a sample of strings and a sample of bytes.
func (e *encoder) chooseStrings(data []byte, offsets []int32, depth int) ID {
	if depth > 0 {
		return IDStringPlain
	}
	bmark := e.bytes.mark()
	defer e.bytes.release(bmark)
	const blocks, length = 16, 4096
	sample := data
	if len(data) > blocks*length {
		sample = e.bytes.grab(blocks * length)
		for i := range blocks {
			copy(sample[i*length:(i+1)*length], data[i*(len(data)-length)/(blocks-1):])
		}
	}
	c := stringChoice{best: best{profile: e.profile, n: float64(len(offsets) - 1)}, data: data, offsets: offsets,
		size: float64(len(data)), sample: sample}
	for _, x := range stringTurns {
		x.offer(e, &c)
	}
	return c.codec
}

// Strings decodes the bytes of strings. The caller passes their offsets in dst, which it knows from their lengths: one
// more than there are strings, from 0, not decreasing, up to len(dst).
func (d *Decoder) Strings(dst []byte, offsets []int32, src []byte) error {
	if len(offsets) == 0 {
		if len(dst) != 0 {
			return errOffsets
		}
	} else if offsets[0] != 0 || int(offsets[len(offsets)-1]) != len(dst) {
		return errOffsets
	}
	return d.decodeStrings(dst, offsets, src, 0)
}

func (d *Decoder) decodeStrings(dst []byte, offsets []int32, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	if id >= idEnd || stringCodecs[id] == nil {
		return wrongCodec(id)
	}
	return stringCodecs[id].decode(d, dst, offsets, p, depth)
}
