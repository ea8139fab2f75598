package format_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// Stripes that turn to other shapes and other values at once come back, whatever the type and the profile, from one
// decoder into one column; and their bounds cover their values.
func TestStripesTurn(t *testing.T) {
	types := []vector.Type{{Kind: vector.Bytes}, {Kind: vector.String}, {Kind: vector.Inverse},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Weighted,
			Elem: vector.Uint64, Score: vector.Float64}}
	for _, e := range vectortest.Elems {
		types = append(types, dense(e), sparse(e), vector.Type{Kind: vector.Embedding, Elem: e, Dim: 7})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	d := format.NewStripeDecoder(format.Limits{})
	var got vector.Column
	for _, profile := range []encoding.Profile{encoding.Balanced, encoding.Speed, encoding.Size} {
		for _, ty := range types {
			var stripes []*vector.Column
			for range 8 {
				stripes = append(stripes, makeColumn(rng, ty, turnedShape(rng, ty)))
			}
			file, _ := writeFile(t, ty, format.WriterOptions{Profile: profile}, stripes...)
			m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if err := use(d, file, m); err != nil {
				t.Fatal(err)
			}
			for i, want := range stripes {
				if err := d.DecodeStripe(&got, m, i, stripeBytes(file, m, i), nil); err != nil {
					t.Fatalf("%v, stripe %d: %v", ty, i, err)
				}
				if s := diff(&got, want); s != "" {
					t.Fatalf("%v, stripe %d: %s", ty, i, s)
				}
				if at := outOfBounds(&got, &m.Stripes[i].Stats); at >= 0 {
					t.Fatalf("%v, stripe %d: value %d is out of bounds", ty, i, at)
				}
			}
		}
	}
}

func turnedShape(rng *rand.Rand, ty vector.Type) shape {
	one := func(of ...int) int { return of[rng.IntN(len(of))] }
	s := shape{
		rows:      one(0, 1, 2, 63, 64, 65, 255, 256, 257, 1023, 1025, 2000),
		empty:     one(0, 10, 100),
		inverse:   rng.IntN(7),
		partial:   ty.IsList() && rng.IntN(2) == 0,
		maxLength: one(1, 3, 12),
		extremes:  rng.IntN(2) == 0,
		constant:  rng.IntN(6) == 0,
	}
	if ty.Kind != vector.Inverse {
		s.null = one(0, 0, 1, 50, 99, 100)
	}
	styles := []string{"", "zipf"}
	switch ty.Elem {
	case vector.Int64, vector.Uint64, vector.Float32, vector.Float64:
		styles = []string{"", "time", "zipf", "hashed", "decimal", "gauss"}
	}
	if ty.Kind == vector.String {
		styles = []string{"", "word"}
	}
	s.style = styles[rng.IntN(len(styles))]
	return s
}

// outOfBounds returns the first value of c outside the bounds of its stripe, or -1.
func outOfBounds(c *vector.Column, s *format.Stats) int {
	if !s.HasMinMax {
		return -1
	}
	for slot := range c.Slots {
		if c.Present != nil && !c.Present.Get(slot) {
			continue
		}
		lo, hi := c.SlotRange(slot)
		for i := lo; i < hi; i++ {
			out := false
			switch {
			case c.Type.Elem == vector.Uint64:
				out = uint64(c.Ints[i]) < uint64(s.MinInt) || uint64(c.Ints[i]) > uint64(s.MaxInt)
			case c.Type.Elem.IsInteger():
				out = c.Ints[i] < s.MinInt || c.Ints[i] > s.MaxInt
			case c.Type.Elem == vector.Float32:
				out = float64(c.Floats[i]) < s.MinFloat || float64(c.Floats[i]) > s.MaxFloat
			default:
				out = c.Doubles[i] < s.MinFloat || c.Doubles[i] > s.MaxFloat
			}
			if out {
				return i
			}
		}
	}
	return -1
}

// Long strings, many distinct strings, and dictionaries of more than 2^16 entries.
func TestLargeDictionaries(t *testing.T) {
	text := vector.NewColumn(vector.Type{Kind: vector.String})
	for i := range 3 * 4 { // of one MiB, each followed by an empty one
		text.Data = append(text.Data, strings.Repeat(string(rune('a'+i%3)), 1<<20)...)
		text.AddSlot()
		text.AddSlot()
	}
	words := vector.NewColumn(text.Type)
	for i := range 200_000 {
		words.Data = append(words.Data, fmt.Sprint(i%70_001)...)
		words.AddSlot()
	}
	distinct := vector.NewColumn(text.Type)
	for i := range 70_000 {
		distinct.Data = append(distinct.Data, fmt.Sprint(i)...)
		distinct.AddSlot()
	}
	ids := vector.NewColumn(dense(vector.Uint64))
	for i := range 400_000 {
		ids.Ints = append(ids.Ints, int64(uint64(i*7919%70_000)*0x9e3779b97f4a7c15)) // above and below 2^63
		ids.AddSlot()
	}
	for _, c := range []*vector.Column{text, words, distinct, ids} {
		file, m := writeFile(t, c.Type, format.WriterOptions{}, c)
		var got vector.Column
		if err := format.NewStripeDecoder(format.Limits{}).DecodeStripe(&got, m, 0, stripeBytes(file, m, 0),
			nil); err != nil {
			t.Fatal(err)
		}
		if s := diff(&got, c); s != "" {
			t.Fatal(s)
		}
	}
}
