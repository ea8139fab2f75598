package encoding

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/dsistore/dsistore/format/encoding/rans"
)

// A Chooser chooses codecs for one feature's streams and remembers its choices from stripe to stripe. Not safe for
// concurrent use. The zero Chooser works (balanced). It holds only its choices; scratch memory comes from a pool.
type Chooser struct {
	// Profile weighs size against decode time. Default: Balanced.
	Profile Profile

	streams []memory
}

// A memory is the last choice for a stream, or for a chunk nested in one.
type memory struct {
	codec     ID         // 0: none
	perValue  float64    // bytes per value when it was chosen
	age       int        // chunks since then
	exponents uint16     // of decimal floats
	traits    traits     // of floats, when it was chosen
	kids      [4]*memory // of nested chunks
}

const (
	rememberFrom = 256 // values: the codec of shorter chunks is chosen each time
	rememberFor  = 16  // chunks until the codec is chosen again
	driftFactor  = 1.2
)

// turn forgets the choices for nested chunks if codec is not m's: those of another codec may even be of another family.
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

// note records that codec took size bytes for n values. fresh: it was chosen now, not recalled.
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

// drifted reports whether n values took many more or many fewer bytes than when the codec was chosen. Then the data
// have changed, and another codec may be better.
func (m *memory) drifted(n, size int) bool {
	was := m.perValue * float64(n)
	return float64(size) > driftFactor*was+64 || float64(size)*driftFactor+64 < was
}

// beaten reports whether another codec, with which n values take size bytes, is much better.
func (m *memory) beaten(n int, size float64) bool { return driftFactor*size+64 < m.perValue*float64(n) }

// appendAgain appends a chunk of n values. It uses the codec that m recalls if same is true and the size has not
// drifted, else the one that choose returns. encode returns false if a codec turns out unsuitable; then choose is
// called again, with a bit set in without for each such codec. fresh: the codec was chosen now, not recalled.
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

// An encoder is the pooled scratch memory of an Append call.
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

// An appendFunc appends a nested chunk of values.
type appendFunc func(e *encoder, dst []byte, m *memory, vals []int64, depth int) []byte

// A candidate is a codec with its expected cost.
type candidate struct {
	codec     ID
	bytes     float64 // of the chunk
	ns        float64 // to decode it
	valueBits float64 // bits that a value takes, and that sequences save when they copy it
}

// best keeps the candidate with the lowest score for n values.
type best struct {
	profile Profile
	n       float64
	without uint64 // has a bit for each codec that must not be chosen
	candidate
	score float64
}

// refused reports whether a codec must not be chosen.
func (b *best) refused(codec ID) bool { return b.without>>codec&1 == 1 }

// offer makes a codec the best if its score is lower.
func (b *best) offer(codec ID, bytes, ns float64) {
	if b.refused(codec) {
		return
	}
	if s := b.profile.score(bytes, ns); b.codec == 0 || s < b.score {
		b.candidate, b.score = candidate{codec, bytes, ns, 8 * bytes / b.n}, s
	}
}

// chunkRoom returns a capacity that nearly every chunk of n values fits in.
func chunkRoom(n int) int { return 64 + 9*n }

// Each Append method appends one chunk (codec id, then payload, with nested chunks inside) for the values and returns
// the extended dst. The number of values is not stored. stream is a small number: choices are remembered for each
// stream. Values are borrowed for the call.

// AppendInts appends a chunk of vals. Unsigned values are passed as the int64 with the same bits.
func (c *Chooser) AppendInts(dst []byte, stream int, vals []int64) []byte {
	e := c.encoder()
	dst = e.appendInts(dst, c.stream(stream), vals, 0)
	encoders.Put(e)
	return dst
}

// AppendInt32s appends a chunk of vals, with the same bytes as AppendInts of the same numbers.
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

// A Profile weighs stored size against decoding time: it is how many ns of decoding a stored byte is worth. The zero
// Profile is Balanced.
type Profile float64

// The profiles. A byte is worth the time to fetch it, per core that decodes.
const (
	// Speed (2 GB/s) suits tables that stay in memory or on local flash.
	Speed Profile = 0.5
	// Balanced (125 MB/s) suits tables read over a network or from disks that many readers share.
	Balanced Profile = 0
	// Size (8 MB/s) suits tables that are kept and seldom read.
	Size Profile = 125

	balancedNs = 8
	// hardNs: from so many ns per byte on, zstd uses a slower level.
	hardNs = 64
)

// NsPerByte returns how many ns of decoding a stored byte is worth.
func (p Profile) NsPerByte() float64 {
	if p == Balanced {
		return balancedNs
	}
	return float64(p)
}

// The decoding cost of a codec is an ns constant in its file: the rounded result of BenchmarkDecode on two busy cores
// of a 2.6 GHz Xeon (plain Go). Mainly their ratios matter, so other machines lead to nearly the same choices. The
// costs of nested chunks are added.

// score returns the time of fetching and decoding in ns: lower is better.
func (p Profile) score(bytes, ns float64) float64 { return bytes*p.NsPerByte() + ns }
