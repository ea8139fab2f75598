package format_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// Every column of every type comes back as it went in: rows, slots, inverse, slices.
func TestRoundTrip(t *testing.T) {
	decoder := format.NewStripeDecoder(format.Limits{})
	dst := new(vector.Column) // shared by all: what one stripe leaves must not show in the next
	rapid.Check(t, func(t *rapid.T) {
		ty := vectortest.DrawType(t)
		var stripes []*vector.Column
		for range rapid.IntRange(0, 3).Draw(t, "stripes") {
			stripes = append(stripes, drawColumn(t, ty))
		}
		opts := format.WriterOptions{Feature: rapid.Uint64().Draw(t, "feature"), Salt: rapid.Uint32().Draw(t, "salt"),
			Name: rapid.String().Draw(t, "name")}
		file, written := writeFile(t, ty, opts, stripes...)
		m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m, written) && len(stripes) > 0 {
			t.Fatalf("directory read:\n%+v\nwritten:\n%+v", m, written)
		}
		if err := use(decoder, file, m); err != nil {
			t.Fatal(err)
		}
		for i, want := range stripes {
			if err := format.VerifyStripe(m, i, stripeBytes(file, m, i)); err != nil {
				t.Fatal(err)
			}
			if err := decoder.DecodeStripe(dst, m, i, stripeBytes(file, m, i), nil); err != nil {
				t.Fatal(err)
			}
			checkSame(t, dst, want)
			checkStats(t, ty, &m.Stripes[i].Stats, want)
		}
	})
}

func checkSame(t *rapid.T, got, want *vector.Column) {
	if s := diff(got, want); s != "" {
		t.Fatal(s)
	}
	if want.Rows == 0 {
		return
	}
	if got.Slots != want.Slots || (got.Lengths == nil) != (want.Lengths == nil) && got.Elements() != 0 {
		t.Fatalf("%d slots, lengths %v; want %d, %v", got.Slots, got.Lengths != nil, want.Slots, want.Lengths != nil)
	}
	for row := range want.Rows {
		if got.Slot(row) != want.Slot(row) {
			t.Fatalf("row %d has slot %d, want %d", row, got.Slot(row), want.Slot(row))
		}
	}
	if !want.Type.IsList() && got.Present != nil {
		for s := range got.Slots {
			if lo, hi := got.SlotRange(s); !got.Present.Get(s) && !allZero(got, lo, hi) {
				t.Fatalf("null slot %d does not hold zeros", s)
			}
		}
	}
	if want.Monotone && got.Inverse != nil && !got.Monotone {
		t.Fatal("no longer monotone")
	}
}

func allZero(c *vector.Column, lo, hi int) bool {
	for i := lo; i < hi; i++ {
		switch c.Type.Physical() {
		case vector.Int64Values:
			if c.Ints[i] != 0 {
				return false
			}
		case vector.Float32Values:
			if math.Float32bits(c.Floats[i]) != 0 {
				return false
			}
		case vector.Float64Values:
			if math.Float64bits(c.Doubles[i]) != 0 {
				return false
			}
		}
	}
	return true
}

// checkStats compares statistics with ones computed from the expanded rows.
func checkStats(t *rapid.T, ty vector.Type, s *format.Stats, c *vector.Column) {
	nulls, elements := uint64(0), uint64(0)
	for row := range c.Rows {
		if c.IsNull(row) {
			nulls++
			continue
		}
		lo, hi := c.RowRange(row)
		elements += uint64(hi - lo)
		for i := lo; i < hi && s.HasMinMax; i++ {
			switch ty.Physical() {
			case vector.Int64Values:
				v := c.Ints[i]
				if ty.Elem == vector.Uint64 {
					if uint64(v) < uint64(s.MinInt) || uint64(v) > uint64(s.MaxInt) {
						t.Fatalf("%d outside [%d, %d]", uint64(v), uint64(s.MinInt), uint64(s.MaxInt))
					}
				} else if v < s.MinInt || v > s.MaxInt {
					t.Fatalf("%d outside [%d, %d]", v, s.MinInt, s.MaxInt)
				}
			case vector.Float32Values:
				if v := float64(c.Floats[i]); v < s.MinFloat || v > s.MaxFloat {
					t.Fatalf("%v outside [%v, %v]", v, s.MinFloat, s.MaxFloat)
				}
			case vector.Float64Values:
				if v := c.Doubles[i]; v < s.MinFloat || v > s.MaxFloat {
					t.Fatalf("%v outside [%v, %v]", v, s.MinFloat, s.MaxFloat)
				}
			}
		}
	}
	if s.NullRows != nulls || s.Elements != elements {
		t.Fatalf("stats say %d null rows and %d elements, want %d and %d", s.NullRows, s.Elements, nulls, elements)
	}
	if ty.Kind == vector.Dense && elements > 0 && ty.Elem.IsInteger() && !s.HasMinMax {
		t.Fatal("no bounds")
	}
}

// A group's inverse is stored once and borrowed by its features, whose own columns need not repeat it.
func TestGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := vectortest.DrawType(t)
		c := drawColumn(t, ty)
		shared := &vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: c.Rows, Slots: c.Slots,
			Inverse: c.Inverse, Monotone: c.Monotone}
		groupFile, gm := writeFile(t, shared.Type, format.WriterOptions{Feature: 7}, shared)
		file, m := writeFile(t, ty, format.WriterOptions{Feature: 8, Group: 7}, c)
		for _, s := range m.Stripes[0].Streams {
			if s.Kind == format.InverseRuns || s.Kind == format.InverseCodes || s.Kind == format.InverseChanges {
				t.Fatalf("the feature has its own %v", s.Kind)
			}
		}
		d := format.NewStripeDecoder(format.Limits{})
		var inverse, got vector.Column
		if err := d.DecodeStripe(&inverse, gm, 0, stripeBytes(groupFile, gm, 0), nil); err != nil {
			t.Fatal(err)
		}
		if err := inverse.Validate(); err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(inverse.Inverse)
		if err := d.DecodeStripe(&got, m, 0, stripeBytes(file, m, 0), &inverse); err != nil {
			t.Fatal(err)
		}
		checkSame(t, &got, c)
		// What is decoded next into the same column leaves the group's memory alone.
		other := makeMonotone(c.Rows)
		otherFile, om := writeFile(t, other.Type, format.WriterOptions{}, other)
		if err := d.DecodeStripe(&got, om, 0, stripeBytes(otherFile, om, 0), nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, inverse.Inverse) {
			t.Fatal("the group's inverse was overwritten")
		}
	})
}

// makeMonotone returns a column whose rows come in equal pairs.
func makeMonotone(rows int) *vector.Column {
	c := vector.NewColumn(vector.Type{Kind: vector.Dense, Elem: vector.Int64})
	for i := range (rows + 1) / 2 {
		c.Ints = append(c.Ints, int64(i))
		c.AddSlot()
	}
	c.Rows, c.Monotone, c.Inverse = rows, true, make([]int32, rows)
	for i := range rows {
		c.Inverse[i] = int32(i / 2)
	}
	return c
}

// The same directory bytes serve footer and index.
func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := vectortest.DrawType(t)
		_, m := writeFile(t, ty, format.WriterOptions{Feature: 1, Group: rapid.Uint64().Draw(t, "group"), Name: "f"},
			drawColumn(t, ty), drawColumn(t, ty))
		b := format.AppendMeta([]byte("before"), m)
		got, err := format.DecodeMeta(b[6:], format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, m)
		}
	})
}

// Lists, strings and embeddings may be far larger than a stripe's rows.
func TestHugeValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		ty vector.Type
		s  shape
	}{
		{sparse(vector.Int64), shape{rows: 3, maxLength: 1 << 19}},
		{sparse(vector.Int64), shape{rows: 3, maxLength: 1 << 17, partial: true}},
		{vector.Type{Kind: vector.String}, shape{rows: 3, maxLength: 1 << 20}},
		{vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: vector.MaxDim}, shape{rows: 5, null: 30}},
	} {
		want := makeColumn(rng, c.ty, c.s)
		file, _ := writeFile(fatal{t}, c.ty, format.WriterOptions{}, want, want)
		got, err := readFile(file, format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got {
			if s := diff(g, want); s != "" {
				t.Fatalf("%v: %s", c.ty, s)
			}
		}
	}
}

// A file of many stripes has a directory that the first read of its end does not hold.
func TestManyStripes(t *testing.T) {
	c := makeMonotone(3)
	stripes := make([]*vector.Column, 1000)
	for i := range stripes {
		stripes[i] = c
	}
	file, _ := writeFile(fatal{t}, c.Type, format.WriterOptions{}, stripes...)
	got, err := readFile(file, format.Limits{})
	if err != nil || len(got) != len(stripes) {
		t.Fatalf("%d stripes: %v", len(got), err)
	}
	for _, g := range got {
		if s := diff(g, c); s != "" {
			t.Fatal(s)
		}
	}
}
