package compaction

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/catalog"
)

// keysOf returns n keys of a type.
func keysOf(t testing.TB, of vector.Type, n int, rng *rand.Rand) *Keys {
	t.Helper()
	k, err := NewKeys(catalog.Feature{Name: "user", Type: of})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		switch {
		case k.texts == nil:
			v := rng.Uint64() >> rng.IntN(30)
			if of.Elem == vector.Int64 && rng.IntN(4) == 0 {
				v = -v
			}
			k.numbers[int64(v)] = struct{}{}
		default:
			k.texts[fmt.Sprintf("%0*d", 4+i%9, rng.Uint64()>>40)] = struct{}{}
		}
	}
	return k
}

var keyTypes = map[string]vector.Type{
	"int64":  {Kind: vector.Dense, Elem: vector.Int64},
	"uint64": {Kind: vector.Dense, Elem: vector.Uint64},
	"string": {Kind: vector.String},
}

// forms returns what a key looks like as bytes; nil: it is not searched for.
func forms(k *Keys) (out [][]byte) {
	for t := range k.texts {
		if len(t) >= 8 {
			out = append(out, []byte(t))
		}
	}
	for v := range k.numbers {
		if -1<<40 < v && v < 1<<40 {
			continue
		}
		text := strconv.FormatInt(v, 10)
		if k.feature.Type.Elem == vector.Uint64 {
			text = strconv.FormatUint(uint64(v), 10)
		}
		out = append(out, []byte(text), binary.LittleEndian.AppendUint64(nil, uint64(v)),
			binary.BigEndian.AppendUint64(nil, uint64(v)))
	}
	return out
}

// TestByteKeys: the first key in bytes is found where a search for each by itself finds it, among digits, other bytes
// and parts of keys.
func TestByteKeys(t *testing.T) {
	for name, of := range keyTypes {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				rng := rand.New(rand.NewPCG(seed, 1))
				k := keysOf(t, of, 1+rng.IntN(300), rng)
				want := forms(k)
				b := newByteKeys(k)
				for range 100 {
					var p []byte
					for range 1 + rng.IntN(12) {
						switch {
						case len(want) > 0 && rng.IntN(12) == 0:
							p = append(p, want[rng.IntN(len(want))]...)
						case len(want) > 0 && rng.IntN(2) == 0:
							f := want[rng.IntN(len(want))]
							p = append(p, f[rng.IntN(2):len(f)-rng.IntN(2)]...)
						case rng.IntN(2) == 0:
							p = strconv.AppendUint(p, rng.Uint64(), 10)
						default:
							p = append(p, byte(rng.Uint32()), '-', '0')
						}
					}
					first := -1
					for _, f := range want {
						if at := bytes.Index(p, f); at >= 0 && (first < 0 || at < first) {
							first = at
						}
					}
					if got := b.find(p); got != first {
						t.Fatalf("seed %d: found at %d, want %d, in %q", seed, got, first, p)
					}
				}
			}
		})
	}
}

// TestKeysMemory: keys, and what finds them in bytes, take no more than the help of dsi erase --memory says.
func TestKeysMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const n = 200_000
	for name, most := range map[string]uint64{"int64": 60, "string": 100} {
		t.Run(name, func(t *testing.T) {
			heap := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			k, err := NewKeys(catalog.Feature{Name: "user", Type: keyTypes[name]})
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if k.texts == nil {
					k.numbers[1<<50+int64(i)*7919] = struct{}{}
				} else {
					k.texts[fmt.Sprintf("user-%011d", i)] = struct{}{} // 16 bytes
				}
			}
			b := newByteKeys(k)
			each := (heap() - before) / n
			t.Logf("%d bytes a key", each)
			if each > most {
				t.Errorf("%d bytes a key: want at most %d", each, most)
			}
			runtime.KeepAlive(b)
		})
	}
}

func BenchmarkByteKeys(b *testing.B) {
	for _, n := range []int{100, 1_000_000} {
		for name, of := range keyTypes {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				keys := newByteKeys(keysOf(b, of, n, rng))
				p := make([]byte, 1<<20)
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				b.SetBytes(int64(len(p)))
				for b.Loop() {
					keys.find(p)
				}
			})
		}
	}
}

// TestNamedKeys: keys in predicates, whole and as parts of other words and numbers.
func TestNamedKeys(t *testing.T) {
	texts, numbers := []string{"customer", "O'Neil-1234", "two words", "O'Neil"}, []int64{1700000000000, -1700000000001}
	for _, c := range []struct {
		predicate string
		want      bool
	}{
		{"who = 'customer'", true},
		{"who = customer", true},
		{"customer_id = 5", false},
		{"a_customer = 5 OR who = 'customers'", false},
		{"who = 'übercustomer'", false},
		{"customers = 1 AND who IN ('a','customer')", true},
		{"who = 'O''Neil-1234'", true},
		{"who = 'O''Neil-12345'", false},
		{"user = 'O''Neil'", true},
		{"user = 'O''Neill'", false},
		{"who = 'two words'", true},
		{"ts = 1700000000000", true},
		{"ts IN (5,1700000000000)", true},
		{"ts >= 1700000000000000", false},
		{"ts >= 11700000000000", false},
		{"ts = -1700000000001", true},
		{"ts = 1700000000001", false},
		{"n-1700000000000 > 3", true},
		{"", false},
	} {
		got := false
		for _, of := range []string{"string", "int64"} {
			k, err := NewKeys(catalog.Feature{Name: "user", Type: keyTypes[of]})
			if err != nil {
				t.Fatal(err)
			}
			if of == "string" {
				for _, v := range texts {
					k.texts[v] = struct{}{}
				}
			} else {
				for _, v := range numbers {
					k.numbers[v] = struct{}{}
				}
			}
			got = got || (&eraser{keys: k}).named(c.predicate)
		}
		if got != c.want {
			t.Errorf("%s: %v", c.predicate, got)
		}
	}
}
