package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// ransMaxWidth is the most bits of a distance that classes tell apart: what is below them is packed as it is.
const ransMaxWidth = 16

// ransCut returns how many low bits of distances of width bits are packed as they are.
func ransCut(width int) int { return max(0, width-ransMaxWidth) }

// A ransClass is 1<<size neighbouring distances (without their low parts), from first on, that count values have.
type ransClass struct {
	first, size, count int
}

// ransClasses divides the distances of vals into classes, at most 16, so that their entropy, with the bits within a
// class, is small: it halves again and again the class that gains most by that. It returns them in order and the bits
// that vals should take.
func (e *encoder) ransClasses(classes []ransClass, vals []int64, width int, base int64) ([]ransClass, float64) {
	low := ransCut(width)
	width -= low
	n := 1 << width
	if len(e.counts) < n+1 {
		e.counts = make([]int32, n+1)
	}
	sums := e.counts[:n+1]
	clear(sums)
	for _, v := range vals {
		sums[1+(uint64(v-base)>>(low&63))&(1<<ransMaxWidth-1)]++
	}
	sum := int32(0)
	for i, c := range sums {
		sum += c
		sums[i] = sum
	}
	count := func(first, size int) int { return int(sums[first+1<<size] - sums[first]) }

	var gains [ransBuckets]float64
	add := func(c ransClass) {
		gain := 0.0
		if c.size > 0 && c.count > 0 {
			half := count(c.first, c.size-1)
			gain = float64(c.count) + xlog(half) + xlog(c.count-half) - xlog(c.count)
		}
		if c.size > ransMaxSize {
			gain = math.Inf(1)
		}
		gains[len(classes)] = gain
		classes = append(classes, c)
	}
	classes = classes[:0]
	add(ransClass{0, width, len(vals)})
	for len(classes) < ransBuckets {
		at := 0
		for i, g := range gains[:len(classes)] {
			if g > gains[at] {
				at = i
			}
		}
		if gains[at] <= 0 {
			break
		}
		c := classes[at]
		half := ransClass{c.first, c.size - 1, count(c.first, c.size-1)}
		last := len(classes) - 1
		classes[at], gains[at] = classes[last], gains[last]
		classes = classes[:last]
		add(half)
		add(ransClass{c.first + 1<<half.size, half.size, c.count - half.count})
	}
	slices.SortFunc(classes, func(a, b ransClass) int { return a.first - b.first })
	total := xlog(len(vals)) + float64(len(vals)*low)
	for _, c := range classes {
		total += float64(c.count*c.size) - xlog(c.count)
	}
	return classes, total
}

// xlog returns x times its logarithm to base 2.
func xlog(x int) float64 {
	if x <= 1 {
		return 0
	}
	return float64(x) * math.Log2(float64(x))
}

// offerRANS judges by the entropy of the classes of a sample.
func offerRANS(e *encoder, c *intChoice) {
	if c.bytes <= c.n/16 {
		return
	}
	var room [ransBuckets]ransClass
	_, total := e.ransClasses(room[:0], c.sample, c.stats.width, c.stats.base)
	// Of each state 2 of the 4 bytes say something of the values.
	bytes := total/8*c.n/float64(len(c.sample)) + ransTableLen + ransStateLen/2 + 12
	c.offer(IDRANS, bytes, c.n*nsRANS)
}

// ransFrequencies gives each class its share of the slots, at least one where it has values; they add up to all slots.
func ransFrequencies(classes []ransClass) (frequencies [ransBuckets]int) {
	n := 0
	for _, c := range classes {
		n += c.count
	}
	left := ransSlots
	for i, c := range classes {
		if c.count > 0 {
			frequencies[i] = max(1, (c.count*ransSlots+n/2)/n)
			left -= frequencies[i]
		}
	}
	for left != 0 { // to or from the class that gains most, or loses least, by a slot
		at, most := -1, math.Inf(-1)
		step := 1
		if left < 0 {
			step = -1
		}
		for i, c := range classes {
			f := frequencies[i]
			if f == 0 || f+step == 0 {
				continue
			}
			if gain := float64(c.count) * math.Log2(float64(f+step)/float64(f)); gain > most {
				at, most = i, gain
			}
		}
		frequencies[at] += step
		left -= step
	}
	return frequencies
}

// A ransEncoder puts values on states. It works from the last value to the first, and so writes the words from the last
// to the first.
type ransEncoder struct {
	states  [ransLanes]uint64
	slots   [ransSlots]uint16 // by class, its slots by rank
	classes [ransBuckets]ransSymbol
	class   [1 << ransMaxWidth]uint8
}

// A ransSymbol is what putting a class takes.
type ransSymbol struct {
	limit      uint64 // states from here on give a word first
	inverse    uint64 // 2^44 over the frequency, rounded up: (x * inverse) >> 44 is x/frequency for x below 2^32
	frequency  uint32
	slots      uint32 // where its slots begin
	size       uint32
	first      uint32
	sizedLimit uint64
}

// buckets divides the slots among the classes (Vose 1991) and appends the table. sizes are those of all 16 classes.
func (r *ransEncoder) buckets(dst []byte, frequencies *[ransBuckets]int, classes []ransClass) []byte {
	rest := *frequencies
	var cut, other [ransBuckets]int
	var filled [ransBuckets]bool
	for range ransBuckets {
		// The bucket of the class with the least left gets that; the class with the most fills it up.
		least, most := -1, -1
		for b := range ransBuckets {
			if !filled[b] && (least < 0 || rest[b] < rest[least]) {
				least = b
			}
			if most < 0 || rest[b] > rest[most] {
				most = b
			}
		}
		filled[least] = true
		if rest[least] >= ransPlaces { // all that are left have just that
			cut[least], other[least] = 0, least
			rest[least] -= ransPlaces
			continue
		}
		cut[least], other[least] = rest[least], most
		rest[most] -= ransPlaces - rest[least]
		rest[least] = 0
	}
	at := 0
	for b := range ransBuckets {
		r.classes[b] = ransSymbol{slots: uint32(at), frequency: uint32(frequencies[b])}
		at += frequencies[b]
	}
	var next [ransBuckets]int
	for b := range ransBuckets {
		for place := range ransPlaces {
			c := b
			if place >= cut[b] {
				c = other[b]
			}
			r.slots[int(r.classes[c].slots)+next[c]] = uint16(place*ransBuckets + b)
			next[c]++
		}
	}
	for b := range ransBuckets {
		c := &r.classes[b]
		size := 0
		if b < len(classes) {
			size = classes[b].size
			c.first, c.size = uint32(classes[b].first), uint32(size)
		}
		if f := uint64(c.frequency); f > 0 {
			c.limit, c.inverse = f<<20, (1<<44+f-1)/f
		}
		c.sizedLimit = 1 << (32 - size)
		dst = append(dst, byte(cut[b]), byte(other[b]|size<<4))
	}
	return dst
}

// put puts the distances of vals on states, and returns the words, which end where room ends. room is 4 bytes for each
// value and 2 more.
func (r *ransEncoder) put(room []byte, vals []int64, low int, base int64) []byte {
	for i := range r.states {
		r.states[i] = ransLow
	}
	// That a state gives a word is as likely as not: it is written in any case, and stays where the state gives it.
	at := len(room) - 2
	for from := (len(vals) - 1) / ransLanes * ransLanes; from >= 0; from -= ransLanes {
		row := vals[from:min(from+ransLanes, len(vals))]
		var classes [ransLanes]uint8
		for i := len(row) - 1; i >= 0; i-- {
			v := uint32(uint64(row[i]-base) >> (low & 63))
			class := r.class[v&(1<<ransMaxWidth-1)] & (ransBuckets - 1)
			classes[i&(ransLanes-1)] = class
			c := &r.classes[class]
			x := r.states[i&(ransLanes-1)]
			binary.LittleEndian.PutUint16(room[at:], uint16(x))
			gives := (c.sizedLimit - 1 - x) >> 63
			at -= int(2 * gives)
			r.states[i&(ransLanes-1)] = x>>(16*gives&63)<<(c.size&31) | uint64(v-c.first)
		}
		for i := len(row) - 1; i >= 0; i-- {
			c := &r.classes[classes[i&(ransLanes-1)]&(ransBuckets-1)]
			x := r.states[i&(ransLanes-1)]
			binary.LittleEndian.PutUint16(room[at:], uint16(x))
			gives := (c.limit - 1 - x) >> 63
			at -= int(2 * gives)
			x >>= 16 * gives & 63
			q, _ := bits.Mul64(x<<20, c.inverse)
			rank := uint32(x) - uint32(q)*c.frequency
			r.states[i&(ransLanes-1)] = q<<ransSlotBits | uint64(r.slots[(c.slots+rank)%ransSlots])
		}
	}
	return room[at+2:]
}

// encodeRANS refuses values that are all the same: states would never move, and no count would follow from them.
func encodeRANS(e *encoder, dst []byte, _ *memory, vals []int64, s *intStats, _ int) ([]byte, bool) {
	if s.width == 0 {
		return dst, false
	}
	low := ransCut(s.width)
	var space [ransBuckets]ransClass
	classes, _ := e.ransClasses(space[:0], vals, s.width, s.base)
	frequencies := ransFrequencies(classes)
	if e.rans == nil {
		e.rans = new(ransEncoder)
	}
	r := e.rans
	for i, c := range classes {
		part := r.class[c.first : c.first+1<<c.size]
		for j := range part {
			part[j] = uint8(i)
		}
	}
	dst = append(dst, byte(IDRANS), byte(low))
	dst = binary.AppendVarint(dst, s.base)
	dst = r.buckets(dst, &frequencies, classes)
	mark := e.bytes.mark()
	words := r.put(e.bytes.grab(4*len(vals)+2), vals, low, s.base)
	for _, x := range r.states {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
	}
	dst = append(dst, words...)
	e.bytes.release(mark)
	return appendPacked(dst, vals, low, s.base), true
}
