package rans

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
)

// maxFuzzCount bounds the values of a fuzzed chunk.
const maxFuzzCount = 4096

// decode decodes a chunk, which good says that it is.
func decode(d *Decoder, dst []int64, low int, base int64, chunk []byte) (good bool) {
	if !d.Open(len(dst), low, base, chunk) {
		return false
	}
	good = d.Next(dst)
	return d.Close() && good
}

// decodeFallback is decode row by row, without kernels.
func decodeFallback(d *Decoder, dst []int64, low int, base int64, chunk []byte) (good bool) {
	if !d.Open(len(dst), low, base, chunk) {
		return false
	}
	for from := 0; from < len(dst); from += lanes {
		used := d.rowFallback(dst[from:min(from+lanes, len(dst))])
		if used < 0 {
			return false
		}
		d.words = d.words[used:]
	}
	d.addLow(dst)
	return d.Close()
}

// same fails unless a Decoder, with its kernels, says of a chunk what the fallback says, and returns that.
func same(t *testing.T, n, low int, base int64, chunk []byte) (good bool) {
	t.Helper()
	got, want := make([]int64, n), make([]int64, n)
	good, fallback := decode(new(Decoder), got, low, base, chunk), decodeFallback(new(Decoder), want, low, base, chunk)
	if good != fallback || good && !slices.Equal(got, want) {
		t.Fatalf("%d values: %v, the fallback says %v, or other values", n, good, fallback)
	}
	return good
}

// skewed returns n values from 0 on, the lower the more frequent, and the bits of the highest.
func skewed(r *rand.Rand, n, spread int) (vals []int64, width int) {
	vals = make([]int64, n)
	for i := range vals {
		vals[i] = int64(min(r.IntN(spread), r.IntN(spread), r.IntN(spread)))
		for vals[i]>>width > 0 {
			width++
		}
	}
	return vals, width
}

// Rows of all mixtures of classes are decoded alike with kernels and without, whatever the tables, states and words.
func TestMatchesFallback(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 20))
	for range 3000 {
		n, low := r.IntN(300), r.IntN(3)*r.IntN(MaxLow/2+1)
		base := int64(r.Uint64())
		chunk := make([]byte, TableLen+StateLen+2*r.IntN(n/2+100)+bitpack.Len(n, low))
		for i := range chunk {
			chunk[i] = byte(r.Uint32())
			if r.IntN(8) == 0 {
				chunk[i] = byte(-(r.IntN(2)))
			}
		}
		_ = same(t, n, low, base, chunk)

		// The same with the words that it takes, by the fallback, so that it is good but for its end.
		d := new(Decoder)
		if !d.Open(n, low, base, chunk) {
			t.Fatal("not a chunk")
		}
		d.words = make([]byte, 4*n+rowWords)
		for i := range d.words {
			d.words[i] = byte(r.Uint32())
		}
		got, want := make([]int64, n+1), make([]int64, n)
		got[n] = -7
		kernel := *d
		for from := 0; from < n; from += lanes {
			used := d.rowFallback(want[from:min(from+lanes, n)])
			d.words = d.words[used:]
		}
		d.addLow(want)
		if good := kernel.Next(got[:n:n]); !good || !slices.Equal(got[:n], want) || got[n] != -7 {
			t.Fatalf("%d values: %v, or not what the fallback gives", n, good)
		}
		if kernel.states != d.states || len(kernel.words) != len(d.words) {
			t.Fatalf("%d values: other states, or %d bytes of words left for %d", n, len(kernel.words), len(d.words))
		}
	}
}

// What ends elsewhere than its states say is refused: other values, a word too many, a word too few.
func TestEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 22))
	for _, n := range []int{1, 31, 32, 33, 1000} {
		vals, width := skewed(r, n, 5000)
		if width == 0 {
			vals[0], width = 1, 1
		}
		chunk := new(Encoder).Append(nil, vals, width, 0)
		if !same(t, n, 0, 0, chunk) {
			t.Fatalf("%d values: not read", n)
		}
		for lane := range min(n, lanes) {
			bad := slices.Clone(chunk)
			bad[TableLen+4*lane] ^= 1
			got := make([]int64, n)
			if same(t, n, 0, 0, bad) && decode(new(Decoder), got, 0, 0, bad) && slices.Equal(got, vals) {
				t.Errorf("%d values: another state %d is read as the same values", n, lane)
			}
		}
		if same(t, n, 0, 0, append(slices.Clone(chunk), 0, 0)) {
			t.Errorf("%d values: a word too many is read", n)
		}
		if len(chunk) > TableLen+StateLen && same(t, n, 0, 0, chunk[:len(chunk)-2]) {
			t.Errorf("%d values: a word too few is read", n)
		}
		if new(Decoder).Open(n, 0, 0, chunk[:len(chunk)-1]) {
			t.Errorf("%d values: half a word is read", n)
		}
	}
}

// Values come back whatever their width and base.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 23))
	e, d := new(Encoder), new(Decoder)
	for range 500 {
		n, shift := 1+r.IntN(700), r.IntN(MaxLow)
		base := int64(r.Uint64())
		vals, width := skewed(r, n, 1+r.IntN(1<<15))
		for i := range vals {
			vals[i] = base + vals[i]<<shift + int64(r.Uint64()&(1<<shift-1))
		}
		if width += shift; width == 0 {
			continue
		}
		got := make([]int64, n)
		if !decode(d, got, LowWidth(width), base, e.Append(nil, vals, width, base)) || !slices.Equal(got, vals) {
			t.Fatalf("%d values of %d bits: other values", n, width)
		}
	}
}

// Every way to divide the slots among classes gives each its frequency.
func TestFrequencies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 21))
	for range 2000 {
		classes := make([]class, 1+r.IntN(buckets))
		for i := range classes {
			classes[i].count = r.IntN(1 << r.IntN(20))
		}
		classes[r.IntN(len(classes))].count++
		frequencies := classFrequencies(classes)
		sum := 0
		for i, f := range frequencies {
			sum += f
			if i < len(classes) && (f > 0) != (classes[i].count > 0) {
				t.Fatalf("%v: %v", classes, frequencies)
			}
		}
		if sum != slots {
			t.Fatalf("%v: %v, %d slots", classes, frequencies, sum)
		}
		table := new(Encoder).appendTable(nil, &frequencies, classes)
		var got [buckets]int
		for b := range buckets {
			got[b] += int(table[2*b])
			got[table[2*b+1]&15] += places - int(table[2*b])
		}
		if got != frequencies {
			t.Fatalf("the table gives %v, want %v", got, frequencies)
		}
	}
}

// FuzzDecode holds the kernels against their fallback on chunks of any bytes.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 24))
	for _, n := range []int{1, 40, 300} {
		if vals, width := skewed(r, n, 300); width > 0 {
			f.Add(binary.AppendUvarint(nil, 5), uint16(n), uint8(0))
			f.Add(new(Encoder).Append(nil, vals, width, 0), uint16(n), uint8(LowWidth(width)))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint16, low uint8) {
		_ = same(t, int(n)%maxFuzzCount, int(low)%(MaxLow+1), 5, src)
	})
}
