package encoding

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// maxFuzzCount keeps one input from taking long; memory is bounded by it, as it is by a caller's destination.
const maxFuzzCount = 1 << 14

// seedInts adds a chunk of each shape and codec with its count.
func seedInts(f *testing.F) {
	for _, s := range intShapes()[:19] {
		for _, n := range []int{1, 65, 300} {
			vals := s.make(source(s.name, n), n)
			for _, codec := range intIDs() {
				if chunk, ok := forceInts(codec, vals); ok {
					f.Add(chunk, uint16(n))
				}
			}
		}
	}
}

func FuzzDecodeInts(f *testing.F) {
	seedInts(f)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count) % maxFuzzCount
		_ = Describe(src)
		first := make([]int64, n)
		if d.Ints(first, src) != nil {
			return
		}
		again := make([]int64, n)
		if err := d.Ints(again, src); err != nil || !slices.Equal(first, again) {
			t.Fatalf("decoding twice differs: %v", err)
		}
	})
}

func FuzzDecodeInt32s(f *testing.F) {
	seedInts(f)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count) % maxFuzzCount
		narrow, wide := make([]int32, n), make([]int64, n)
		err32, err := d.Int32s(narrow, src), d.Ints(wide, src)
		if (err32 == nil) != (err == nil) && err32 != errRange {
			t.Fatalf("32 bits: %v, 64 bits: %v", err32, err)
		}
		for i := range narrow {
			if err32 == nil && int64(narrow[i]) != wide[i] {
				t.Fatalf("value %d: %d and %d", i, narrow[i], wide[i])
			}
		}
	})
}

func seedFloats(f *testing.F, width int) {
	for _, s := range doubleShapes() {
		for _, n := range []int{1, 65, 300} {
			raw := make([]int64, n)
			for i, v := range s.make(source(s.name, n), n) {
				raw[i] = int64(math.Float64bits(v))
				if width == 4 {
					raw[i] = int64(math.Float32bits(float32(v)))
				}
			}
			for _, codec := range floatIDs() {
				if chunk, ok := forceFloats(codec, raw, width); ok {
					f.Add(chunk, uint16(n))
				}
			}
		}
	}
}

func FuzzDecodeFloats(f *testing.F) {
	seedFloats(f, 4)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		_ = Describe(src)
		_ = d.Floats(make([]float32, int(count)%maxFuzzCount), src)
	})
}

func FuzzDecodeDoubles(f *testing.F) {
	seedFloats(f, 8)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		_ = Describe(src)
		_ = d.Doubles(make([]float64, int(count)%maxFuzzCount), src)
	})
}

func FuzzDecodeBits(f *testing.F) {
	for _, s := range bitShapes() {
		for _, n := range []int{1, 65, 3000} {
			words := make([]uint64, (n+63)/64)
			for i, v := range s.make(source(s.name, n), n) {
				if v {
					words[i/64] |= 1 << (i % 64)
				}
			}
			var c Chooser
			f.Add(c.AppendBits(nil, 0, words, n), uint16(n))
		}
	}
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count) % maxFuzzCount
		dst := make([]uint64, (n+63)/64)
		if d.Bits(dst, n, src) == nil && n%64 != 0 && dst[n/64]>>(n%64) != 0 {
			t.Fatal("bits beyond the count are set")
		}
	})
}

func FuzzDecodeStrings(f *testing.F) {
	for _, s := range stringShapes() {
		var data []byte
		offsets := []int32{0}
		var sizes []byte
		for _, v := range s.make(source(s.name, 64), 64) {
			v = v[:min(len(v), 255)]
			data = append(data, v...)
			offsets = append(offsets, int32(len(data)))
			sizes = append(sizes, byte(len(v)))
		}
		for _, codec := range stringIDs()[1:] {
			if chunk, ok := forceStrings(codec, data, offsets); ok {
				f.Add(chunk, sizes)
			}
		}
	}
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src, sizes []byte) {
		_ = Describe(src)
		offsets := []int32{0}
		for _, s := range sizes {
			offsets = append(offsets, offsets[len(offsets)-1]+int32(s))
		}
		_ = d.Strings(make([]byte, offsets[len(offsets)-1]), offsets, src)
	})
}

// toInts makes ints of any bytes, in the width that the first byte asks for.
func toInts(data []byte) []int64 {
	if len(data) == 0 {
		return nil
	}
	size := int(data[0])%8 + 1
	data = data[1:]
	var vals []int64
	for ; len(data) >= size; data = data[size:] {
		var b [8]byte
		copy(b[:], data[:size])
		vals = append(vals, int64(binary.LittleEndian.Uint64(b[:])))
	}
	return vals
}

func seedRoundTrip(f *testing.F) {
	for _, s := range intShapes()[:19] {
		data := []byte{7}
		for _, v := range s.make(source(s.name, 300), 300) {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		f.Add(data, byte(0))
	}
	f.Add([]byte{0, 1, 1, 2}, byte(2))
}

func FuzzRoundTripInts(f *testing.F) {
	seedRoundTrip(f)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, data []byte, pick byte) {
		vals := toInts(data)
		ids := intIDs()
		codec := ids[int(pick)%len(ids)]
		chunk, ok := forceInts(codec, vals)
		if !ok {
			return
		}
		got := make([]int64, len(vals))
		if err := d.Ints(got, chunk); err != nil || !slices.Equal(got, vals) {
			t.Fatalf("%v: %v", Describe(chunk), err)
		}
	})
}

func FuzzRoundTripFloats(f *testing.F) {
	seedRoundTrip(f)
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, data []byte, pick byte) {
		raw := toInts(data)
		ids := floatIDs()
		codec := ids[int(pick)%len(ids)]
		if chunk, ok := forceFloats(codec, raw, 8); ok {
			got := make([]float64, len(raw))
			if err := d.Doubles(got, chunk); err != nil {
				t.Fatalf("doubles, %v: %v", Describe(chunk), err)
			}
			for i, v := range got {
				if int64(math.Float64bits(v)) != raw[i] {
					t.Fatalf("doubles, %v: value %d", Describe(chunk), i)
				}
			}
		}
		for i := range raw {
			raw[i] &= math.MaxUint32
		}
		if chunk, ok := forceFloats(codec, raw, 4); ok {
			got := make([]float32, len(raw))
			if err := d.Floats(got, chunk); err != nil {
				t.Fatalf("floats, %v: %v", Describe(chunk), err)
			}
			for i, v := range got {
				if int64(math.Float32bits(v)) != raw[i] {
					t.Fatalf("floats, %v: value %d", Describe(chunk), i)
				}
			}
		}
	})
}

func FuzzRoundTripBits(f *testing.F) {
	f.Add([]byte{0xff, 0, 0, 0xaa}, byte(3))
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, data []byte, less byte) {
		n := max(0, 8*len(data)-int(less))
		words := make([]uint64, (n+63)/64)
		for i := range n {
			words[i/64] |= uint64(data[i/8]>>(i%8)&1) << (i % 64)
		}
		var c Chooser
		got := make([]uint64, len(words))
		if err := d.Bits(got, n, c.AppendBits(nil, 0, words, n)); err != nil || !slices.Equal(got, words) {
			t.Fatal(err)
		}
	})
}

func FuzzRoundTripStrings(f *testing.F) {
	f.Add([]byte("a bc bc a bc"), []byte{1, 1, 2, 1, 2, 1, 1, 1, 2})
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		offsets := []int32{0}
		for _, s := range sizes {
			offsets = append(offsets, min(int32(len(data)), offsets[len(offsets)-1]+int32(s)))
		}
		data = data[:offsets[len(offsets)-1]]
		for _, codec := range stringIDs() {
			chunk, ok := forceStrings(codec, data, offsets)
			if !ok {
				continue
			}
			got := make([]byte, len(data))
			if err := d.Strings(got, offsets, chunk); err != nil || string(got) != string(data) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}
		}
	})
}
