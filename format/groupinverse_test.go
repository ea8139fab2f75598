package format_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// TestInverseIsLookedThroughOnce: features of a group whose writers know that of its inverse have the bytes of those
// that do not, whether or not they have its very slice, and what is wrong with them is found.
func TestInverseIsLookedThroughOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const group = 7
		typ := vectortest.DrawType(rt)
		var stripes []*vector.Column
		for range rapid.IntRange(1, 3).Draw(rt, "stripes") {
			stripes = append(stripes, drawColumn(rt, typ))
		}
		other := rapid.Bool().Draw(rt, "another slice")
		wrong := rapid.IntRange(-1, len(stripes)-1).Draw(rt, "wrong")
		write := func(tell bool) ([]byte, error) {
			var inverseFile, file bytes.Buffer
			inverse, err := format.NewWriter(&inverseFile, vector.Type{Kind: vector.Inverse},
				format.WriterOptions{Feature: group})
			if err != nil {
				rt.Fatal(err)
			}
			opts := format.WriterOptions{Feature: 8, Group: group}
			if tell {
				opts.Inverse = inverse
			}
			w, err := format.NewWriter(&file, typ, opts)
			if err != nil {
				rt.Fatal(err)
			}
			for i, c := range stripes {
				own := vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: c.Rows, Slots: c.Slots,
					Inverse: c.Inverse, Monotone: c.Monotone}
				if own.Inverse == nil {
					for row := range c.Rows {
						own.Inverse = append(own.Inverse, int32(row))
					}
				}
				if err := inverse.WriteStripe(&own); err != nil {
					rt.Fatal(err)
				}
				of := *c
				if other {
					of.Inverse = slices.Clone(c.Inverse)
				}
				if i == wrong { // a slot too few, or too many
					of.Present = make(vector.Bitmap, vector.BitmapWords(c.Slots)+1)
				}
				if err := w.WriteStripe(&of); err != nil {
					return nil, err
				}
			}
			_, _, err = w.Finish()
			return file.Bytes(), err
		}
		want, wantErr := write(false)
		got, gotErr := write(true)
		if (wantErr == nil) != (wrong < 0) || (gotErr == nil) != (wantErr == nil) || gotErr != nil &&
			gotErr.Error() != wantErr.Error() {
			rt.Fatalf("%v: want %v", gotErr, wantErr)
		}
		if !bytes.Equal(got, want) {
			rt.Fatalf("%d bytes: want %d, and the same ones", len(got), len(want))
		}
	})
}

// TestInverseOfAnotherStripe: an inverse that is not that of the group's last stripe is looked through.
func TestInverseOfAnotherStripe(t *testing.T) {
	var out bytes.Buffer
	inverse, err := format.NewWriter(&out, vector.Type{Kind: vector.Inverse}, format.WriterOptions{Feature: 7})
	if err != nil {
		t.Fatal(err)
	}
	typ := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	w, err := format.NewWriter(&out, typ, format.WriterOptions{Feature: 8, Group: 7, Inverse: inverse})
	if err != nil {
		t.Fatal(err)
	}
	good := []int32{0, 0, 1}
	if err := inverse.WriteStripe(&vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: 3, Slots: 2,
		Inverse: good}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*vector.Column{
		"another slice":     {Type: typ, Rows: 3, Slots: 2, Inverse: []int32{0, 2, 1}, Ints: []int64{1, 2}},
		"fewer rows":        {Type: typ, Rows: 2, Slots: 2, Inverse: good, Ints: []int64{1, 2}},
		"a slot less":       {Type: typ, Rows: 3, Slots: 1, Inverse: good, Ints: []int64{1}},
		"a value too few":   {Type: typ, Rows: 3, Slots: 2, Inverse: good, Ints: []int64{1}},
		"rows of no others": {Type: typ, Rows: 3, Slots: 2, Ints: []int64{1, 2}},
	} {
		if err := w.WriteStripe(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := w.WriteStripe(&vector.Column{Type: typ, Rows: 3, Slots: 2, Inverse: good, Ints: []int64{1,
		2}}); err != nil {
		t.Error(err)
	}
}
