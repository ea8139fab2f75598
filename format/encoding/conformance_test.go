package encoding

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dsistore/dsistore/internal/race"
)

// One suite for all codecs: every codec takes every shape at every length, by force where the chooser would not, and
// gives it back; what is left of its bytes when they are cut or changed is refused or decoded, never more.

const seed = 7

func source(name string, n int) *rand.Rand {
	h := uint64(n)
	for _, c := range name {
		h = h*131 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, h))
}

var profiles = []Profile{Balanced, Speed, Size}

// intIDs are the codecs of ints that are forced on every shape; 0 is what the chooser likes.
func intIDs() []ID {
	ids := []ID{0}
	for _, c := range intCodecs {
		if c != nil && c.encode != nil {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// floatIDs are those of floats.
func floatIDs() []ID {
	ids := []ID{0}
	for _, c := range floatCodecs {
		if c != nil && c.encode != nil {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// stringIDs are those of strings.
func stringIDs() []ID {
	ids := []ID{0}
	for _, c := range stringCodecs {
		if c != nil {
			ids = append(ids, c.id)
		}
	}
	return ids
}

func TestIntsConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range intShapes() {
		for _, n := range lengths {
			vals := s.make(source(s.name, n), n)
			for _, codec := range intIDs() {
				chunk, ok := forceInts(codec, vals)
				if !ok {
					continue
				}
				got := make([]int64, n)
				if err := d.Ints(got, chunk); err != nil {
					t.Fatalf("%s, %d values, %v: %v", s.name, n, Describe(chunk), err)
				}
				if !slices.Equal(got, vals) {
					t.Fatalf("%s, %d values, %v: other values", s.name, n, Describe(chunk))
				}
				checkDamage(t, chunk, func(src []byte) error { return d.Ints(got, src) })
				if n > 0 && codec != 0 {
					if err := d.Ints(got[:n-1], chunk); err == nil && Describe(chunk) != "constant" {
						checkFewer(t, chunk, n)
					}
				}
			}
		}
	}
}

// checkFewer allows the one case in which a chunk serves two counts: bit-packed values of a tail that end within the
// same byte, or have no bits.
func checkFewer(t *testing.T, chunk []byte, n int) {
	t.Helper()
	if len(chunk) > 16+9*n {
		t.Fatalf("%v: %d bytes also decode as %d values", Describe(chunk), len(chunk), n-1)
	}
}

// forceInts makes a chunk in a codec, or as the chooser likes for codec 0; false when the codec cannot take vals.
func forceInts(codec ID, vals []int64) ([]byte, bool) {
	if codec == 0 {
		var c Chooser
		return c.AppendInts(nil, 0, vals), true
	}
	if len(vals) == 0 {
		return nil, false
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	s := scan(vals)
	switch codec {
	case IDPatched: // at a width that has exceptions
		return e.appendPatched(nil, nil, vals, min(63, s.width*2/3), s.base, 0), true
	case IDDictionary: // however many are distinct
		codes := make([]int64, len(vals))
		e.table.add(codes, vals, len(vals))
		return e.appendDictionary([]byte{byte(IDDictionary)}, nil, codes, 0, (*encoder).appendInts), true
	}
	return intCodecs[codec].encode(e, nil, nil, vals, &s, 0)
}

func TestInt32sConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range intShapes() {
		for _, n := range lengths {
			wide := s.make(source(s.name, n), n)
			vals := make([]int32, n)
			fits := true
			for i, v := range wide {
				vals[i] = int32(v)
				fits = fits && v == int64(int32(v))
			}
			var c Chooser
			chunk := c.AppendInt32s(nil, 0, vals)
			got := make([]int32, n)
			if err := d.Int32s(got, chunk); err != nil || !slices.Equal(got, vals) {
				t.Fatalf("%s, %d values: %v", s.name, n, err)
			}
			checkDamage(t, chunk, func(src []byte) error { return d.Int32s(got, src) })
			if !fits {
				if err := d.Int32s(got, c.AppendInts(nil, 1, wide)); err != errRange {
					t.Fatalf("%s, %d values over 32 bits: %v", s.name, n, err)
				}
			}
		}
	}
}

func TestFloatsConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range floatShapes() {
		for _, n := range lengths {
			vals := s.make(source(s.name, n), n)
			raw := make([]int64, n)
			for i, v := range vals {
				raw[i] = int64(math.Float32bits(v))
			}
			for _, codec := range floatIDs() {
				chunk, ok := forceFloats(codec, raw, 4)
				if !ok {
					continue
				}
				got := make([]float32, n)
				if err := d.Floats(got, chunk); err != nil {
					t.Fatalf("%s, %d values, %v: %v", s.name, n, Describe(chunk), err)
				}
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(vals[i]) {
						t.Fatalf("%s, %d values, %v: value %d: %x became %x", s.name, n, Describe(chunk), i,
							math.Float32bits(vals[i]), math.Float32bits(got[i]))
					}
				}
				checkDamage(t, chunk, func(src []byte) error { return d.Floats(got, src) })
			}
		}
	}
}

func TestDoublesConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range doubleShapes() {
		for _, n := range lengths {
			vals := s.make(source(s.name, n), n)
			raw := make([]int64, n)
			for i, v := range vals {
				raw[i] = int64(math.Float64bits(v))
			}
			for _, codec := range floatIDs() {
				chunk, ok := forceFloats(codec, raw, 8)
				if !ok {
					continue
				}
				got := make([]float64, n)
				if err := d.Doubles(got, chunk); err != nil {
					t.Fatalf("%s, %d values, %v: %v", s.name, n, Describe(chunk), err)
				}
				for i := range got {
					if math.Float64bits(got[i]) != math.Float64bits(vals[i]) {
						t.Fatalf("%s, %d values, %v: value %d: %x became %x", s.name, n, Describe(chunk), i,
							math.Float64bits(vals[i]), math.Float64bits(got[i]))
					}
				}
				checkDamage(t, chunk, func(src []byte) error { return d.Doubles(got, src) })
			}
		}
	}
}

func forceFloats(codec ID, raw []int64, width int) ([]byte, bool) {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	if codec == 0 {
		return e.appendFloats(nil, new(memory), raw, width, 0), true
	}
	if len(raw) == 0 {
		return nil, false
	}
	runs := 1
	for i, v := range raw[1:] {
		if v != raw[i] {
			runs++
		}
	}
	exponents, _, _ := chooseDecimal(raw, width)
	return e.appendFloatsAs(codec, nil, nil, &floatValues{raw, width, runs, exponents}, 0)
}

func TestBitsConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range bitShapes() {
		for _, n := range lengths {
			flags := s.make(source(s.name, n), n)
			words := make([]uint64, (n+63)/64)
			for i, f := range flags {
				if f {
					words[i/64] |= 1 << (i % 64)
				}
			}
			want := slices.Clone(words)
			if n%64 != 0 { // bits beyond n are none of ours
				words[n/64] |= ^uint64(0) << (n % 64)
			}
			for _, p := range profiles {
				c := Chooser{Profile: p}
				chunk := c.AppendBits(nil, 0, words, n)
				got := make([]uint64, len(words))
				fill(got, ^uint64(0))
				if err := d.Bits(got, n, chunk); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, %d bits, %v: %v", s.name, n, Describe(chunk), err)
				}
				if len(chunk) > 2+(n+7)/8 {
					t.Fatalf("%s, %d bits, %v: %d bytes", s.name, n, Describe(chunk), len(chunk))
				}
				checkDamage(t, chunk, func(src []byte) error { return d.Bits(got, n, src) })
			}
		}
	}
}

func TestStringsConformance(t *testing.T) {
	d := new(Decoder)
	for _, s := range stringShapes() {
		for _, n := range lengths {
			var data []byte
			offsets := []int32{0}
			for _, v := range s.make(source(s.name, n), n) {
				data = append(data, v...)
				offsets = append(offsets, int32(len(data)))
			}
			for _, codec := range stringIDs() {
				chunk, ok := forceStrings(codec, data, offsets)
				if !ok || n == 0 && codec != 0 {
					continue
				}
				got := make([]byte, len(data))
				if err := d.Strings(got, offsets, chunk); err != nil || string(got) != string(data) {
					t.Fatalf("%s, %d strings, %v: %v", s.name, n, Describe(chunk), err)
				}
				checkDamage(t, chunk, func(src []byte) error { return d.Strings(got, offsets, src) })
			}
		}
	}
}

// A part of longer data, whose offsets do not start at 0, makes the same chunk as the part alone.
func TestStringsOffsetsNeedNotStartAtZero(t *testing.T) {
	var c Chooser
	chunk := c.AppendStrings(nil, 0, []byte("xxabcdefyy"), []int32{2, 3, 6, 8})
	got := make([]byte, 6)
	if err := new(Decoder).Strings(got, []int32{0, 1, 4, 6}, chunk); err != nil || string(got) != "abcdef" {
		t.Fatalf("%q, %v", got, err)
	}
}

// checkDamage cuts and changes a chunk; decode must return. A cut chunk must be refused, and one with a byte more too.
func checkDamage(t *testing.T, chunk []byte, decode func([]byte) error) {
	t.Helper()
	parts := 20
	if race.Enabled {
		parts = 4
	}
	step := max(1, len(chunk)/parts)
	for cut := 0; cut < len(chunk); cut += step {
		if decode(chunk[:cut:cut]) == nil {
			t.Fatalf("%v: the first %d of %d bytes decode", Describe(chunk), cut, len(chunk))
		}
	}
	if decode(append(slices.Clone(chunk), 0)) == nil {
		t.Fatalf("%v: decodes with a byte behind it", Describe(chunk))
	}
	bad := slices.Clone(chunk)
	for i := 0; i < len(bad); i += step {
		for _, x := range []byte{1, 0x80, 0xff} {
			bad[i] ^= x
			_ = decode(bad)
			_ = Describe(bad)
			bad[i] ^= x
		}
	}
	for i := range min(12, len(bad)) {
		for bit := range 8 {
			bad[i] ^= 1 << bit
			_ = decode(bad)
			bad[i] ^= 1 << bit
		}
	}
}

// A chooser that remembers still gives back every value when the data turn.
func TestChooserFollowsTheData(t *testing.T) {
	var c Chooser
	d := new(Decoder)
	shapes := intShapes()[:19]
	for i := range 100 {
		s := shapes[(i/7)%len(shapes)]
		n := 1000 + 300*(i%10)
		vals := s.make(source(s.name, i), n)
		chunk := c.AppendInts(nil, 3, vals)
		got := make([]int64, n)
		if err := d.Ints(got, chunk); err != nil || !slices.Equal(got, vals) {
			t.Fatalf("chunk %d, %s, %v: %v", i, s.name, Describe(chunk), err)
		}
		var fresh Chooser
		if alone := fresh.AppendInts(nil, 0, vals); float64(len(chunk)) > 1.5*float64(len(alone))+64 {
			t.Errorf("chunk %d, %s: %v takes %d bytes, %v would take %d", i, s.name, Describe(chunk), len(chunk),
				Describe(alone), len(alone))
		}
	}
}

// Decoding allocates nothing in steady state.
func TestDecodeAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("pools of the zstd library drop what they hold under the race detector")
	}
	d := new(Decoder)
	const n = 5000
	check := func(name string, f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatal(name, err)
		}
		if err := f(); err != nil {
			t.Fatal(name, err)
		}
		if a := testing.AllocsPerRun(5, func() { _ = f() }); a != 0 {
			t.Errorf("%s: %v allocations", name, a)
		}
	}
	for _, s := range intShapes()[:19] {
		vals := s.make(source(s.name, n), n)
		for _, codec := range intIDs() {
			if chunk, ok := forceInts(codec, vals); ok {
				got := make([]int64, n)
				spans := []Span{{5, 6}, {700, 720}}
				check(s.name+Describe(chunk), func() error { return d.Ints(got, chunk) })
				check(s.name+Describe(chunk), func() error { return d.IntsAt(got[:21], n, spans, chunk) })
			}
		}
	}
	for _, s := range doubleShapes() {
		raw := make([]int64, n)
		for i, v := range s.make(source(s.name, n), n) {
			raw[i] = int64(math.Float64bits(v))
		}
		for _, codec := range floatIDs() {
			if chunk, ok := forceFloats(codec, raw, 8); ok {
				got, spans := make([]float64, n), []Span{{5, 6}, {700, 720}}
				check(s.name+Describe(chunk), func() error { return d.Doubles(got, chunk) })
				check(s.name+Describe(chunk), func() error { return d.DoublesAt(got[:21], n, spans, chunk) })
			}
		}
	}
	for _, s := range bitShapes() {
		flags := s.make(source(s.name, n), n)
		words := make([]uint64, (n+63)/64)
		for i, f := range flags {
			if f {
				words[i/64] |= 1 << (i % 64)
			}
		}
		var c Chooser
		chunk := c.AppendBits(nil, 0, words, n)
		check(s.name+Describe(chunk), func() error { return d.Bits(words, n, chunk) })
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
		check(s.name+Describe(chunk), func() error { return d.Strings(got, offsets, chunk) })
	}
}

func forceStrings(codec ID, data []byte, offsets []int32) ([]byte, bool) {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	if codec == 0 {
		return e.appendStrings(nil, new(memory), data, offsets, 0), true
	}
	return e.appendStringsAs(codec, nil, nil, data, offsets, 0)
}

// Scratch is bounded by the destination and the chunk, whatever a chunk claims, and by nesting no deeper than allowed.
func TestScratchIsBounded(t *testing.T) {
	const n = 1000
	huge := binary.AppendUvarint(nil, 1<<40)
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	zeros := make([]byte, 1<<26)
	window := slices.Concat([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88},
		// a frame of unknown size and a window of 128 MiB
		[]byte{0x02, 0x00, 0x10, 0xaa}) // and a block of 128 KiB of one byte, not the last
	bomb := newZstdEncoder(zstd.SpeedDefault).EncodeAll(zeros, nil)
	deep := []byte{byte(IDConstant), 2}
	for range 100 {
		deep = join([]byte{byte(IDDelta), 0}, deep)
	}
	wide := []byte{byte(IDConstant), 2}
	for range maxDepth { // runs of runs: as much scratch at every level as can be
		wide = join([]byte{byte(IDRuns)}, binary.AppendUvarint(nil, n), binary.AppendUvarint(nil, uint64(len(wide))),
			wide, wide)
	}
	for name, src := range map[string][]byte{
		"dictionary":  join([]byte{byte(IDDictionary)}, huge, []byte{2, 1, 0, 1, 0}),
		"runs":        join([]byte{byte(IDRuns)}, huge, []byte{2, 1, 0, 1, 0}),
		"patched":     join([]byte{byte(IDPatched), 8, 0}, huge, []byte{2, 1, 0, 2, 1, 0}),
		"sequences":   join([]byte{byte(IDSequences)}, huge, huge, []byte{2, 1, 0}),
		"nested":      join([]byte{byte(IDDictionary), 3}, huge, []byte{1, 0}),
		"zstd":        join([]byte{byte(IDZstd)}, huge, bomb),
		"zstd bomb":   join([]byte{byte(IDZstd), 100}, bomb),
		"deep":        deep,
		"wide":        wide,
		"window":      join([]byte{byte(IDZstd), 100}, window),
		"float zstd":  join([]byte{byte(IDFloatZstd)}, bomb),
		"plane":       join([]byte{byte(IDFloatSplit), planeZstd}, binary.AppendUvarint(nil, uint64(len(bomb))), bomb),
		"decimal":     join([]byte{byte(IDFloatDecimal), 1, 1}, huge),
		"bits":        join([]byte{byte(IDBitsRuns), 0}, huge, []byte{1, 0}),
		"positions":   join([]byte{byte(IDBitsPositions), 0}, huge, []byte{1, 0}),
		"string dict": join([]byte{byte(IDStringDictionary)}, huge),
		"string zstd": join([]byte{byte(IDStringZstd)}, bomb),
	} {
		d := new(Decoder)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		offsets := make([]int32, n+1)
		for i := range offsets {
			offsets[i] = int32(i)
		}
		for family, err := range map[string]error{
			"ints": d.Ints(make([]int64, n), src), "int32s": d.Int32s(make([]int32, n), src),
			"floats": d.Floats(make([]float32, n), src), "doubles": d.Doubles(make([]float64, n), src),
			"bits": d.Bits(make([]uint64, n), n, src), "strings": d.Strings(make([]byte, n), offsets, src),
		} {
			var r *ReasonError
			if err == nil && name != "wide" || err != nil && !errors.As(err, &r) {
				t.Errorf("%s as %s: %v", name, family, err)
			}
		}
		runtime.ReadMemStats(&after)
		if size := after.TotalAlloc - before.TotalAlloc; size > 8<<20 {
			t.Errorf("%s: %d bytes allocated", name, size)
		}
		if size := 8*len(d.ints.buf) + 4*len(d.floats.buf) + 8*len(d.doubles.buf) + len(d.bytes.buf) +
			4*len(d.int32s.buf); size > 1<<18 {
			t.Errorf("%s: %d bytes of scratch for %d values", name, size, n)
		}
	}
}
