package encoding

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/dsistore/dsistore/format/encoding/rans"
)

// A Chooser chooses codecs for one feature's streams and remembers its choices from stripe to stripe. Not safe for
// concurrent use. The zero Chooser works (balanced). It keeps only its choices: scratch memory is shared by all
// Choosers of the process and held during a call.
type Chooser struct {
	// Profile weighs size against decode time. Default: Balanced.
	Profile Profile

	streams []memory
}

// A memory is what was chosen for a stream, or for a chunk nested in one.
type memory struct {
	codec     ID
	perValue  float64 // bytes per value when it was chosen
	age       int     // chunks since then
	exponents uint16  // of decimal floats
	traits    traits  // of floats, when it was chosen
	kids      [4]*memory
}

const (
	rememberFrom = 256 // values: shorter chunks are measured each time, and leave no memory
	rememberFor  = 16  // chunks
	driftFactor  = 1.2
)

// turn makes way for another codec: the nested chunks of the one before said nothing of those to come, which may not
// even be of the same family.
func (m *memory) turn(codec ID) {
	if m == nil || m.codec == codec {
		return
	}
	m.codec = 0
	for _, kid := range m.kids {
		if kid != nil {
			kid.turn(0)
		}
	}
}

// kid returns the memory of nested chunk i. A nil memory has nil kids.
func (m *memory) kid(i int) *memory {
	if m == nil {
		return nil
	}
	if m.kids[i] == nil {
		m.kids[i] = new(memory)
	}
	return m.kids[i]
}

// recall returns the codec to use again for n values, or 0.
func (m *memory) recall(n int) ID {
	if m == nil || n < rememberFrom || m.age >= rememberFor {
		return 0
	}
	return m.codec
}

// note remembers that codec took size bytes for n values.
func (m *memory) note(codec ID, n, size int, fresh bool) {
	if m == nil || n < rememberFrom {
		return
	}
	if fresh {
		m.codec, m.age, m.perValue = codec, 0, float64(size)/float64(n)
		return
	}
	m.age++
}

// drifted reports whether n values took much more, or much less, than they did when the codec was chosen: either way
// the data have turned, and another codec may suit them better.
func (m *memory) drifted(n, size int) bool {
	was := m.perValue * float64(n)
	return float64(size) > driftFactor*was+64 || float64(size)*driftFactor+64 < was
}

// beaten reports whether n values are known to take much less in another way, of size bytes.
func (m *memory) beaten(n int, size float64) bool { return driftFactor*size+64 < m.perValue*float64(n) }

// appendAgain appends a chunk of n values: in the codec that m recalls, while same says that the values are of the same
// kind and the size has not drifted, else in the one that choose returns. encode returns false where a codec serves
// badly after all; choose is then asked again, with a bit set in without for each such codec. fresh: it was chosen now.
func (m *memory) appendAgain(dst []byte, n int, same bool, choose func(without uint64) ID,
	encode func(dst []byte, codec ID) ([]byte, bool)) (_ []byte, fresh bool) {
	start, ok := len(dst), false
	if codec := m.recall(n); codec != 0 && same {
		if dst, ok = encode(dst, codec); ok && !m.drifted(n, len(dst)-start) {
			m.note(codec, n, 0, false)
			return dst, false
		}
		dst = dst[:start]
	}
	for without := uint64(0); ; {
		codec := choose(without)
		if dst, ok = encode(dst, codec); ok {
			m.note(codec, n, len(dst)-start, true)
			return dst, true
		}
		dst, without = dst[:start], without|1<<codec
	}
}

// stream returns the memory of a stream.
func (c *Chooser) stream(i int) *memory {
	for len(c.streams) <= i {
		c.streams = append(c.streams, memory{})
	}
	return &c.streams[i]
}

// An encoder is the scratch memory of one Append.
type encoder struct {
	profile    Profile
	ints       arena[int64]
	bytes      arena[byte]
	table      table
	words      wordTable
	sorting    []keyed
	sorted     []keyed
	positions  []int32
	zstd, hard *zstd.Encoder

	ransEncoder *rans.Encoder
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func (c *Chooser) encoder() *encoder {
	e := encoders.Get().(*encoder)
	e.profile = c.Profile
	return e
}

// An appendFunc appends a chunk of values, which are nested in another.
type appendFunc func(e *encoder, dst []byte, m *memory, vals []int64, depth int) []byte

// A candidate is a codec with what it is expected to cost.
type candidate struct {
	codec     ID
	bytes     float64
	ns        float64
	valueBits float64 // what is saved with a value that is copied from elsewhere
}

// best keeps the candidate of the lowest score, of those for n values.
type best struct {
	profile Profile
	n       float64
	without uint64 // a bit for each codec that is out of the question
	candidate
	score float64
}

// refused reports whether a codec is out of the question.
func (b *best) refused(codec ID) bool { return b.without>>codec&1 == 1 }

func (b *best) offer(codec ID, bytes, ns float64) {
	if b.refused(codec) {
		return
	}
	if s := b.profile.score(bytes, ns); b.codec == 0 || s < b.score {
		b.candidate, b.score = candidate{codec, bytes, ns, 8 * bytes / b.n}, s
	}
}

// chunkRoom is room enough for nearly every chunk of n values.
func chunkRoom(n int) int { return 64 + 9*n }

// Each Append appends one self-describing chunk (codec id, then payload, with nested chunks inside) for the values and
// returns the extended dst. The count is not stored. stream is a small number that the caller uses to tell apart the
// streams whose choices are remembered. Values are borrowed for the call.

// AppendInts appends a chunk of vals. Unsigned values come as the int64 of the same bits.
func (c *Chooser) AppendInts(dst []byte, stream int, vals []int64) []byte {
	e := c.encoder()
	dst = e.appendInts(dst, c.stream(stream), vals, 0)
	encoders.Put(e)
	return dst
}

// AppendInt32s appends a chunk of vals: the same bytes that AppendInts makes of the same numbers.
func (c *Chooser) AppendInt32s(dst []byte, stream int, vals []int32) []byte {
	e := c.encoder()
	m := e.ints.mark()
	wide := e.ints.grab(len(vals))
	for i, v := range vals {
		wide[i] = int64(v)
	}
	dst = e.appendInts(dst, c.stream(stream), wide, 0)
	e.ints.release(m)
	encoders.Put(e)
	return dst
}

// A Profile says what the chooser weighs: the time to fetch a byte against the time to decode a value. It is the ns of
// decoding that a stored byte counts for; the zero Profile is Balanced.
type Profile float64

// The profiles. A byte counts for as long as it takes to come, for each core that decodes.
const (
	// Speed, as if at 2 GB/s, suits tables that stay in memory or on local flash.
	Speed Profile = 0.5
	// Balanced, as if at 125 MB/s, suits tables read over a network or from disks that many readers share.
	Balanced Profile = 0
	// Size, as if at 8 MB/s, suits tables that are kept and seldom read.
	Size Profile = 125

	balancedNs = 8
	// hardNs: from here on bytes count for so much that zstd is given more time.
	hardNs = 64
)

// NsPerByte is what a stored byte counts for.
func (p Profile) NsPerByte() float64 {
	if p == Balanced {
		return balancedNs
	}
	return float64(p)
}

// Decode costs stand with each codec as ns constants: from BenchmarkDecode on two busy cores of a 2.6 GHz Xeon (plain
// Go), rounded. What counts is their ratio: a machine twice as fast would choose nearly the same. Costs of nested
// chunks come on top.

// score is the time that fetching and decoding takes: lower is better.
func (p Profile) score(bytes, ns float64) float64 { return bytes*p.NsPerByte() + ns }
