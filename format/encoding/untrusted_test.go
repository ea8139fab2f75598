package encoding

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
)

// Ids may come from anyone, and may have been made to collide: the writer's table stays flat for all of these.
func TestTableSpreads(t *testing.T) {
	inverse := uint64(1) // of the golden ratio's factor: i times it is i under a hash by that factor
	for range 6 {
		inverse *= 2 - 0x9e3779b97f4a7c15*inverse
	}
	const n = 1 << 15
	for name, key := range map[string]func(i uint64) uint64{
		"fibonacci": func(i uint64) uint64 { return i * inverse },
		"small":     func(i uint64) uint64 { return i },
		"high":      func(i uint64) uint64 { return i << 48 },
		"middle":    func(i uint64) uint64 { return i << 24 },
		"negative":  func(i uint64) uint64 { return -i },
		"doubles":   func(i uint64) uint64 { return math.Float64bits(float64(i)) },
		"hashed":    func(i uint64) uint64 { return uint64(hashID(int(i))) },
	} {
		vals, codes := make([]int64, n), make([]int64, n)
		for i := range vals {
			vals[i] = int64(key(uint64(i)))
		}
		var table table
		if !table.add(codes, vals, n) || len(table.keys) != n {
			t.Fatalf("%s: %d keys", name, len(table.keys))
		}
		steps := 0
		for _, k := range table.keys {
			home := int(hash(k) >> table.shift)
			steps += (table.find(k) - home) & (len(table.slots) - 1)
		}
		if steps > 16*n {
			t.Errorf("%s: %d steps to find %d keys", name, steps, n)
		}
	}
}

// A Chooser whose stream turns to another kind of data, again and again, gives every value back and takes little more
// than one without a memory.
func TestChooserTurns(t *testing.T) {
	chunks := 150
	if race.Enabled {
		chunks = 10 // too few to compare sizes
	}
	d := new(Decoder)
	for _, p := range profiles {
		r := rand.New(rand.NewPCG(seed, uint64(p)))
		remembers := Chooser{Profile: p}
		var size, best [3]int
		for range chunks {
			n := 257 + r.IntN(3000)
			is, fs, ds := intShapes(), floatShapes(), doubleShapes()

			ints := is[r.IntN(len(is))].make(r, n)
			forgets := Chooser{Profile: p}
			chunk := remembers.AppendInts(nil, 0, ints)
			size[0] += len(chunk)
			best[0] += len(forgets.AppendInts(nil, 0, ints))
			gotInts := make([]int64, n)
			if err := d.Ints(gotInts, chunk); err != nil || !slices.Equal(gotInts, ints) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}

			floats := fs[r.IntN(len(fs))].make(r, n)
			chunk = remembers.AppendFloats(nil, 1, floats)
			size[1] += len(chunk)
			best[1] += len(forgets.AppendFloats(nil, 1, floats))
			gotFloats := make([]float32, n)
			if err := d.Floats(gotFloats, chunk); err != nil || !slices.EqualFunc(gotFloats, floats, func(a,
				b float32) bool {
				return math.Float32bits(a) == math.Float32bits(b)
			}) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}

			doubles := ds[r.IntN(len(ds))].make(r, n)
			chunk = remembers.AppendDoubles(nil, 2, doubles)
			size[2] += len(chunk)
			best[2] += len(forgets.AppendDoubles(nil, 2, doubles))
			gotDoubles := make([]float64, n)
			if err := d.Doubles(gotDoubles, chunk); err != nil || !slices.EqualFunc(gotDoubles, doubles, func(a,
				b float64) bool {
				return math.Float64bits(a) == math.Float64bits(b)
			}) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}
		}
		for i, family := range []string{"ints", "floats", "doubles"} {
			if !race.Enabled && float64(size[i]) > 1.08*float64(best[i]) {
				t.Errorf("profile %v, %s: %d bytes, %d without memory", p, family, size[i], best[i])
			}
		}
	}
}

// A codec that a later version gave out is told from damage, also in a chunk within a chunk.
func TestUnknownCodec(t *testing.T) {
	constant := []byte{byte(IDConstant), 2}
	unknown := []byte{200, 1, 2, 3}
	d := new(Decoder)
	for name, c := range map[string]struct {
		want ID
		err  error
	}{
		"itself": {200, d.Ints(make([]int64, 4), unknown)},
		"first child": {200, d.Ints(make([]int64, 4), append(appendNested([]byte{byte(IDDictionary), 1}, unknown),
			constant...))},
		"last child": {200, d.Ints(make([]int64, 4), append(appendNested([]byte{byte(IDDictionary), 1}, constant),
			unknown...))},
		"int32s": {200, d.Int32s(make([]int32, 4), append([]byte{byte(IDDelta), 0}, unknown...))},
		"floats": {200, d.Floats(make([]float32, 4), append(appendNested([]byte{byte(IDFloatDictionary), 1},
			unknown), constant...))},
		"bits": {200, d.Bits(make([]uint64, 1), 4, append([]byte{byte(IDBitsRuns), 1, 2}, unknown...))},
		"strings": {200, d.Strings(make([]byte, 4), []int32{0, 2, 4},
			append(appendNested([]byte{byte(IDStringDictionary), 1}, []byte{byte(IDConstant), 0}), unknown...))},
		"none":  {0, d.Ints(make([]int64, 4), make([]byte, 4))},
		"other": {0, d.Ints(make([]int64, 4), []byte{byte(IDFloatPlain), 0, 0, 0, 0})},
	} {
		var r *ReasonError
		if !errors.As(c.err, &r) || r.Unknown != c.want {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// Scratch of the most wasteful chunk there is, runs of runs, is a small multiple of what it decodes to.
func TestScratchOfNestedRuns(t *testing.T) {
	const n = 1 << 20
	one := []byte{byte(IDConstant), 2}
	chunk := one
	for range maxDepth {
		outer := binary.AppendUvarint([]byte{byte(IDRuns)}, n)
		chunk = append(appendNested(outer, chunk), one...)
	}
	dst := make([]int64, n)
	d := new(Decoder)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := d.Ints(dst, chunk); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16*8*n {
		t.Errorf("%d bytes allocated to decode %d from %d", got, 8*n, len(chunk))
	}
}

// A codec that says one frame takes one frame: no other, none, and nothing to be skipped.
func TestOneFrame(t *testing.T) {
	want := slices.Repeat([]byte("dsistore"), 200)
	frame := new(encoder).compress(nil, want)
	empty := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}
	skipped := []byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2}
	checked := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x24, 1, 9, 0, 0, 'd', 0, 0, 0, 0} // its checksum is wrong
	d := new(Decoder)
	decode := func(n int, frame []byte) ([]byte, error) {
		dst := make([]byte, n)
		return dst, d.Strings(dst, []int32{0, int32(n)}, append([]byte{byte(IDStringZstd)}, frame...))
	}
	if got, err := decode(len(want), frame); err != nil || !slices.Equal(got, want) {
		t.Fatal(err)
	}
	if _, err := decode(0, empty); err != nil {
		t.Error(err)
	}
	for name, frame := range map[string][]byte{
		"frame and empty frame":   slices.Concat(frame, empty),
		"empty frame and frame":   slices.Concat(empty, frame),
		"frame and skipped frame": slices.Concat(frame, skipped),
		"skipped frame and frame": slices.Concat(skipped, frame),
		"frame and a byte":        slices.Concat(frame, []byte{0}),
		"frame less a byte":       frame[:len(frame)-1],
	} {
		if _, err := decode(len(want), frame); err != errZstd {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, frame := range map[string][]byte{"no frame": nil, "skipped frame": skipped} {
		if _, err := decode(0, frame); err != errZstd {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decode(1, checked); err != errZstd {
		t.Errorf("checksum: %v", err)
	}
}

// A frame that unfolds to gigabytes costs no more memory than the library's blocks.
func TestZstdBomb(t *testing.T) {
	for _, window := range []byte{0, 0xa0, 0xff} {
		bomb := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}
		for range 50_000 { // each one byte, 128 Ki times
			bomb = append(bomb, 0x02, 0x00, 0x10, 'x')
		}
		bomb = append(bomb, 1, 0, 0)
		d := new(Decoder)
		dst := make([]byte, 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Strings(dst, []int32{0, 1000}, append([]byte{byte(IDStringZstd)}, bomb...))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("window %#x: decoded", window)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
			t.Errorf("window %#x: %d bytes allocated", window, got)
		}
	}
}

// Strings turn from noise to words of the same length: the memory of plain does not hold them back.
func TestStringsTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 2))
	var c Chooser
	for i := range 4 {
		var data []byte
		offsets := []int32{0}
		for range 1000 {
			if i < 2 {
				data = binary.LittleEndian.AppendUint64(data, r.Uint64())
			} else {
				data = append(data, []string{"sports..", "politics", "business"}[r.IntN(3)]...)
			}
			offsets = append(offsets, int32(len(data)))
		}
		if n := len(c.AppendStrings(nil, 0, data, offsets)); i >= 2 && n > len(data)/8 {
			t.Errorf("%d bytes of words take %d", len(data), n)
		}
	}
}
