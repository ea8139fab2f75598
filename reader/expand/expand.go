package expand

import (
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

// PutSlotLengths writes the length of each of the slots [lo, hi) to dst, 0 for null.
func PutSlotLengths(dst []int32, c *vector.Column, lo, hi int) {
	if c.Lengths != nil {
		copy(dst, c.Lengths[lo:hi])
		return
	}
	o := c.Offsets[lo : hi+1]
	dst = dst[:len(o)-1]
	for i := range dst {
		dst[i] = o[i+1] - o[i]
	}
}

// PutLengths writes the length of each row's list to dst, 0 for null.
func PutLengths(dst []int32, c *vector.Column, lo, hi int) {
	switch {
	case c.Inverse == nil:
		PutSlotLengths(dst, c, lo, hi)
	case c.Lengths == nil:
		inv, o := c.Inverse[lo:hi], c.Offsets
		dst = dst[:len(inv)]
		for i, s := range inv {
			dst[i] = o[s+1] - o[s]
		}
	default:
		inv, lengths := c.Inverse[lo:hi], c.Lengths
		dst = dst[:len(inv)]
		for i, s := range inv {
			dst[i] = lengths[s]
		}
	}
}

// PutRanges writes the length of each row's list to lengths, 0 for null and if c is nil, and its end to ends. The first
// list starts at sum. It returns the last end. Ends that do not fit an int32 are truncated; the caller checks the last.
func PutRanges(lengths, ends []int32, c *vector.Column, lo, hi int, sum int64) int64 {
	switch {
	case c == nil:
		clear(lengths)
	case c.Inverse != nil && c.Lengths == nil:
		inverse := c.Inverse[lo:hi]
		rows, sum := putRangesOf(lengths, ends, c, inverse, sum)
		return putRangesPlain(lengths[rows:], ends[rows:], c, inverse[rows:], sum)
	default:
		PutLengths(lengths, c, lo, hi)
	}
	ends = ends[:len(lengths)]
	for i, n := range lengths {
		sum += int64(n)
		ends[i] = int32(sum)
	}
	return sum
}

// putRangesPlain is PutRanges for rows with these slots. putRangesOf is its vector kernel.
func putRangesPlain(lengths, ends []int32, c *vector.Column, inverse []int32, sum int64) int64 {
	o := c.Offsets
	lengths, ends = lengths[:len(inverse)], ends[:len(inverse)]
	for i, s := range inverse {
		n := o[s+1] - o[s]
		sum += int64(n)
		lengths[i], ends[i] = n, int32(sum)
	}
	return sum
}

// PutSlotLists copies the lists of slots [lo, hi) one after the other to dst, and returns the number of values. values
// are those of c.
func PutSlotLists[T any](dst, values []T, c *vector.Column, lo, hi int) int {
	n := 0
	switch {
	case lo == hi:
	case c.Lengths == nil:
		n = copy(dst, values[c.Offsets[lo]:c.Offsets[hi]])
	default:
		slots, m := copySlots(dst, values, c, lo, hi)
		n = m
		for s := lo + slots; s < hi; s++ {
			o := c.Offsets[s]
			n += copy(dst[n:], values[o:o+c.Lengths[s]])
		}
	}
	return n
}

// pastBytes is the number of bytes of a batch from which on its lists are written past the CPU caches (non-temporal
// stores): 3/8 of the largest fast cache, 2 MiB at least and 12 MiB at most. Larger batches leave the cache before
// their memory is used again, and evict other data. Past the caches, a full cache line is also written without
// reading it first. Smaller batches stay in the cache: on an AMD EPYC with 32 MiB of L3 a batch of 5 MB takes a
// fifth less time so, of 10 MB a tenth; one of 16 MB takes as much, one of 40 MB 6 % more. On an Intel Xeon with 260
// MiB a batch of 5 MB takes a fifth to a third more in L3, and as much where the consumer then reads it.
var pastBytes = min(max(2<<20, simd.FastCache*3/8), 12<<20)

// pastRows is the number of rows of a piece from which on it is written past the caches. Fewer are slower: each
// call starts and ends with a partial line, and waits for its writes.
const pastRows = 32

// GoesPast reports whether a piece of so many rows, of a batch of so many bytes, is written past the caches.
func GoesPast(bytes, rows int) bool { return bytes >= pastBytes && rows >= pastRows }

// PutLists is PutSlotLists for rows. past: write past the CPU caches, if there is a kernel for it.
func PutLists[T any](dst, values []T, c *vector.Column, lo, hi int, past bool) int {
	if lo == hi {
		return 0
	}
	if c.Inverse == nil {
		return PutSlotLists(dst, values, c, lo, hi)
	}
	inverse := c.Inverse[lo:hi]
	rows, n := copyRows(dst, values, c, inverse, past)
	return n + copyRowsPlain(dst[n:], values, c, inverse[rows:])
}

// copyRowsPlain copies the lists of rows with these slots. copyRows is its vector kernel.
func copyRowsPlain[T any](dst, values []T, c *vector.Column, inverse []int32) int {
	n := 0
	if c.Lengths == nil {
		for _, s := range inverse {
			n += copy(dst[n:], values[c.Offsets[s]:c.Offsets[s+1]])
		}
		return n
	}
	for _, s := range inverse {
		o := c.Offsets[s]
		n += copy(dst[n:], values[o:o+c.Lengths[s]])
	}
	return n
}

// PutConvertedLists is PutLists with a conversion of each value.
func PutConvertedLists[To, From int64 | float32 | float64](dst []To, values []From, c *vector.Column, lo, hi int) int {
	n := 0
	for r := lo; r < hi; r++ {
		from, to := c.RowRange(r)
		if c.Inverse == nil && c.Lengths == nil { // all of them are one run
			to, r = int(c.Offsets[hi]), hi
		}
		in := values[from:to]
		out := dst[n : n+len(in)]
		for i, v := range in {
			out[i] = To(v)
		}
		n += len(in)
	}
	return n
}

// PutFixed copies the width values of each row to dst.
func PutFixed[T any](dst, values []T, c *vector.Column, width, lo, hi int) {
	switch {
	case c.Inverse == nil:
		copy(dst, values[lo*width:hi*width])
	case width == 1:
		inv := c.Inverse[lo:hi]
		dst = dst[:len(inv)]
		for i, s := range inv {
			dst[i] = values[s]
		}
	default:
		for i, s := range c.Inverse[lo:hi] {
			copy(dst[i*width:(i+1)*width], values[int(s)*width:])
		}
	}
}

// Scatter writes the value of each row, or width of them, as float32 to dst, whose rows are stride apart.
func Scatter[T float32 | float64](dst []float32, stride int, values []T, c *vector.Column, width, lo, hi int) {
	if width == 1 {
		at := 0
		if c.Inverse == nil {
			for _, v := range values[lo:hi] {
				dst[at] = float32(v)
				at += stride
			}
			return
		}
		inverse := c.Inverse[lo:hi]
		if floats, ok := any(values).([]float32); ok {
			n := scatterFloats(dst, stride, floats, inverse)
			at, inverse = n*stride, inverse[n:]
		}
		for _, s := range inverse {
			dst[at] = float32(values[s])
			at += stride
		}
		return
	}
	for r := lo; r < hi; r++ {
		s := c.Slot(r) * width
		out := dst[(r-lo)*stride:][:width]
		for i, v := range values[s : s+width] {
			out[i] = float32(v)
		}
	}
}

// ScatterInts is Scatter for integers. It returns the OR of all v, or -1-v for negative v. If the result is below 2^24,
// float32 holds all of them exactly.
func ScatterInts(dst []float32, stride int, values []int64, c *vector.Column, width, lo, hi int) (seen uint64) {
	if width > 1 {
		for r := lo; r < hi; r++ {
			s := c.Slot(r) * width
			out := dst[(r-lo)*stride:][:width]
			for i, v := range values[s : s+width] {
				seen |= uint64(v ^ v>>63)
				out[i] = float32(v)
			}
		}
		return seen
	}
	at := 0
	if c.Inverse == nil {
		for _, v := range values[lo:hi] {
			seen |= uint64(v ^ v>>63)
			dst[at] = float32(v)
			at += stride
		}
		return seen
	}
	for _, s := range c.Inverse[lo:hi] {
		v := values[s]
		seen |= uint64(v ^ v>>63)
		dst[at] = float32(v)
		at += stride
	}
	return seen
}

// ScatterUnsigned is ScatterInts for uint64 values, which an int64 holds bit for bit.
func ScatterUnsigned(dst []float32, stride int, values []int64, c *vector.Column, width, lo, hi int) (seen uint64) {
	for r := lo; r < hi; r++ {
		s := c.Slot(r) * width
		out := dst[(r-lo)*stride:][:width]
		for i, v := range values[s : s+width] {
			seen |= uint64(v)
			out[i] = float32(uint64(v))
		}
	}
	return seen
}

// ScatterZero writes zeros where Scatter writes values.
func ScatterZero(dst []float32, stride, width, rows int) {
	for r := range rows {
		clear(dst[r*stride:][:width])
	}
}

// PutSlotPresence sets bit at+i of dst, which was zero, for each slot lo+i that is not null.
func PutSlotPresence(dst vector.Bitmap, at int, c *vector.Column, lo, hi int) {
	if c.Present == nil {
		dst.SetRange(at, at+hi-lo)
		return
	}
	orBits(dst, at, c.Present, lo, hi-lo)
}

// PutPresence is PutSlotPresence for rows.
func PutPresence(dst vector.Bitmap, at int, c *vector.Column, lo, hi int) {
	switch {
	case c.Present == nil || c.Inverse == nil:
		PutSlotPresence(dst, at, c, lo, hi)
	default:
		inverse := c.Inverse[lo:hi]
		head := min(-at&63, len(inverse)) // the rows up to the next word boundary of dst
		putPresencePlain(dst, at, c.Present, inverse[:head])
		at, inverse = at+head, inverse[head:]
		if len(inverse) == 0 {
			return
		}
		n := putPresenceWords(dst[at>>6:], c, inverse)
		putPresencePlain(dst, at+n, c.Present, inverse[n:])
	}
}

// putPresencePlain sets the bits of dst from at on, one for each row. putPresenceWords is its vector kernel.
func putPresencePlain(dst vector.Bitmap, at int, present vector.Bitmap, inverse []int32) {
	for len(inverse) > 0 {
		// The rows up to the next word boundary of dst, whose bits are gathered in a register.
		n, bits := min(64-at&63, len(inverse)), uint64(0)
		for i, s := range inverse[:n] {
			bits |= present[s>>6] >> (uint(s) & 63) & 1 << (uint(i) & 63)
		}
		dst[at>>6] |= bits << (uint(at) & 63)
		at, inverse = at+n, inverse[n:]
	}
}

// orBits sets the bits of dst from at on that are set in the n bits of src from lo on.
func orBits(dst []uint64, at int, src []uint64, lo, n int) {
	for n > 0 {
		// The bits up to the next word boundary of dst, taken from at most two words of src.
		k := min(n, 64-at&63)
		w := src[lo>>6] >> (uint(lo) & 63)
		if have := 64 - lo&63; have < k {
			w |= src[lo>>6+1] << uint(have)
		}
		if k < 64 {
			w &= 1<<uint(k) - 1
		}
		dst[at>>6] |= w << (uint(at) & 63)
		at, lo, n = at+k, lo+k, n-k
	}
}

// AllSet reports whether the first n bits are set.
func AllSet(b []uint64, n int) bool {
	for ; n >= 64; n -= 64 {
		if b[0] != ^uint64(0) {
			return false
		}
		b = b[1:]
	}
	return n == 0 || bits.TrailingZeros64(^b[0]) >= n
}

// Accumulate replaces the lengths of lists by their ends, where the first starts at base. It returns the last end, and
// false if that does not fit an int32.
func Accumulate(lengths []int32, base int) (int, bool) {
	sum := int64(base)
	for i, n := range lengths {
		sum += int64(n)
		lengths[i] = int32(sum)
	}
	return int(sum), sum <= vector.MaxElements
}
