package format_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
)

// Decoding stripe after stripe into the same columns allocates nothing, whichever fields each needs.
func TestDecodeAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	shapes := []shape{
		{rows: 3000, null: 30, empty: 10, maxLength: 8},
		{rows: 2900, inverse: 1, maxLength: 8},
		{rows: 3000, null: 10, inverse: 3, maxLength: 8},
		{rows: 2000, null: 100},
		{rows: 2000, null: 10, maxLength: 8, partial: true},
		{rows: 10},
	}
	for _, ty := range []vector.Type{
		dense(vector.Int64), dense(vector.Float32), sparse(vector.Int64), {Kind: vector.Weighted, Elem: vector.Int64,
			Score: vector.Float32},
		{Kind: vector.Embedding, Elem: vector.Float32, Dim: 4}, {Kind: vector.String},
	} {
		var stripes []*vector.Column
		for _, s := range shapes {
			s.partial = s.partial && ty.IsList()
			stripes = append(stripes, makeColumn(rng, ty, s))
		}
		file, m := writeFile(fatal{t}, ty, format.WriterOptions{}, stripes...)
		d := format.NewStripeDecoder(format.Limits{})
		if err := use(d, file, m); err != nil {
			t.Fatal(err)
		}
		dst := new(vector.Column)
		all := func() {
			for i := range stripes {
				if err := d.DecodeStripe(dst, m, i, stripeBytes(file, m, i), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		all()
		if n := testing.AllocsPerRun(5, all); n > 0 {
			t.Errorf("%v: %v allocations for %d stripes", ty, n, len(stripes))
		}
	}
}

// Memory of columns is reused: each stripe a little longer than the last takes memory a few times
// only.
func TestDecodeMemoryIsReused(t *testing.T) {
	const stripes = 100
	rng := rand.New(rand.NewPCG(9, 10))
	var columns []*vector.Column
	for i := range stripes {
		c := vector.NewColumn(sparse(vector.Int64))
		for range 1000 + 5*i {
			c.Ints = append(c.Ints, rng.Int64())
			c.AddSlot()
		}
		columns = append(columns, c)
	}
	file, m := writeFile(fatal{t}, sparse(vector.Int64), format.WriterOptions{}, columns...)
	d := format.NewStripeDecoder(format.Limits{})
	dst := new(vector.Column)
	values, offsets := 0, 0
	for i := range columns {
		v, o := cap(dst.Ints), cap(dst.Offsets)
		if err := d.DecodeStripe(dst, m, i, stripeBytes(file, m, i), nil); err != nil {
			t.Fatal(err)
		}
		if cap(dst.Ints) != v {
			values++
		}
		if cap(dst.Offsets) != o {
			offsets++
		}
		if n := len(columns[i].Ints); cap(dst.Ints) > n+n/8 && i == 0 || cap(dst.Ints) > n+n/4 {
			t.Fatalf("room for %d values where %d are", cap(dst.Ints), n)
		}
	}
	if values > 6 || offsets > 6 {
		t.Errorf("values took memory %d times and offsets %d times in %d stripes, half as long again at the end",
			values, offsets, stripes)
	}
}

// typicalStripes returns stripes of 16,384 rows or so of the workload's shape: hashed ids, coverage 0.45, equal rows
// within a session when deduplicated.
func typicalStripes(ty vector.Type, inverse, n int) []*vector.Column {
	rng := rand.New(rand.NewPCG(7, 8))
	var out []*vector.Column
	for i := range n {
		out = append(out, makeColumn(rng, ty, shape{rows: 16384 + 10*i, null: 55, inverse: inverse, maxLength: 20}))
	}
	return out
}

// What a stripe costs in the directory, which planning reads for every projected feature, stays small.
func TestDirectoryBytesPerStripe(t *testing.T) {
	for _, c := range []struct {
		name    string
		ty      vector.Type
		inverse int
		most    int
	}{
		{"dense float32", dense(vector.Float32), 0, 20},
		{"dense bool", dense(vector.Bool), 0, 18},
		{"list of hashed ids", sparse(vector.Int64), 0, 25},
		{"list of hashed ids, equal rows", sparse(vector.Int64), 1, 32},
		{"string", vector.Type{Kind: vector.String}, 0, 18},
	} {
		stripes := typicalStripes(c.ty, c.inverse, 7)
		_, one := writeFile(fatal{t}, c.ty, format.WriterOptions{Name: c.name}, stripes[0])
		file, all := writeFile(fatal{t}, c.ty, format.WriterOptions{Name: c.name}, stripes...)
		got := (len(format.AppendMeta(nil, all)) - len(format.AppendMeta(nil, one))) / 6
		t.Logf("%s: %d bytes/stripe in the directory, %d bytes of file beyond the streams", c.name, got,
			len(file)-int(all.End())+4)
		if got > c.most {
			t.Errorf("%s: %d bytes/stripe in the directory, want at most %d", c.name, got, c.most)
		}
	}
}

// What says nothing costs next to nothing.
func TestCheapStripes(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, c := range []struct {
		name            string
		ty              vector.Type
		s               shape
		directory, body int
	}{
		{"all null", sparse(vector.Int64), shape{null: 100}, 3, 0},
		{"all null, dense", dense(vector.Float32), shape{null: 100}, 3, 0},
		{"all empty", sparse(vector.Int64), shape{empty: 100}, 6, 8},
		{"constant", dense(vector.Int64), shape{constant: true}, 15, 16},
		{"one slot for all rows", dense(vector.Int64), shape{inverse: 4}, 30, 16},
	} {
		c.s.rows = 16384
		column := makeColumn(rng, c.ty, c.s)
		_, one := writeFile(fatal{t}, c.ty, format.WriterOptions{}, column)
		_, two := writeFile(fatal{t}, c.ty, format.WriterOptions{}, column, column)
		directory := len(format.AppendMeta(nil, two)) - len(format.AppendMeta(nil, one))
		body := int(two.Stripes[1].Length)
		t.Logf("%s: %d bytes in the directory, %d in the stripe", c.name, directory, body)
		if directory > c.directory || body > c.body {
			t.Errorf("%s: %d bytes in the directory, %d in the stripe; want at most %d and %d", c.name, directory,
				body, c.directory, c.body)
		}
	}
}
