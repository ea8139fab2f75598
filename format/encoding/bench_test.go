package encoding

import (
	"fmt"
	"math"
	"testing"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
	"github.com/dsistore/dsistore/format/encoding/gather"
)

// BenchmarkDecode measures every codec over the shapes that it is made for; its ns/value are where the constants of
// cost.go come from. b.SetBytes counts decoded bytes.
func BenchmarkDecode(b *testing.B) {
	const n = 1 << 16
	ints := []struct {
		shape string
		codec ID
	}{
		{"constant", 0}, {"random63", IDPlain}, {"lengths", IDPlain}, {"lengths", IDFOR}, {"width17",
			IDFOR}, {"random63", IDFOR},
		{"timestamps", IDDelta}, {"inverse", IDDelta}, {"outliers", IDPatched}, {"sessions", IDRuns}, {"uniform-ids",
			IDDictionary},
		{"zipf-ids", IDDictionary}, {"repeated-lists", IDZstd}, {"repeated-lists", IDSequences}, {"zipf-counts",
			IDRANS}, {"skewed-codes", IDRANS}, {"repeated-lists", 0}, {"zipf-counts", 0}, {"zipf-ids", 0},
	}
	d := new(Decoder)
	for _, c := range ints {
		vals := named(intShapes(), c.shape).make(source(c.shape, n), n)
		chunk, ok := forceInts(c.codec, vals)
		if !ok {
			b.Fatal(c.shape)
		}
		got := make([]int64, n)
		b.Run("ints/"+c.shape+"/"+Describe(chunk), func(b *testing.B) {
			measure(b, n, 8, len(chunk), func() error { return d.Ints(got, chunk) })
		})
	}
	for _, shape := range []string{"lengths", "inverse"} {
		vals := named(intShapes(), shape).make(source(shape, n), n)
		chunk, _ := forceInts(0, vals)
		got := make([]int32, n)
		b.Run("int32s/"+shape+"/"+Describe(chunk), func(b *testing.B) {
			measure(b, n, 4, len(chunk), func() error { return d.Int32s(got, chunk) })
		})
	}
	floats := []struct {
		shape string
		codec ID
	}{{"normal", IDFloatPlain}, {"normal", IDFloatSplit}, {"prices", IDFloatDecimal}, {"counts",
		IDFloatDecimal}, {"decimals-and-noise", IDFloatDecimal},
		{"few", IDFloatDictionary}, {"sessions", IDFloatRuns}, {"prices", IDFloatZstd}}
	for _, c := range floats {
		vals := named(floatShapes(), c.shape).make(source(c.shape, n), n)
		raw := make([]int64, n)
		for i, v := range vals {
			raw[i] = int64(math.Float32bits(v))
		}
		chunk, _ := forceFloats(c.codec, raw, 4)
		got := make([]float32, n)
		b.Run("floats/"+c.shape+"/"+Describe(chunk), func(b *testing.B) {
			measure(b, n, 4, len(chunk), func() error { return d.Floats(got, chunk) })
		})
		doubles := named(doubleShapes(), c.shape).make(source(c.shape, n), n)
		for i, v := range doubles {
			raw[i] = int64(math.Float64bits(v))
		}
		chunk8, _ := forceFloats(c.codec, raw, 8)
		got8 := make([]float64, n)
		b.Run("doubles/"+c.shape+"/"+Describe(chunk8), func(b *testing.B) {
			measure(b, n, 8, len(chunk8), func() error { return d.Doubles(got8, chunk8) })
		})
	}
	for _, s := range bitShapes() {
		words := make([]uint64, n/64)
		for i, f := range s.make(source(s.name, n), n) {
			if f {
				words[i/64] |= 1 << (i % 64)
			}
		}
		var c Chooser
		chunk := c.AppendBits(nil, 0, words, n)
		b.Run("bits/"+s.name+"/"+Describe(chunk), func(b *testing.B) {
			measure(b, n, 0.125, len(chunk), func() error { return d.Bits(words, n, chunk) })
		})
	}
	for _, s := range stringShapes() {
		var data []byte
		offsets := []int32{0}
		for _, v := range s.make(source(s.name, n), n) {
			data = append(data, v...)
			offsets = append(offsets, int32(len(data)))
		}
		var c Chooser
		chunk := c.AppendStrings(nil, 0, data, offsets)
		got := make([]byte, len(data))
		b.Run("strings/"+s.name+"/"+Describe(chunk), func(b *testing.B) {
			measure(b, n, float64(len(data))/n, len(chunk), func() error { return d.Strings(got, offsets, chunk) })
		})
	}
}

// BenchmarkUnpack measures bit-unpacking alone, by width.
func BenchmarkUnpack(b *testing.B) {
	const n = 1 << 14
	for _, w := range []int{0, 1, 5, 8, 13, 17, 24, 32, 45, 63, 64} {
		vals := named(intShapes(), "random63").make(source("unpack", w), n)
		packed := bitpack.Append(nil, vals, w, 0)
		got := make([]int64, n)
		b.Run(fmt.Sprint("width", w), func(b *testing.B) {
			measure(b, n, 8, len(packed), func() error { bitpack.Unpack(got, packed, w, 5); return nil })
		})
	}
}

// BenchmarkPack measures bit-packing alone, by width.
func BenchmarkPack(b *testing.B) {
	const n = 1 << 14
	for _, w := range []int{1, 5, 8, 13, 17, 24, 32, 45, 63, 64} {
		vals := named(intShapes(), "random63").make(source("pack", w), n)
		var packed []byte
		b.Run(fmt.Sprint("width", w), func(b *testing.B) {
			measure(b, n, 8, len(packed), func() error { packed = bitpack.Append(packed[:0], vals, w, 5); return nil })
		})
	}
}

// BenchmarkLookUp measures the look-up of codes in a dictionary, of a file and a tenth as many of a stripe, that the
// second-level cache holds.
func BenchmarkLookUp(b *testing.B) {
	const n = 1 << 14
	first, second, codes, dst := make([]int64, 40000), make([]int64, 4000), make([]int64, n), make([]int64, n)
	for _, x := range []struct {
		name string
		most uint64
	}{{"one", 40000}, {"two", 44000}} {
		for i := range codes {
			codes[i] = int64(uint64(i) * 0x9e3779b97f4a7c15 >> 20 % x.most)
		}
		b.Run(x.name, func(b *testing.B) {
			measure(b, n, 8, 0, func() error { gather.Two(dst, first, second, codes); return nil })
		})
	}
}

// BenchmarkEncode measures choosing and encoding: "first" has nothing to remember, "next" is the steady state.
func BenchmarkEncode(b *testing.B) {
	const n = 1 << 16
	for _, s := range intShapes()[:19] {
		vals := s.make(source(s.name, n), n)
		var dst []byte
		b.Run("ints/first/"+s.name, func(b *testing.B) {
			measure(b, n, 8, len(dst), func() error { var c Chooser; dst = c.AppendInts(dst[:0], 0, vals); return nil })
		})
		var c Chooser
		b.Run("ints/next/"+s.name, func(b *testing.B) {
			measure(b, n, 8, len(dst), func() error { dst = c.AppendInts(dst[:0], 0, vals); return nil })
		})
	}
	for _, s := range floatShapes() {
		vals := s.make(source(s.name, n), n)
		var dst []byte
		b.Run("floats/first/"+s.name, func(b *testing.B) {
			measure(b, n, 4, len(dst), func() error {
				var c Chooser
				dst = c.AppendFloats(dst[:0], 0,
					vals)
				return nil
			})
		})
		var c Chooser
		b.Run("floats/next/"+s.name, func(b *testing.B) {
			measure(b, n, 4, len(dst), func() error { dst = c.AppendFloats(dst[:0], 0, vals); return nil })
		})
	}
}

func named[T any](shapes []shape[T], name string) shape[T] {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	panic("no shape " + name)
}

// measure reports ns and stored bits for each value, and decoded bytes per second.
func measure(b *testing.B, n int, valueBytes float64, stored int, f func() error) {
	b.SetBytes(int64(float64(n) * valueBytes))
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
	b.ReportMetric(8*float64(stored)/float64(n), "bits/value")
}
