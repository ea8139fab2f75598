package ioplan

import (
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/segment"
)

// The memory of a stripe has what is gathered: 4 bytes a selected row for a group, and for a feature with slots of its
// own.
func TestGatheredBytes(t *testing.T) {
	of := func(slots uint32) File {
		return File{Entry: &segment.Entry{Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 100,
			Slots: slots}, {Rows: 100, Slots: slots}}}}}
	}
	g := &Segment{
		Starts: []uint64{0, 10, 110}, First: []uint64{0, 100, 200}, Files: []File{of(20), of(20), of(100), of(30),
			of(100)}, FeatureFile: []int32{0, 1, 3, 4, -1},
		Items: []Item{{Inverse: 2, Features: []int32{0, 1}}, {Inverse: -1, Features: []int32{2}},
			{Inverse: -1, Features: []int32{3}}, {Inverse: -1, Features: []int32{4}}},
	}
	if n := g.GatheredBytes(0); n != 2*4*10 {
		t.Errorf("%d bytes, want those of two inverses of ten rows", n)
	}
	if n := g.GatheredBytes(1); n != 0 {
		t.Errorf("%d bytes of a stripe that is read whole", n)
	}
}

// TestShares: a list of a million ids that ten rows share is decoded once; numbers, and lists that each row has to
// itself, are decoded for the rows alone.
func TestShares(t *testing.T) {
	number := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	list := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	of := func(t vector.Type, slots uint32, values uint64) File { // 100 rows, which have so many values
		stored := values * uint64(slots) / 100
		stripe := format.StripeMeta{Rows: 100, Slots: slots, Elements: stored, Stats: format.Stats{Elements: values}}
		return File{Want: t, Entry: &segment.Entry{Meta: &format.FileMeta{Type: t,
			Stripes: []format.StripeMeta{stripe}}}}
	}
	g := &Segment{Files: []File{of(number, 100, 100), of(list, 10, 100e6), of(list, 100, 1000)}}
	part := func(files ...int32) *ItemPart { return &ItemPart{Files: files} }
	for _, c := range []struct {
		part *ItemPart
		rows int
		want bool
	}{
		{part(0), 99, false},
		{part(1), 9, false},
		{part(1), 20, true},
		{part(2), 90, false},
		{part(0, -1, 1, 2), 20, true},
	} {
		if got := c.part.Shares(g, 0, c.rows); got != c.want {
			t.Errorf("%d rows of files %v: %v", c.rows, c.part.Files, got)
		}
	}
	if !g.Shares(0, 20) || g.Shares(0, 9) {
		t.Error("all files: the list is not what counts")
	}
}
