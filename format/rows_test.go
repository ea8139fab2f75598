package format_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// someRows returns rows of n that ascend: none, one, few, many or all.
func someRows(rng *rand.Rand, n int) []int32 {
	rows := []int32{}
	share := []int{0, 1, 3, 50, 100}[rng.IntN(5)]
	for r := range n {
		if rng.IntN(100) < share {
			rows = append(rows, int32(r))
		}
	}
	if share == 1 && n > 0 && rng.IntN(2) == 0 {
		rows = append(rows[:0], int32(rng.IntN(n)))
	}
	return rows
}

// diffRows holds got against some rows of want.
func diffRows(got, want *vector.Column, rows []int32) string {
	if err := got.Validate(); err != nil {
		return "not valid: " + err.Error()
	}
	if got.Type != want.Type || got.Rows != len(rows) {
		return "other rows or type"
	}
	for j, r := range rows {
		if !vector.RowsEqual(got, j, want, int(r)) {
			return "a row differs"
		}
	}
	return ""
}

func TestDecodeRows(t *testing.T) {
	types := []vector.Type{{Kind: vector.Bytes}, {Kind: vector.String},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Weighted,
			Elem: vector.Uint64, Score: vector.Float64}}
	for _, e := range vectortest.Elems {
		types = append(types, dense(e), sparse(e), vector.Type{Kind: vector.Embedding, Elem: e, Dim: 7})
	}
	rng := rand.New(rand.NewPCG(13, 14))
	d := format.NewStripeDecoder(format.Limits{})
	var got, whole vector.Column
	for _, profile := range []encoding.Profile{encoding.Balanced, encoding.Speed, encoding.Size} {
		for _, ty := range types {
			var stripes []*vector.Column
			for range 8 {
				stripes = append(stripes, makeColumn(rng, ty, turnedShape(rng, ty)))
			}
			file, m := writeFile(t, ty, format.WriterOptions{Profile: profile}, stripes...)
			if err := use(d, file, m); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				for i, want := range stripes {
					rows := someRows(rng, want.Rows)
					if err := d.DecodeRows(&got, m, i, stripeBytes(file, m, i), rows, nil); err != nil {
						t.Fatalf("%v, stripe %d, rows %v: %v", ty, i, rows, err)
					}
					if s := diffRows(&got, want, rows); s != "" {
						t.Fatalf("%v, stripe %d, rows %v: %s", ty, i, rows, s)
					}
					if got.Slots > len(rows) || got.Lengths != nil {
						t.Fatalf("%v, stripe %d: %d slots for %d rows", ty, i, got.Slots, len(rows))
					}
					// Whole stripes between go through the same memory.
					if err := d.DecodeStripe(&whole, m, i, stripeBytes(file, m, i), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// Rows of features of a group have the group's slots.
func TestDecodeRowsOfGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	inverseType := vector.Type{Kind: vector.Inverse}
	for range 200 {
		inverse := makeColumn(rng, inverseType, turnedShape(rng, inverseType))
		values := makeColumn(rng, sparse(vector.Int64), shape{rows: inverse.Slots, null: 30, maxLength: 5})
		values.Rows, values.Inverse, values.Monotone = inverse.Rows, inverse.Inverse, inverse.Monotone
		groupFile, group := writeFile(t, inverseType, format.WriterOptions{Feature: 7}, inverse)
		file, m := writeFile(t, values.Type, format.WriterOptions{Group: 7}, values)
		d := format.NewStripeDecoder(format.Limits{})
		if err := use(d, file, m); err != nil {
			t.Fatal(err)
		}
		var x format.Selection
		var got vector.Column
		rows := someRows(rng, inverse.Rows)
		if err := d.SelectRows(&x, group, 0, stripeBytes(groupFile, group, 0), rows); err != nil {
			t.Fatal(err)
		}
		if err := d.DecodeRows(&got, m, 0, stripeBytes(file, m, 0), rows, &x); err != nil {
			t.Fatal(err)
		}
		if s := diffRows(&got, values, rows); s != "" {
			t.Fatal(s)
		}
		if err := d.DecodeRows(&got, m, 0, stripeBytes(file, m, 0), rows, nil); err == nil || errors.Is(err,
			format.ErrCorrupt) {
			t.Fatalf("without the group: %v", err)
		}
		if err := d.DecodeRows(&got, m, 0, stripeBytes(file, m, 0), append(rows, int32(inverse.Rows)-1),
			&x); err == nil {
			t.Fatal("another number of rows than the group's is taken")
		}
	}
}

func TestDecodeRowsRefuses(t *testing.T) {
	file, m := smallFile(t)
	d := format.NewStripeDecoder(format.Limits{})
	if err := use(d, file, m); err != nil {
		t.Fatal(err)
	}
	var got vector.Column
	for _, rows := range [][]int32{{40}, {-1}, {3, 3}, {3, 2}} {
		if err := d.DecodeRows(&got, m, 0, stripeBytes(file, m, 0), rows, nil); err == nil || errors.Is(err,
			format.ErrCorrupt) {
			t.Errorf("rows %v of 40: %v", rows, err)
		}
	}
	// Every byte of a stripe is under a checksum.
	for i := range m.Stripes {
		src := slices.Clone(stripeBytes(file, m, i))
		for at := range src {
			src[at] ^= 0x10
			if err := d.DecodeRows(&got, m, i, src, []int32{1, 5}, nil); !errors.Is(err, format.ErrCorrupt) {
				t.Fatalf("stripe %d, byte %d changed: %v", i, at, err)
			}
			src[at] ^= 0x10
		}
	}
}

// FuzzDecodeRows decodes streams whose checksums were made right: what decodes whole decodes in part, to the same rows.
func FuzzDecodeRows(f *testing.F) {
	for _, file := range goldenFiles(f) {
		m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{})
		if err == nil {
			f.Add(format.AppendMeta(nil, m), file[4:m.End()], uint64(1))
		}
	}
	d := format.NewStripeDecoder(fuzzLimits)
	whole, got := new(vector.Column), new(vector.Column)
	f.Fuzz(func(t *testing.T, meta, body []byte, seed uint64) {
		m, err := format.DecodeMeta(meta, fuzzLimits)
		if err != nil || m.End() > 1<<16 || m.Type.Kind == vector.Inverse {
			return
		}
		file := append(make([]byte, 4, m.End()), body...)
		file = append(file, make([]byte, m.End())...)[:m.End()]
		if at, length := m.Dictionary.Range(); length > 0 {
			seal(m, -1, 0, file[at:at+length])
			if err := use(d, file, m); err != nil {
				checkTyped(t, err)
				return
			}
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range m.Stripes {
			src := stripeBytes(file, m, i)
			sealStripe(m, i, src)
			rows := someRows(rng, int(m.Stripes[i].Rows))
			if m.Group != 0 {
				return
			}
			wholeErr := d.DecodeStripe(whole, m, i, src, nil)
			err := d.DecodeRows(got, m, i, src, rows, nil)
			checkTyped(t, err)
			if err := got.Validate(); err != nil {
				t.Fatal(err)
			}
			if wholeErr == nil {
				if err != nil {
					t.Fatalf("rows %v: %v", rows, err)
				}
				if s := diffRows(got, whole, rows); s != "" {
					t.Fatalf("rows %v: %s", rows, s)
				}
			}
		}
	})
}
