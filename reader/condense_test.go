package reader

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// Columns that share an inverse share what is gathered of it; those without have the selected rows; and a stripe that is condensed is one run.
func TestCondense(t *testing.T) {
	s := &executor{pools: &pools{}}
	st := &stripe{picked: []int32{1, 3, 4, 6}, rows: 4, stored: 8, condensed: true}
	group := []int32{0, 0, 1, 2, 2, 2, 3, 3}
	a := &decoded{column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	b := &decoded{column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	codes := &decoded{column: &vector.Column{Rows: 8, Slots: 3, Inverse: []int32{0, 1, 2, 1, 0, 0, 0, 0}}}
	own := &decoded{column: &vector.Column{Rows: 8, Slots: 8}}
	var x condenser
	for _, d := range []*decoded{a, b, codes, own} {
		x.condense(s, st, d)
	}
	if !slices.Equal(a.column.Inverse, []int32{0, 2, 2, 3}) || a.column.Rows != 4 || a.column.Slots != 4 || a.column.Monotone || !a.ascends {
		t.Errorf("%+v", a.column)
	}
	if &b.column.Inverse[0] != &a.column.Inverse[0] {
		t.Error("the inverse of a group was gathered twice")
	}
	if !slices.Equal(codes.column.Inverse, []int32{1, 1, 0, 0}) || codes.ascends {
		t.Errorf("%+v", codes.column)
	}
	if !slices.Equal(own.column.Inverse, st.picked) || !own.ascends || !st.rowsAreSlots(own.column) || st.rowsAreSlots(a.column) {
		t.Errorf("%+v", own.column)
	}
	if lo, hi := st.runAt(1, 4); lo != 1 || hi != 4 || st.at(2) != 2 || st.decodedAt(2) != 4 || st.columnRows() != 4 || st.decodedRows() != 8 {
		t.Errorf("a run from %d to %d", lo, hi)
	}
	if len(st.inverses) != 2 {
		t.Errorf("%d inverses are the stripe's", len(st.inverses))
	}
	if !slices.Equal(group, []int32{0, 0, 1, 2, 2, 2, 3, 3}) {
		t.Error("the stripe's inverse is changed")
	}
}

// Rows next to each other stay pieces of their own; others are gathered.
func TestCondenses(t *testing.T) {
	l := &Layout{condensedRun: condensedRun}
	var apart, together []int32
	for r := range int32(4096) {
		if r%2 == 0 {
			apart = append(apart, r)
		}
		if r%64 > 0 {
			together = append(together, r)
		}
	}
	if !l.condenses(apart) || l.condenses(together) {
		t.Errorf("condensed: %v, %v", l.condenses(apart), l.condenses(together))
	}
}

// The memory of a stripe has what is gathered: 4 bytes a selected row for a group, and for a feature with slots of its own.
func TestGatheredBytes(t *testing.T) {
	of := func(slots uint32) file {
		return file{entry: &storage.FeatureEntry{Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 100, Slots: slots}, {Rows: 100, Slots: slots}}}}}
	}
	g := &segment{
		starts: []uint64{0, 10, 110}, first: []uint64{0, 100, 200}, files: []file{of(20), of(20), of(100), of(30), of(100)}, featureFile: []int32{0, 1, 3, 4, -1},
		items: []item{{inverse: 2, features: []int32{0, 1}}, {inverse: -1, features: []int32{2}}, {inverse: -1, features: []int32{3}}, {inverse: -1, features: []int32{4}}},
	}
	if n := g.gatheredBytes(0); n != 2*4*10 {
		t.Errorf("%d bytes, want those of two inverses of ten rows", n)
	}
	if n := g.gatheredBytes(1); n != 0 {
		t.Errorf("%d bytes of a stripe that is read whole", n)
	}
}
