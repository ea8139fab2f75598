package encoding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
)

// drawSpans returns some spans of n values: few and short, many, whole, empty, twice the same, in any order.
func drawSpans(rng *rand.Rand, n int) []Span {
	out := []Span{}
	longest := []int{1, 3, 40, 300, 3000}[rng.IntN(5)]
	for range []int{0, 1, 3, 20}[rng.IntN(4)] {
		from := rng.IntN(n + 1)
		out = append(out, Span{int32(from), int32(min(n, from+rng.IntN(longest+1)))})
	}
	switch rng.IntN(4) {
	case 0:
		out = append(out, out...)
	case 1:
		slices.SortFunc(out, func(a, b Span) int { return int(a.From - b.From) })
	}
	return out
}

// spansOf returns the values of spans.
func spansOf[T any](vals []T, spans []Span) []T {
	out := []T{}
	for _, s := range spans {
		out = append(out, vals[s.From:s.To]...)
	}
	return out
}

func TestIntsAtConformance(t *testing.T) {
	d := new(Decoder)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, s := range intShapes() {
		for _, n := range append(slices.Clip(lengths), 10_000) {
			if n == 10_000 && race.Enabled {
				continue
			}
			vals := s.make(source(s.name, n), n)
			for _, codec := range intIDs() {
				chunk, ok := forceInts(codec, vals)
				if !ok {
					continue
				}
				for turn := range 4 {
					spans := drawSpans(rng, n)
					want := spansOf(vals, spans)
					got := make([]int64, len(want))
					if err := d.IntsAt(got, n, spans, chunk); err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s, %d values, %v, spans %v: %v", s.name, n, Describe(chunk), spans, err)
					}
					if turn == 0 && n > 0 {
						damageSpans(chunk, func(src []byte) error { return d.IntsAt(got, n, spans, src) })
					}
				}
			}
		}
	}
	if d.ints.used != 0 || d.bytes.used != 0 || d.spans.used != 0 || d.placed.used != 0 {
		t.Errorf("scratch is not given back: %d ints, %d bytes, %d spans, %d placed", d.ints.used, d.bytes.used,
			d.spans.used, d.placed.used)
	}
}

// damageSpans cuts and changes a chunk: what is decoded of it then does not matter, but that nothing panics does.
func damageSpans(chunk []byte, decode func([]byte) error) {
	step := max(1, len(chunk)/7)
	for cut := 0; cut < len(chunk); cut += step {
		_ = decode(chunk[:cut:cut])
	}
	bad := slices.Clone(chunk)
	for i := 0; i < len(bad); i += min(step, i/2+1) {
		for _, x := range []byte{1, 0x80, 0xff} {
			bad[i] ^= x
			_ = decode(bad)
			bad[i] ^= x
		}
	}
}

func TestInt32sAt(t *testing.T) {
	d := new(Decoder)
	var c Chooser
	chunk := c.AppendInts(nil, 0, []int64{1, 2, math.MaxInt32 + 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20})
	got := make([]int32, 2)
	if err := d.Int32sAt(got, 20, []Span{{3, 4}, {0, 1}}, chunk); err != nil || got[0] != 4 || got[1] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if err := d.Int32sAt(got, 20, []Span{{2, 4}}, chunk); err != errRange {
		t.Errorf("over 32 bits: %v", err)
	}
}

func TestFloatsAtConformance(t *testing.T) {
	d := new(Decoder)
	rng := rand.New(rand.NewPCG(7, 8))
	for _, s := range doubleShapes() {
		for _, n := range append(slices.Clip(lengths), 10_000) {
			if n == 10_000 && race.Enabled {
				continue
			}
			doubles := s.make(source(s.name, n), n)
			floats := make([]float32, n)
			raw4, raw8 := make([]int64, n), make([]int64, n)
			for i, v := range doubles {
				floats[i] = float32(v)
				raw4[i], raw8[i] = int64(math.Float32bits(floats[i])), int64(math.Float64bits(v))
			}
			for _, codec := range floatIDs() {
				spans := drawSpans(rng, n)
				if chunk, ok := forceFloats(codec, raw4, 4); ok {
					want := spansOf(floats, spans)
					got := make([]float32, len(want))
					err := d.FloatsAt(got, n, spans, chunk)
					same := slices.EqualFunc(got, want, func(a,
						b float32) bool {
						return math.Float32bits(a) == math.Float32bits(b)
					})
					if err != nil || !same {
						t.Fatalf("%s, %d floats, %v, spans %v: %v", s.name, n, Describe(chunk), spans, err)
					}
					damageSpans(chunk, func(src []byte) error { return d.FloatsAt(got, n, spans, src) })
				}
				if chunk, ok := forceFloats(codec, raw8, 8); ok {
					want := spansOf(doubles, spans)
					got := make([]float64, len(want))
					err := d.DoublesAt(got, n, spans, chunk)
					same := slices.EqualFunc(got, want, func(a,
						b float64) bool {
						return math.Float64bits(a) == math.Float64bits(b)
					})
					if err != nil || !same {
						t.Fatalf("%s, %d doubles, %v, spans %v: %v", s.name, n, Describe(chunk), spans, err)
					}
					damageSpans(chunk, func(src []byte) error { return d.DoublesAt(got, n, spans, src) })
				}
			}
		}
	}
}

// What decodes whole decodes in parts, to the same values; what does not may in parts, and never panics.
func FuzzIntsAt(f *testing.F) {
	seedInts(f)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count) % maxFuzzCount
		all := make([]int64, n)
		whole := d.Ints(all, src)
		rng := rand.New(rand.NewPCG(uint64(count), uint64(len(src))))
		for range 4 {
			spans := drawSpans(rng, n)
			want := spansOf(all, spans)
			got := make([]int64, len(want))
			err := d.IntsAt(got, n, spans, src)
			if whole == nil && (err != nil || !slices.Equal(got, want)) {
				t.Fatalf("spans %v of %d: %v", spans, n, err)
			}
		}
	})
}

// FuzzFloatsAt is FuzzIntsAt for doubles, and for floats but their values.
func FuzzFloatsAt(f *testing.F) {
	seedFloats(f, 4)
	seedFloats(f, 8)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count) % maxFuzzCount
		all := make([]float64, n)
		whole, wholeFloats := d.Doubles(all, src), d.Floats(make([]float32, n), src)
		rng := rand.New(rand.NewPCG(uint64(count), uint64(len(src))))
		for range 4 {
			spans := drawSpans(rng, n)
			want := spansOf(all, spans)
			got := make([]float64, len(want))
			err := d.DoublesAt(got, n, spans, src)
			same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
			if whole == nil && (err != nil || !slices.EqualFunc(got, want, same)) {
				t.Fatalf("spans %v of %d: %v", spans, n, err)
			}
			if err := d.FloatsAt(make([]float32, len(want)), n, spans, src); wholeFloats == nil && err != nil {
				t.Fatalf("spans %v of %d floats: %v", spans, n, err)
			}
		}
	})
}

// Copies that overlap themselves, as a period makes them, and copies of copies are followed back to where they come
// from.
func TestIntsAtFollowsCopies(t *testing.T) {
	d := new(Decoder)
	rng := rand.New(rand.NewPCG(9, 10))
	const n = 30_000
	for _, period := range []int{1, 3, 7, 1000} {
		vals := make([]int64, n)
		for i := range vals {
			switch {
			case i < period:
				vals[i] = rng.Int64()
			case i%5000 == 4999:
				vals[i] = int64(i)
			default:
				vals[i] = vals[i-period]
			}
		}
		chunk, ok := forceInts(IDSequences, vals)
		if !ok {
			t.Fatal("no sequences")
		}
		for range 200 {
			spans := drawSpans(rng, n)
			want := spansOf(vals, spans)
			got := make([]int64, len(want))
			if err := d.IntsAt(got, n, spans, chunk); err != nil || !slices.Equal(got, want) {
				t.Fatalf("period %d, spans %v: %v", period, spans, err)
			}
		}
	}
}
