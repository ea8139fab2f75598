package reader

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// Columns that share an inverse share what is gathered of it; those without have the selected rows; and a stripe that is condensed is one run.
func TestCondense(t *testing.T) {
	s := &Scanner{pools: &pools{}}
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
