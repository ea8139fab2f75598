package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Bits are n flags. Flag i is bit i%64 of word i/64.
//
// Constant (id 32): all bits are the flag.
//
//	+--------+----------+
//	| 32 (1) | flag (1) |
//	+--------+----------+
//
// Plain (id 33): bit i is bit i%8 of byte i/8. The bits beyond n are zero.
//
//	+--------+-------------+
//	| 33 (1) | (n+7)/8     |
//	+--------+-------------+
//
// Runs (id 34): lengths of runs of equal bits. The bits of the first run are the flag, then they alternate. Each length
// is at least 1; their sum is n.
//
//	+--------+----------+------------------+------------------+
//	| 34 (1) | flag (1) | runs r (uvarint) | lengths: ints, r |
//	+--------+----------+------------------+------------------+
//
// Positions (id 35): positions of the bits that equal the flag; all other bits are its opposite. Positions increase and
// are below n.
//
//	+--------+----------+-------------------+--------------------+
//	| 35 (1) | flag (1) | count k (uvarint) | positions: ints, k |
//	+--------+----------+-------------------+--------------------+
const (
	IDBitsConstant  ID = 32
	IDBitsPlain     ID = 33
	IDBitsRuns      ID = 34
	IDBitsPositions ID = 35
)

// A bitCodec is a codec of bits. It has no offer function: appendBits chooses by the counts of set bits and of runs.
type bitCodec struct {
	codec
	// decode decodes a payload of n bits to dst, which has a word for each 64 of them.
	decode func(d *Decoder, dst []uint64, n int, p []byte) error
}

var bitCodecs [idEnd]*bitCodec

func registerBits(c *bitCodec) {
	c.register()
	bitCodecs[c.id] = c
}

func init() {
	registerBits(&bitCodec{codec{id: IDBitsConstant, name: "constant"}, constantBits})
	registerBits(&bitCodec{codec{id: IDBitsPlain, name: "plain"}, plainBits})
	registerBits(&bitCodec{codec{IDBitsRuns, "runs", describeFlagged}, runBits})
	registerBits(&bitCodec{codec{IDBitsPositions, "positions", describeFlagged}, positionBits})
}

func describeFlagged(x *description, p []byte) {
	if len(p) > 0 {
		p = x.afterCount(p[1:])
	}
	x.nested(p, 1, true)
}

// AppendBits appends a chunk of the first n bits of b.
func (c *Chooser) AppendBits(dst []byte, stream int, b []uint64, n int) []byte {
	e := c.encoder()
	dst = e.appendBits(dst, c.stream(stream), b, n)
	encoders.Put(e)
	return dst
}

// word returns word i of the n bits of b, zero beyond n.
func word(b []uint64, i, n int) uint64 {
	if rest := n - i*64; rest < 64 {
		return b[i] & (1<<rest - 1)
	}
	return b[i]
}

// appendBits chooses by the exact counts of set bits and of runs. It does not remember the choice.
func (e *encoder) appendBits(dst []byte, m *memory, b []uint64, n int) []byte {
	words := (n + 63) / 64
	ones, runs, before := 0, 0, uint64(0)
	for i := range words {
		w := word(b, i, n)
		ones += bits.OnesCount64(w)
		// A run begins where a bit differs from the one before; before the first stands its opposite.
		if i == 0 {
			before = ^w & 1
		}
		starts := w ^ (w<<1 | before)
		if rest := n - i*64; rest < 64 {
			starts &= 1<<rest - 1
		}
		runs += bits.OnesCount64(starts)
		before = w >> 63
	}
	if ones == 0 || ones == n {
		flag := byte(0)
		if ones > 0 {
			flag = 1
		}
		return append(dst, byte(IDBitsConstant), flag)
	}
	c := best{profile: e.profile, n: float64(n)}
	c.offer(IDBitsPlain, float64(1+(n+7)/8), float64(words)*nsPlain)
	r := float64(runs)
	c.offer(IDBitsRuns, r*float64(bits.Len(uint(2*n/runs))+1)/8+8, r*(nsRun+nsFOR))
	rare, flag := ones, byte(1)
	if n-ones < ones {
		rare, flag = n-ones, 0
	}
	k := float64(rare)
	c.offer(IDBitsPositions, k*float64(bits.Len(uint(n/rare))+2)/8+10, k*(nsRun+nsFOR+nsDelta))
	start := len(dst)
	mark := e.ints.mark()
	defer e.ints.release(mark)
	switch c.codec {
	case IDBitsRuns:
		dst = append(dst, byte(IDBitsRuns), byte(b[0]&1))
		dst = binary.AppendUvarint(dst, uint64(runs))
		lengths := e.ints.grab(runs)[:0]
		last := 0
		eachChange(b, n, b[0]&1, func(at int) {
			lengths = append(lengths, int64(at-last))
			last = at
		})
		lengths = append(lengths, int64(n-last))
		dst = e.appendInts(dst, m.kid(0), lengths, 1)
	case IDBitsPositions:
		dst = append(dst, byte(IDBitsPositions), flag)
		dst = binary.AppendUvarint(dst, uint64(rare))
		positions := e.ints.grab(rare)[:0]
		for i := range words {
			w := word(b, i, n)
			if flag == 0 {
				w = word([]uint64{^w}, 0, n-i*64)
			}
			for ; w != 0; w &= w - 1 {
				positions = append(positions, int64(i*64+bits.TrailingZeros64(w)))
			}
		}
		dst = e.appendInts(dst, m.kid(1), positions, 1)
	}
	if len(dst) > start && len(dst)-start <= 1+(n+7)/8 {
		return dst
	}
	dst = append(dst[:start], byte(IDBitsPlain))
	for i := range words {
		w := word(b, i, n)
		for j := i * 64; j < n && j < i*64+64; j += 8 {
			dst = append(dst, byte(w))
			w >>= 8
		}
	}
	return dst
}

// eachChange calls f with each position at which the bits of b change. first is the first bit.
func eachChange(b []uint64, n int, first uint64, f func(at int)) {
	before := first
	for i := 0; i*64 < n; i++ {
		w := word(b, i, n)
		changes := w ^ (w<<1 | before)
		if rest := n - i*64; rest < 64 {
			changes &= 1<<rest - 1
		}
		for ; changes != 0; changes &= changes - 1 {
			f(i*64 + bits.TrailingZeros64(changes))
		}
		before = w >> 63
	}
}

// Bits decodes a chunk of n bits into the first (n+63)/64 words of dst; the bits beyond n become zero.
func (d *Decoder) Bits(dst []uint64, n int, src []byte) error {
	if n < 0 || len(dst) < (n+63)/64 {
		return errDst
	}
	dst = dst[:(n+63)/64]
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if id >= idEnd || bitCodecs[id] == nil {
		return wrongCodec(id)
	}
	return bitCodecs[id].decode(d, dst, n, p)
}

// takeFlag splits a flag off the front of a payload.
func takeFlag(p []byte) (flag byte, rest []byte, err error) {
	if len(p) == 0 {
		return 0, nil, errShort
	}
	if p[0] > 1 {
		return 0, nil, errBit
	}
	return p[0], p[1:], nil
}

func constantBits(_ *Decoder, dst []uint64, n int, p []byte) error {
	flag, p, err := takeFlag(p)
	if err != nil {
		return err
	}
	if len(p) != 0 {
		return errLength
	}
	clear(dst)
	if flag == 1 {
		setBits(dst, 0, n)
	}
	return nil
}

func plainBits(_ *Decoder, dst []uint64, n int, p []byte) error {
	if len(p) != (n+7)/8 {
		return errLength
	}
	if n%8 != 0 && p[len(p)-1]>>(n%8) != 0 {
		return errPadding
	}
	for i := range dst {
		if len(p) >= 8 {
			dst[i] = binary.LittleEndian.Uint64(p)
			p = p[8:]
			continue
		}
		var last [8]byte
		copy(last[:], p)
		dst[i] = binary.LittleEndian.Uint64(last[:])
	}
	return nil
}

func runBits(d *Decoder, dst []uint64, n int, p []byte) error {
	flag, p, err := takeFlag(p)
	if err != nil {
		return err
	}
	r, p, err := takeCount(p, n)
	if err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	lengths := d.ints.grab(r)
	if err := d.decodeInts(lengths, p, 1); err != nil {
		return err
	}
	clear(dst)
	at := 0
	for _, l := range lengths {
		if l < 1 || l > int64(n-at) {
			return errRuns
		}
		if flag == 1 {
			setBits(dst, at, at+int(l))
		}
		flag ^= 1
		at += int(l)
	}
	if at != n {
		return errRuns
	}
	return nil
}

func positionBits(d *Decoder, dst []uint64, n int, p []byte) error {
	flag, p, err := takeFlag(p)
	if err != nil {
		return err
	}
	k, p, err := takeCount(p, n)
	if err != nil {
		return err
	}
	m := d.ints.mark()
	defer d.ints.release(m)
	positions := d.ints.grab(k)
	if err := d.decodeInts(positions, p, 1); err != nil {
		return err
	}
	clear(dst)
	last := int64(-1)
	for _, at := range positions {
		if at <= last || at >= int64(n) {
			return errPosition
		}
		dst[at>>6] |= 1 << (at & 63)
		last = at
	}
	if flag == 0 {
		for i := range dst {
			dst[i] = ^dst[i]
		}
		if n%64 != 0 {
			dst[len(dst)-1] &= 1<<(n%64) - 1
		}
	}
	return nil
}

// setBits sets bits lo to hi-1.
func setBits(b []uint64, lo, hi int) {
	if lo >= hi {
		return
	}
	first, last := lo>>6, (hi-1)>>6
	head, tail := ^uint64(0)<<(lo&63), ^uint64(0)>>(63-(hi-1)&63)
	if first == last {
		b[first] |= head & tail
		return
	}
	b[first] |= head
	for i := first + 1; i < last; i++ {
		b[i] = ^uint64(0)
	}
	b[last] |= tail
}
