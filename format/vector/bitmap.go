package vector

import "math/bits"

// A Bitmap holds one bit per position: bit i is bit i%64 of word i/64. Bits past the owner's length are zero. A nil
// presence Bitmap means that every position is present.
type Bitmap []uint64

// BitmapWords returns how many words n bits take.
func BitmapWords(n int) int { return (n + 63) / 64 }

// Get reports whether bit i is set.
func (b Bitmap) Get(i int) bool { return b[i>>6]>>(uint(i)&63)&1 != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear clears bit i.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// Count returns the number of set bits.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// SetRange sets bits lo to hi-1.
func (b Bitmap) SetRange(lo, hi int) {
	for lo < hi && lo&63 != 0 {
		b.Set(lo)
		lo++
	}
	for ; lo+64 <= hi; lo += 64 {
		b[lo>>6] = ^uint64(0)
	}
	for ; lo < hi; lo++ {
		b.Set(lo)
	}
}

// CopyBits sets bits [at, at+n), which are zero, to bits [from, from+n) of src.
func (b Bitmap) CopyBits(at int, src Bitmap, from, n int) {
	for n > 0 {
		k := min(64-at&63, n)
		w := src[from>>6] >> (uint(from) & 63)
		if have := 64 - from&63; have < k {
			w |= src[from>>6+1] << uint(have)
		}
		if k < 64 {
			w &= 1<<uint(k) - 1
		}
		b[at>>6] |= w << (uint(at) & 63)
		at, from, n = at+k, from+k, n-k
	}
}

// Grow returns b with at least the words of n bits. New words are zero.
func (b Bitmap) Grow(n int) Bitmap {
	w := BitmapWords(n)
	for len(b) < w {
		if cap(b) > len(b) {
			b = b[:len(b)+1]
			b[len(b)-1] = 0
			continue
		}
		b = append(b, 0)
	}
	return b
}
