package rans

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
)

// maxWidth is the most bits of a distance that classes tell apart: what is below them is packed as it is.
const maxWidth = 16

// A class is 1<<size neighbouring distances (without their low parts), from first on, that count values have.
type class struct {
	first, size, count int
}

// divide divides the distances of vals into classes, at most 16, so that their entropy, with the bits within a
// class, is small: it halves again and again the class that gains most by that. It returns them in order and the bits
// that vals should take.
func (r *Encoder) divide(classes []class, vals []int64, width int, base int64) ([]class, float64) {
	low := LowWidth(width)
	width -= low
	n := 1 << width
	if len(r.counts) < n+1 {
		r.counts = make([]int32, n+1)
	}
	sums := r.counts[:n+1]
	clear(sums)
	for _, v := range vals {
		sums[1+(uint64(v-base)>>(low&63))&(1<<maxWidth-1)]++
	}
	sum := int32(0)
	for i, c := range sums {
		sum += c
		sums[i] = sum
	}
	count := func(first, size int) int { return int(sums[first+1<<size] - sums[first]) }

	var gains [buckets]float64
	add := func(c class) {
		gain := 0.0
		if c.size > 0 && c.count > 0 {
			half := count(c.first, c.size-1)
			gain = float64(c.count) + xlog(half) + xlog(c.count-half) - xlog(c.count)
		}
		if c.size > maxSize {
			gain = math.Inf(1)
		}
		gains[len(classes)] = gain
		classes = append(classes, c)
	}
	classes = classes[:0]
	add(class{0, width, len(vals)})
	for len(classes) < buckets {
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
		half := class{c.first, c.size - 1, count(c.first, c.size-1)}
		last := len(classes) - 1
		classes[at], gains[at] = classes[last], gains[last]
		classes = classes[:last]
		add(half)
		add(class{c.first + 1<<half.size, half.size, c.count - half.count})
	}
	slices.SortFunc(classes, func(a, b class) int { return a.first - b.first })
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

// EstimateBits returns the bits that vals should take by the entropy of their classes, without table and states. base
// and width are those of a frame of reference of vals.
func (r *Encoder) EstimateBits(vals []int64, width int, base int64) float64 {
	var space [buckets]class
	_, total := r.divide(space[:0], vals, width, base)
	return total
}

// classFrequencies gives each class its share of the slots, at least one where it has values; they add up to all slots.
func classFrequencies(classes []class) (frequencies [buckets]int) {
	n := 0
	for _, c := range classes {
		n += c.count
	}
	left := slots
	for i, c := range classes {
		if c.count > 0 {
			frequencies[i] = max(1, (c.count*slots+n/2)/n)
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

// An Encoder puts values on states. It works from the last value to the first, and so writes the words from the last
// to the first.
type Encoder struct {
	counts  []int32 // of distances, by divide
	words   []byte  // as put leaves them
	states  [lanes]uint64
	slots   [slots]uint16 // by class, its slots by rank
	classes [buckets]symbol
	class   [1 << maxWidth]uint8
}

// A symbol is what putting a class takes.
type symbol struct {
	limit      uint64 // states from here on give a word first
	inverse    uint64 // 2^44 over the frequency, rounded up: (x * inverse) >> 44 is x/frequency for x below 2^32
	frequency  uint32
	slots      uint32 // where its slots begin
	size       uint32
	first      uint32
	sizedLimit uint64
}

// appendTable divides the slots among the classes (Vose 1991) and appends the table. sizes are those of all 16 classes.
func (r *Encoder) appendTable(dst []byte, frequencies *[buckets]int, classes []class) []byte {
	rest := *frequencies
	var cut, other [buckets]int
	var filled [buckets]bool
	for range buckets {
		// The bucket of the class with the least left gets that; the class with the most fills it up.
		least, most := -1, -1
		for b := range buckets {
			if !filled[b] && (least < 0 || rest[b] < rest[least]) {
				least = b
			}
			if most < 0 || rest[b] > rest[most] {
				most = b
			}
		}
		filled[least] = true
		if rest[least] >= places { // all that are left have just that
			cut[least], other[least] = 0, least
			rest[least] -= places
			continue
		}
		cut[least], other[least] = rest[least], most
		rest[most] -= places - rest[least]
		rest[least] = 0
	}
	at := 0
	for b := range buckets {
		r.classes[b] = symbol{slots: uint32(at), frequency: uint32(frequencies[b])}
		at += frequencies[b]
	}
	var next [buckets]int
	for b := range buckets {
		for place := range places {
			c := b
			if place >= cut[b] {
				c = other[b]
			}
			r.slots[int(r.classes[c].slots)+next[c]] = uint16(place*buckets + b)
			next[c]++
		}
	}
	for b := range buckets {
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

// put puts the distances of vals on states, and returns the words, which end where space ends. space is 4 bytes for
// each value and 2 more.
func (r *Encoder) put(space []byte, vals []int64, low int, base int64) []byte {
	for i := range r.states {
		r.states[i] = lowest
	}
	// That a state gives a word is as likely as not: it is written in any case, and stays where the state gives it.
	at := len(space) - 2
	for from := (len(vals) - 1) / lanes * lanes; from >= 0; from -= lanes {
		row := vals[from:min(from+lanes, len(vals))]
		var classes [lanes]uint8
		for i := len(row) - 1; i >= 0; i-- {
			v := uint32(uint64(row[i]-base) >> (low & 63))
			class := r.class[v&(1<<maxWidth-1)] & (buckets - 1)
			classes[i&(lanes-1)] = class
			c := &r.classes[class]
			x := r.states[i&(lanes-1)]
			binary.LittleEndian.PutUint16(space[at:], uint16(x))
			gives := (c.sizedLimit - 1 - x) >> 63
			at -= int(2 * gives)
			r.states[i&(lanes-1)] = x>>(16*gives&63)<<(c.size&31) | uint64(v-c.first)
		}
		for i := len(row) - 1; i >= 0; i-- {
			c := &r.classes[classes[i&(lanes-1)]&(buckets-1)]
			x := r.states[i&(lanes-1)]
			binary.LittleEndian.PutUint16(space[at:], uint16(x))
			gives := (c.limit - 1 - x) >> 63
			at -= int(2 * gives)
			x >>= 16 * gives & 63
			q, _ := bits.Mul64(x<<20, c.inverse)
			rank := uint32(x) - uint32(q)*c.frequency
			r.states[i&(lanes-1)] = q<<slotBits | uint64(r.slots[(c.slots+rank)%slots])
		}
	}
	return space[at+2:]
}

// LowWidth returns how many low bits of distances of width bits are packed as they are.
func LowWidth(width int) int { return max(0, width-maxWidth) }

// Append appends the table, states, words and low parts of vals. base and width, which is not 0, are those of a frame
// of reference of vals.
func (r *Encoder) Append(dst []byte, vals []int64, width int, base int64) []byte {
	low := LowWidth(width)
	var space [buckets]class
	classes, _ := r.divide(space[:0], vals, width, base)
	frequencies := classFrequencies(classes)
	for i, c := range classes {
		part := r.class[c.first : c.first+1<<c.size]
		for j := range part {
			part[j] = uint8(i)
		}
	}
	dst = r.appendTable(dst, &frequencies, classes)
	r.words = slices.Grow(r.words[:0], 4*len(vals)+2)
	words := r.put(r.words[:4*len(vals)+2], vals, low, base)
	for _, x := range r.states {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
	}
	return bitpack.Append(append(dst, words...), vals, low, base)
}
