package encoding

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ransFallback decodes a chunk row by row, without kernels.
func ransFallback(dst []int64, chunk []byte) error {
	r := new(ransDecoder)
	if err := r.parse(len(dst), chunk[1:]); err != nil {
		return err
	}
	for from := 0; from < len(dst); from += ransLanes {
		used := r.rowFallback(dst[from:min(from+ransLanes, len(dst))])
		if used < 0 {
			return errRANS
		}
		r.words = r.words[used:]
	}
	r.addLow(dst)
	return r.end()
}

// sameRANS fails unless the Decoder, with its kernels, says of a chunk what the fallback says.
func sameRANS(t *testing.T, n int, chunk []byte) error {
	t.Helper()
	got, want := make([]int64, n), make([]int64, n)
	d := new(Decoder)
	err, fallback := d.Ints(got, chunk), ransFallback(want, chunk)
	if err != fallback || err == nil && !slices.Equal(got, want) {
		t.Fatalf("%d values: %v, the fallback says %v, or other values", n, err, fallback)
	}
	return err
}

// Rows of all mixtures of classes are decoded alike with kernels and without, whatever the tables, states and words.
func TestRANSMatchesFallback(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 20))
	for range 3000 {
		n, low := r.IntN(300), r.IntN(3)*r.IntN(ransMaxLow/2+1)
		chunk := binary.AppendVarint([]byte{byte(IDRANS), byte(low)}, int64(r.Uint64()))
		head := len(chunk)
		words := make([]byte, 2*r.IntN(n/2+100))
		chunk = append(chunk, make([]byte, ransTableLen+ransStateLen+len(words)+packedLen(n, low))...)
		for i := range chunk[head:] {
			chunk[head+i] = byte(r.Uint32())
			if r.IntN(8) == 0 {
				chunk[head+i] = byte(-(r.IntN(2)))
			}
		}
		_ = sameRANS(t, n, chunk)

		// The same with the words that it takes, by the fallback, so that it is good but for its end.
		d := new(ransDecoder)
		if d.parse(n, chunk[1:]) != nil {
			t.Fatal("not a chunk")
		}
		d.words = make([]byte, 4*n+ransRowWords)
		for i := range d.words {
			d.words[i] = byte(r.Uint32())
		}
		got, want := make([]int64, n+1), make([]int64, n)
		got[n] = -7
		kernel := *d
		for from := 0; from < n; from += ransLanes {
			used := d.rowFallback(want[from:min(from+ransLanes, n)])
			d.words = d.words[used:]
		}
		d.addLow(want)
		if err := kernel.next(got[:n:n]); err != nil || !slices.Equal(got[:n], want) || got[n] != -7 {
			t.Fatalf("%d values: %v, or not what the fallback gives", n, err)
		}
		if kernel.states != d.states || len(kernel.words) != len(d.words) {
			t.Fatalf("%d values: other states, or %d bytes of words left for %d", n, len(kernel.words), len(d.words))
		}
	}
}

// What ends elsewhere than its states say is refused: other values, a word too many, a word too few.
func TestRANSEnds(t *testing.T) {
	for _, n := range []int{1, 31, 32, 33, 1000} {
		vals := named(intShapes(), "skewed-codes").make(source("ends", n), n)
		chunk, ok := forceInts(IDRANS, vals)
		if !ok {
			continue
		}
		if err := sameRANS(t, n, chunk); err != nil {
			t.Fatal(err)
		}
		states := len(chunk) - int(chunkWords(t, n, chunk)) - ransStateLen
		for lane := range min(n, ransLanes) {
			bad := slices.Clone(chunk)
			bad[states+4*lane] ^= 1
			got := make([]int64, n)
			if sameRANS(t, n, bad) == nil && new(Decoder).Ints(got, bad) == nil && slices.Equal(got, vals) {
				t.Errorf("%d values: another state %d is read as the same values", n, lane)
			}
		}
		if err := sameRANS(t, n, append(slices.Clone(chunk), 0, 0)); err != errRANS {
			t.Errorf("%d values: a word too many gives %v", n, err)
		}
		if chunkWords(t, n, chunk) > 0 {
			if err := sameRANS(t, n, chunk[:len(chunk)-2]); err == nil {
				t.Errorf("%d values: a word too few is read", n)
			}
		}
		if err := sameRANS(t, n, chunk[:len(chunk)-1]); err != errLength {
			t.Errorf("%d values: half a word gives %v", n, err)
		}
	}
}

// chunkWords returns the bytes of words in a chunk without low parts.
func chunkWords(t *testing.T, n int, chunk []byte) int64 {
	r := new(ransDecoder)
	if err := r.parse(n, chunk[1:]); err != nil || r.low != 0 {
		t.Fatal(err, r.low)
	}
	return int64(len(r.words))
}

// Classes cost what their entropy says: of codes by frequency hardly more than the entropy of the codes themselves.
func TestRANSIsNearTheEntropy(t *testing.T) {
	const n = 1 << 16
	for _, name := range []string{"skewed-codes", "lengths", "alternating"} {
		vals := named(intShapes(), name).make(source(name, n), n)
		counts := map[int64]int{}
		for _, v := range vals {
			counts[v]++
		}
		bits := 0.0
		for _, c := range counts {
			bits -= float64(c) * math.Log2(float64(c)/n)
		}
		chunk, _ := forceInts(IDRANS, vals)
		if size, least := float64(len(chunk)), bits/8; size > 1.02*least+400 {
			t.Errorf("%s: %.0f bytes, the entropy is %.0f", name, size, least)
		}
	}
}

// Every way to divide the slots among classes gives each its frequency.
func TestRANSFrequencies(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 21))
	for range 2000 {
		classes := make([]ransClass, 1+r.IntN(ransBuckets))
		for i := range classes {
			classes[i].count = r.IntN(1 << r.IntN(20))
		}
		classes[r.IntN(len(classes))].count++
		frequencies := ransFrequencies(classes)
		sum := 0
		for i, f := range frequencies {
			sum += f
			if i < len(classes) && (f > 0) != (classes[i].count > 0) {
				t.Fatalf("%v: %v", classes, frequencies)
			}
		}
		if sum != ransSlots {
			t.Fatalf("%v: %v, %d slots", classes, frequencies, sum)
		}
		table := new(ransEncoder).buckets(nil, &frequencies, classes)
		var got [ransBuckets]int
		for b := range ransBuckets {
			got[b] += int(table[2*b])
			got[table[2*b+1]&15] += ransPlaces - int(table[2*b])
		}
		if got != frequencies {
			t.Fatalf("the table gives %v, want %v", got, frequencies)
		}
	}
}

// FuzzRANS holds the kernels against their fallback on chunks of any bytes.
func FuzzRANS(f *testing.F) {
	for _, n := range []int{1, 40, 300} {
		if chunk, ok := forceInts(IDRANS, named(intShapes(), "skewed-codes").make(source("fuzz", n), n)); ok {
			f.Add(chunk[1:], uint16(n))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		_ = sameRANS(t, int(n)%maxFuzzCount, append([]byte{byte(IDRANS)}, src...))
	})
}
