package encoding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
	"github.com/dsistore/dsistore/internal/race"
)

// lengths are the counts that the layouts treat apart: nothing, one, about a lane, about a block, about four, many.
var lengths = func() []int {
	if race.Enabled {
		return []int{0, 1, 65, 257, 1025}
	}
	return []int{0, 1, 2, 3, 63, 64, 65, 127, 255, 256, 257, 511, 512, 1023, 1024, 1025, 5000}
}()

// A shape is a kind of data with a name.
type shape[T any] struct {
	name string
	make func(r *rand.Rand, n int) []T
}

func each[T any](f func(r *rand.Rand, i int) T) func(r *rand.Rand, n int) []T {
	return func(r *rand.Rand, n int) []T {
		s := make([]T, n)
		for i := range s {
			s[i] = f(r, i)
		}
		return s
	}
}

// zipf returns ranks of a Zipf law over k values.
func zipf(r *rand.Rand, k int) func() int {
	z := rand.NewZipf(r, 1.1, 4, uint64(k-1))
	return func() int { return int(z.Uint64()) }
}

func hashID(i int) int64 {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	return int64(x >> 1)
}

// intShapes returns the shapes of ints, those that benchmarks use first.
func intShapes() []shape[int64] {
	shapes := []shape[int64]{
		{"constant", each(func(*rand.Rand, int) int64 { return 1 << 40 })},
		{"lengths", each(func(r *rand.Rand, _ int) int64 { return int64(15 + r.IntN(20)) })},
		{"width17", each(func(r *rand.Rand, _ int) int64 { return 1000 + r.Int64N(1<<17) })},
		{"random63", each(func(r *rand.Rand, _ int) int64 { return r.Int64() })},
		{"timestamps", func(r *rand.Rand, n int) []int64 {
			s, t := make([]int64, n), int64(1_700_000_000_000)
			for i := range s {
				t += r.Int64N(2000)
				s[i] = t
			}
			return s
		}},
		{"inverse", func(r *rand.Rand, n int) []int64 {
			s, t := make([]int64, n), int64(0)
			for i := range s {
				s[i] = t
				if r.IntN(5) == 0 {
					t++
				}
			}
			return s
		}},
		{"sessions", func(r *rand.Rand, n int) []int64 {
			s := make([]int64, 0, n)
			for len(s) < n {
				v := r.Int64()
				for range min(n-len(s), 1+r.IntN(32)) {
					s = append(s, v)
				}
			}
			return s
		}},
		{"zipf-ids", func(r *rand.Rand, n int) []int64 {
			z, s := zipf(r, 20000), make([]int64, n)
			for i := range s {
				s[i] = hashID(z())
			}
			return s
		}},
		{"uniform-ids", each(func(r *rand.Rand, _ int) int64 { return hashID(r.IntN(3000)) })},
		{"repeated-lists", func(r *rand.Rand, n int) []int64 {
			s := make([]int64, 0, n)
			for len(s) < n {
				list := make([]int64, 20)
				for i := range list {
					list[i] = hashID(r.IntN(50000))
				}
				for range 8 {
					s = append(s, list...)
				}
			}
			return s[:n]
		}},
		{"outliers", each(func(r *rand.Rand, _ int) int64 {
			if r.IntN(100) == 0 {
				return r.Int64()
			}
			return r.Int64N(500)
		})},
		{"zipf-counts", func(r *rand.Rand, n int) []int64 {
			z, s := zipf(r, 100000), make([]int64, n)
			for i := range s {
				s[i] = int64(z())
			}
			return s
		}},
		{"skewed-codes", func(r *rand.Rand, n int) []int64 {
			z, s := zipf(r, 10000), make([]int64, n)
			for i := range s {
				s[i] = int64(z())
			}
			return s
		}},
		{"extremes", each(func(r *rand.Rand, _ int) int64 {
			return []int64{math.MinInt64, math.MaxInt64, 0, -1, 1}[r.IntN(5)]
		})},
		{"around-2^63", each(func(r *rand.Rand, _ int) int64 { return int64(1<<63 - 500 + r.Uint64N(1000)) })},
		{"negatives", each(func(r *rand.Rand, _ int) int64 { return -r.Int64N(70000) })},
		{"alternating", each(func(_ *rand.Rand, i int) int64 { return int64(i % 2) })},
		{"falling", each(func(_ *rand.Rand, i int) int64 { return int64(-3 * i) })},
		{"late-change", func(r *rand.Rand, n int) []int64 {
			s := make([]int64, n)
			for i := range s {
				if i > n*9/10 {
					s[i] = r.Int64()
				}
			}
			return s
		}},
	}
	step := 1
	if race.Enabled {
		step = 16
	}
	for w := 0; w <= 64; w += step {
		shapes = append(shapes, shape[int64]{fmt.Sprintf("bits%d", w), each(func(r *rand.Rand, _ int) int64 {
			return int64(r.Uint64()&bitpack.Mask(w)) - 7
		})})
	}
	return shapes
}

func doubleShapes() []shape[float64] {
	return []shape[float64]{
		{"constant", each(func(*rand.Rand, int) float64 { return 2.5 })},
		{"normal", each(func(r *rand.Rand, _ int) float64 { return r.NormFloat64() })},
		{"prices", each(func(r *rand.Rand, _ int) float64 { return float64(r.IntN(100000)) / 100 })},
		{"counts", each(func(r *rand.Rand, _ int) float64 { return float64(r.IntN(1000)) })},
		{"few", each(func(r *rand.Rand, _ int) float64 { return math.Sqrt(float64(r.IntN(300))) })},
		{"sessions", func(r *rand.Rand, n int) []float64 {
			s := make([]float64, 0, n)
			for len(s) < n {
				v := r.NormFloat64()
				for range min(n-len(s), 1+r.IntN(32)) {
					s = append(s, v)
				}
			}
			return s
		}},
		{"decimals-and-noise", each(func(r *rand.Rand, i int) float64 {
			if i%50 == 0 {
				return r.NormFloat64()
			}
			return float64(r.IntN(10000)) / 10
		})},
		{"exceptions-first", each(func(r *rand.Rand, i int) float64 {
			if i < 5 {
				return math.Pi
			}
			return float64(r.IntN(100))
		})},
		{"any-bits", each(func(r *rand.Rand, _ int) float64 { return math.Float64frombits(r.Uint64()) })},
		{"specials", each(func(r *rand.Rand, _ int) float64 {
			return math.Float64frombits([]uint64{0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001,
				0x7ff0000000000001, 0xffffffffffffffff, 1, 0x3ff0000000000000}[r.IntN(9)])
		})},
		{"zeros-of-both-signs", each(func(r *rand.Rand, i int) float64 {
			return math.Copysign(0,
				float64(r.IntN(2))-0.5)
		})},
		{"powers", each(func(r *rand.Rand, _ int) float64 { return math.Pow(10, float64(r.IntN(600)-300)) })},
	}
}

// floatShapes are those of doubles, in 32 bits, and some whose NaNs have payloads of their own.
func floatShapes() []shape[float32] {
	var shapes []shape[float32]
	for _, s := range doubleShapes() {
		shapes = append(shapes, shape[float32]{s.name, func(r *rand.Rand, n int) []float32 {
			out := make([]float32, n)
			for i, v := range s.make(r, n) {
				out[i] = float32(v)
			}
			return out
		}})
	}
	return append(shapes,
		shape[float32]{"any-bits-32", each(func(r *rand.Rand,
			_ int) float32 {
			return math.Float32frombits(r.Uint32())
		})},
		shape[float32]{"specials-32", each(func(r *rand.Rand, _ int) float32 {
			return math.Float32frombits([]uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00001,
				0xffffffff, 1}[r.IntN(8)])
		})})
}

func bitShapes() []shape[bool] {
	return []shape[bool]{
		{"none", each(func(*rand.Rand, int) bool { return false })},
		{"all", each(func(*rand.Rand, int) bool { return true })},
		{"coverage-45", each(func(r *rand.Rand, _ int) bool { return r.IntN(100) < 45 })},
		{"sessions", func(r *rand.Rand, n int) []bool {
			s := make([]bool, 0, n)
			for len(s) < n {
				v := r.IntN(2) == 0
				for range min(n-len(s), 1+r.IntN(200)) {
					s = append(s, v)
				}
			}
			return s
		}},
		{"rare", each(func(r *rand.Rand, _ int) bool { return r.IntN(300) == 0 })},
		{"common", each(func(r *rand.Rand, _ int) bool { return r.IntN(300) != 0 })},
		{"alternating", each(func(_ *rand.Rand, i int) bool { return i%2 == 0 })},
		{"last", func(_ *rand.Rand, n int) []bool {
			s := make([]bool, n)
			if n > 0 {
				s[n-1] = true
			}
			return s
		}},
	}
}

func stringShapes() []shape[string] {
	words := func(r *rand.Rand, k int) string { return fmt.Sprintf("word-%d", r.IntN(k)) }
	return []shape[string]{
		{"empty", each(func(*rand.Rand, int) string { return "" })},
		{"countries", each(func(r *rand.Rand, _ int) string {
			return []string{"US", "CA", "DE", "FRA",
				""}[r.IntN(5)]
		})},
		{"words", each(func(r *rand.Rand, _ int) string { return words(r, 500) })},
		{"text", each(func(r *rand.Rand, _ int) string {
			return words(r, 50) + " " + words(r, 50) + " " + words(r,
				5000)
		})},
		{"noise", each(func(r *rand.Rand, _ int) string {
			b := make([]byte, r.IntN(20))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return string(b)
		})},
		{"one-long", func(r *rand.Rand, n int) []string {
			s := make([]string, n)
			if n > 0 {
				s[n/2] = string(slices.Repeat([]byte("abcdefgh"), 10000))
			}
			return s
		}},
	}
}
