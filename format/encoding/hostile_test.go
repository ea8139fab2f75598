package encoding

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
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
	const chunks = 150
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
			if err := d.Floats(gotFloats, chunk); err != nil || !slices.EqualFunc(gotFloats, floats, func(a, b float32) bool {
				return math.Float32bits(a) == math.Float32bits(b)
			}) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}

			doubles := ds[r.IntN(len(ds))].make(r, n)
			chunk = remembers.AppendDoubles(nil, 2, doubles)
			size[2] += len(chunk)
			best[2] += len(forgets.AppendDoubles(nil, 2, doubles))
			gotDoubles := make([]float64, n)
			if err := d.Doubles(gotDoubles, chunk); err != nil || !slices.EqualFunc(gotDoubles, doubles, func(a, b float64) bool {
				return math.Float64bits(a) == math.Float64bits(b)
			}) {
				t.Fatalf("%v: %v", Describe(chunk), err)
			}
		}
		for i, family := range []string{"ints", "floats", "doubles"} {
			if float64(size[i]) > 1.05*float64(best[i]) {
				t.Errorf("profile %d, %s: %d bytes, %d without memory", p, family, size[i], best[i])
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
		"itself":      {200, d.Ints(make([]int64, 4), unknown)},
		"first child": {200, d.Ints(make([]int64, 4), append(appendNested([]byte{byte(IDDictionary), 1}, unknown), constant...))},
		"last child":  {200, d.Ints(make([]int64, 4), append(appendNested([]byte{byte(IDDictionary), 1}, constant), unknown...))},
		"int32s":      {200, d.Int32s(make([]int32, 4), append([]byte{byte(IDDelta), 0}, unknown...))},
		"floats":      {200, d.Floats(make([]float32, 4), append(appendNested([]byte{byte(IDFloatDictionary), 1}, unknown), constant...))},
		"bits":        {200, d.Bits(make([]uint64, 1), 4, append([]byte{byte(IDBitsRuns), 1, 2}, unknown...))},
		"strings":     {200, d.Strings(make([]byte, 4), []int32{0, 2, 4}, append(appendNested([]byte{byte(IDStringDictionary), 1}, []byte{byte(IDConstant), 0}), unknown...))},
		"none":        {0, d.Ints(make([]int64, 4), make([]byte, 4))},
		"other":       {0, d.Ints(make([]int64, 4), []byte{byte(IDFloatPlain), 0, 0, 0, 0})},
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
