package encoding

import "encoding/binary"

// Entropy-coded classes (id 11, "rans"): a frame of reference whose distances fall into 16 classes of neighbours, as
// many in a class as a power of two. The class costs what its frequency says, by range asymmetric numeral systems (Duda
// 2013), the place within the class its bits. Codes by frequency, of which neighbours are about equally frequent, take
// their entropy so, with a table of 32 bytes.
//
//	+--------+---------------+------------------+---------------------+--------------+-------------+-----------+
//	| 11 (1) | low width (1) | minimum (varint) | 16 buckets, each    | 32 states    | words       | n low     |
//	|        | 0 to 48       |                  | cut (1), class      | (4 each, LE) | (2 each,    | parts,    |
//	|        |               |                  | and size (1/2 each) |              | LE)         | packed    |
//	+--------+---------------+------------------+---------------------+--------------+-------------+-----------+
//
// Value i belongs to the state i mod 32, so that a row of 32 values is decoded at once: vectors of states that take the
// words that they need in the order of the states (Giesen, "Interleaved entropy coders", 2014). Which of 4,096 slots
// belong to which class is said by Walker's alias method, as in Giesen's ryg_rans: slot s is in bucket s mod 16, and
// belongs to the bucket's own class or to its other one. So a look-up is one permutation of a register. A state gives
//
//	slot = x mod 4096       bucket = slot mod 16       place = slot / 16
//	class = bucket where place < cut, else the bucket's other class
//	x     = frequency(class) * (x / 4096) + rank(slot), then a word if below 2^16
//	bits  = the low size(class) bits of x, then x without them, then a word if below 2^16
//	value = minimum + low + (first(class) + bits) << low width
//
// where frequency is how many slots belong to the class, rank how many of them come before this one, counted bucket by
// bucket and in it by place, and first the sum of 2^size of the classes before. All states end at 2^16, with no word
// left.
const IDRANS ID = 11

const nsRANS = 1.5 // a value, with AVX2: less than half of it with AVX-512, five times as much in plain Go

func init() {
	registerInts(&intCodec{
		codec: codec{IDRANS, "rans", (*description).firstByte},
		turn:  70, deepest: maxDepth - 1, fewest: 256, offer: offerRANS, encode: encodeRANS, below: 1,
		decode: decodeRANS,
		stream: &intStream{
			open: func(d *Decoder, n int, p []byte) error { return d.rans.parse(n, p) },
			next: func(d *Decoder, dst []int64) error { return d.rans.next(dst) },
			close: func(d *Decoder) error {
				defer d.rans.forget()
				return d.rans.end()
			},
		},
	})
}

const (
	ransLanes    = 32 // states, and values of a row
	ransBuckets  = 16 // and classes
	ransPlaces   = 256
	ransSlots    = ransBuckets * ransPlaces
	ransSlotBits = 12
	ransLow      = 1 << 16 // states are not below this
	ransMaxSize  = 15      // bits of a place in a class
	ransMaxLow   = 48

	ransTableLen = 2 * ransBuckets
	ransStateLen = 4 * ransLanes
	ransRowWords = 4 * ransLanes // the most bytes of words that a row takes
)

// A ransDecoder is a chunk on its way. The assembly knows the offsets of its first four fields.
type ransDecoder struct {
	states [ransLanes]uint32
	// cut[b] is added to a slot of bucket b: bit 12 of the sum then says that it belongs to the bucket's other class.
	cut [ransBuckets]uint32
	// step and value are those of a bucket's own class, then those of the other ones. step is the frequency, and from
	// bit 16 on what is added to the place to have the rank, which may be negative. value is the first of the class,
	// and from bit 24 on its size.
	step  [2 * ransBuckets]uint32
	value [2 * ransBuckets]uint32

	words  []byte
	base   int64
	low    int
	packed []byte          // the low parts
	block  [blockLen]int64 // of low parts
}

// parse reads all but the words and low parts of a chunk of n values.
func (r *ransDecoder) parse(n int, p []byte) (err error) {
	if len(p) < 1 {
		return errShort
	}
	if r.low = int(p[0]); r.low > ransMaxLow {
		return errWidth
	}
	if r.base, p, err = takeVarint(p[1:]); err != nil {
		return err
	}
	size := packedLen(n, r.low)
	words := len(p) - ransTableLen - ransStateLen - size
	if words < 0 || words%2 != 0 {
		return errLength
	}
	r.table((*[ransTableLen]byte)(p))
	p = p[ransTableLen:]
	for i := range r.states {
		r.states[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	p = p[ransStateLen:]
	r.words, r.packed = p[:words], p[words:]
	return nil
}

// table makes the tables from the buckets.
func (r *ransDecoder) table(buckets *[ransTableLen]byte) {
	var frequency [ransBuckets]uint32
	for b := range uint32(ransBuckets) {
		cut, other := uint32(buckets[2*b]), buckets[2*b+1]&15
		r.cut[b] = ransSlots - (cut*ransBuckets + b)
		r.step[b] = frequency[b] << 16
		frequency[b] += cut
		r.step[ransBuckets+b] = (frequency[other] - cut) << 16
		frequency[other] += ransPlaces - cut
	}
	first := uint32(0)
	var value [ransBuckets]uint32
	for b := range ransBuckets {
		size := uint32(buckets[2*b+1] >> 4)
		value[b] = first | size<<24
		first += 1 << size
	}
	for b := range ransBuckets {
		other := buckets[2*b+1] & 15
		r.step[b] |= frequency[b]
		r.step[ransBuckets+b] |= frequency[other]
		r.value[b], r.value[ransBuckets+b] = value[b], value[other]
	}
}

// next decodes the next values; of all calls for a chunk only the last takes a number that is no multiple of 32 or,
// where there are low parts, of blockLen.
func (r *ransDecoder) next(dst []int64) error {
	all := dst
	rows := len(dst) / ransLanes
	done, used := ransRows(dst, rows, r)
	r.words = r.words[used:]
	dst = dst[done*ransLanes:]
	for len(dst) > 0 {
		n := min(len(dst), ransLanes)
		used = r.rowFallback(dst[:n])
		if used < 0 {
			return errRANS
		}
		r.words, dst = r.words[used:], dst[n:]
	}
	if r.low > 0 {
		r.addLow(all)
	}
	return nil
}

// rowFallback decodes one row, or less of the last, and returns the bytes of words used, or -1 where there are too few.
// Hot: ransRows replaces it where the processor has vectors.
func (r *ransDecoder) rowFallback(dst []int64) int {
	if len(dst) > ransLanes {
		return -1
	}
	// A row takes ransRowWords bytes at most: the last rows find them in a copy with room behind it.
	words := r.words
	var end [ransRowWords]byte
	if len(words) < len(end) {
		copy(end[:], words)
		words = end[:]
	}
	room := (*[ransRowWords]byte)(words)
	// That a state takes a word is as likely as not: there are no branches on it.
	used := uint64(0)
	var values [ransLanes]uint32
	for i := range dst {
		x := r.states[i&(ransLanes-1)]
		slot := x % ransSlots
		k := slot%ransBuckets | (slot+r.cut[slot%ransBuckets])>>8&ransBuckets
		step := r.step[k]
		values[i&(ransLanes-1)] = r.value[k]
		y := uint64(step&0xFFFF*(x>>ransSlotBits) + slot/ransBuckets + uint32(int32(step)>>16))
		word := uint64(binary.LittleEndian.Uint16(room[used:]))
		below := (y - ransLow) >> 63
		used += 2 * below
		r.states[i&(ransLanes-1)] = uint32(y<<(16*below&63) | word&-below)
	}
	for i := range dst {
		x, v := r.states[i&(ransLanes-1)], values[i&(ransLanes-1)]
		size := v >> 24 & 31
		y := x >> size
		dst[i] = r.base + int64(uint64(v&0xFFFFFF+x-y<<size)<<(r.low&63))
		word := uint64(binary.LittleEndian.Uint16(room[used:]))
		below := (uint64(y) - ransLow) >> 63
		used += 2 * below
		r.states[i&(ransLanes-1)] = uint32(uint64(y)<<(16*below&63) | word&-below)
	}
	if used > uint64(len(r.words)) {
		return -1
	}
	return int(used)
}

// addLow adds the low parts to the values that were decoded last.
func (r *ransDecoder) addLow(dst []int64) {
	for len(dst) > 0 {
		n := min(len(dst), blockLen)
		size := packedLen(n, r.low)
		part := dst[:n]
		lows := r.block[:len(part)]
		unpack(lows, r.packed[:size], r.low, 0)
		for i := range part {
			part[i] += lows[i]
		}
		dst, r.packed = dst[n:], r.packed[size:]
	}
}

// end says whether a chunk ended as it must.
func (r *ransDecoder) end() error {
	if len(r.words) != 0 {
		return errRANS
	}
	for _, x := range r.states {
		if x != ransLow {
			return errRANS
		}
	}
	return nil
}

// forget lets go of the chunk.
func (r *ransDecoder) forget() { r.words, r.packed = nil, nil }

func decodeRANS(d *Decoder, dst []int64, n int, _ []Span, p []byte, _ int) error {
	r := &d.rans
	if err := r.parse(n, p); err != nil {
		return err
	}
	defer r.forget()
	if err := r.next(dst); err != nil {
		return err
	}
	return r.end()
}
