package reader

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/storage"
)

// Columns that share an inverse share what is gathered of it; those without have the selected rows; and a stripe that is gathered is one run.
func TestGather(t *testing.T) {
	s := &executor{pools: &pools{}}
	st := &load.Stripe{Picked: []int32{1, 3, 4, 6}, Rows: 4, Stored: 8, Gathered: true}
	group := []int32{0, 0, 1, 2, 2, 2, 3, 3}
	a := &load.Decoded{Column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	b := &load.Decoded{Column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	codes := &load.Decoded{Column: &vector.Column{Rows: 8, Slots: 3, Inverse: []int32{0, 1, 2, 1, 0, 0, 0, 0}}}
	own := &load.Decoded{Column: &vector.Column{Rows: 8, Slots: 8}}
	var x gatherer
	for _, d := range []*load.Decoded{a, b, codes, own} {
		x.gather(s, st, d)
	}
	if !slices.Equal(a.Column.Inverse, []int32{0, 2, 2, 3}) || a.Column.Rows != 4 || a.Column.Slots != 4 || a.Column.Monotone || !a.Ascends {
		t.Errorf("%+v", a.Column)
	}
	if &b.Column.Inverse[0] != &a.Column.Inverse[0] {
		t.Error("the inverse of a group was gathered twice")
	}
	if !slices.Equal(codes.Column.Inverse, []int32{1, 1, 0, 0}) || codes.Ascends {
		t.Errorf("%+v", codes.Column)
	}
	if !slices.Equal(own.Column.Inverse, st.Picked) || !own.Ascends || !st.RowsAreSlots(own.Column) || st.RowsAreSlots(a.Column) {
		t.Errorf("%+v", own.Column)
	}
	if lo, hi := st.RunAt(1, 4); lo != 1 || hi != 4 || st.At(2) != 2 || st.DecodedAt(2) != 4 || st.ColumnRows() != 4 || st.DecodedRows() != 8 {
		t.Errorf("a run from %d to %d", lo, hi)
	}
	if len(st.Inverses) != 2 {
		t.Errorf("%d inverses are the stripe's", len(st.Inverses))
	}
	if !slices.Equal(group, []int32{0, 0, 1, 2, 2, 2, 3, 3}) {
		t.Error("the stripe's inverse is changed")
	}
}

// Rows next to each other stay pieces of their own; others are gathered.
func TestGathers(t *testing.T) {
	l := &Layout{gatheredRun: gatheredRun}
	var apart, together []int32
	for r := range int32(4096) {
		if r%2 == 0 {
			apart = append(apart, r)
		}
		if r%64 > 0 {
			together = append(together, r)
		}
	}
	if !l.gathers(apart) || l.gathers(together) {
		t.Errorf("gathered: %v, %v", l.gathers(apart), l.gathers(together))
	}
}

// The memory of a stripe has what is gathered: 4 bytes a selected row for a group, and for a feature with slots of its own.
func TestGatheredBytes(t *testing.T) {
	of := func(slots uint32) load.File {
		return load.File{Entry: &storage.FeatureEntry{Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 100, Slots: slots}, {Rows: 100, Slots: slots}}}}}
	}
	g := &load.Segment{
		Starts: []uint64{0, 10, 110}, First: []uint64{0, 100, 200}, Files: []load.File{of(20), of(20), of(100), of(30), of(100)}, FeatureFile: []int32{0, 1, 3, 4, -1},
		Items: []load.Item{{Inverse: 2, Features: []int32{0, 1}}, {Inverse: -1, Features: []int32{2}}, {Inverse: -1, Features: []int32{3}}, {Inverse: -1, Features: []int32{4}}},
	}
	if n := g.GatheredBytes(0); n != 2*4*10 {
		t.Errorf("%d bytes, want those of two inverses of ten rows", n)
	}
	if n := g.GatheredBytes(1); n != 0 {
		t.Errorf("%d bytes of a stripe that is read whole", n)
	}
}
