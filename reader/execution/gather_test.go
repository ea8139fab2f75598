package execution

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// Columns that share an inverse share what is gathered of it; those without have the selected rows; and a stripe that
// is gathered is one run.
func TestGather(t *testing.T) {
	s := &Executor{Pools: &Pools{}}
	st := &ioplan.Stripe{Selected: []int32{1, 3, 4, 6}, Rows: 4, Stored: 8, Gathered: true}
	group := []int32{0, 0, 1, 2, 2, 2, 3, 3}
	a := &ioplan.Decoded{Column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	b := &ioplan.Decoded{Column: &vector.Column{Rows: 8, Slots: 4, Inverse: group, Monotone: true}}
	codes := &ioplan.Decoded{Column: &vector.Column{Rows: 8, Slots: 3, Inverse: []int32{0, 1, 2, 1, 0, 0, 0, 0}}}
	own := &ioplan.Decoded{Column: &vector.Column{Rows: 8, Slots: 8}}
	var x gatherer
	for _, d := range []*ioplan.Decoded{a, b, codes, own} {
		x.gather(s, st, d)
	}
	if !slices.Equal(a.Column.Inverse, []int32{0, 2, 2, 3}) || a.Column.Rows != 4 || a.Column.Slots != 4 ||
		a.Column.Monotone || !a.Ascends {
		t.Errorf("%+v", a.Column)
	}
	if &b.Column.Inverse[0] != &a.Column.Inverse[0] {
		t.Error("the inverse of a group was gathered twice")
	}
	if !slices.Equal(codes.Column.Inverse, []int32{1, 1, 0, 0}) || codes.Ascends {
		t.Errorf("%+v", codes.Column)
	}
	if !slices.Equal(own.Column.Inverse, st.Selected) || !own.Ascends || !st.RowsAreSlots(own.Column) ||
		st.RowsAreSlots(a.Column) {
		t.Errorf("%+v", own.Column)
	}
	if lo, hi := st.RunAt(1, 4); lo != 1 || hi != 4 || st.At(2) != 2 || st.DecodedAt(2) != 4 || st.ColumnRows() != 4 ||
		st.DecodedRows() != 8 {
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
	l := &Source{GatheredRun: DefaultGatheredRun}
	var apart, together []int32
	for r := range int32(4096) {
		if r%2 == 0 {
			apart = append(apart, r)
		}
		if r%64 > 0 {
			together = append(together, r)
		}
	}
	if !l.gathers(len(apart), runsOf(apart)) || l.gathers(len(together), runsOf(together)) {
		t.Errorf("%d rows in %d runs, %d in %d", len(apart), runsOf(apart), len(together), runsOf(together))
	}
	if n := runsOf(nil) + runsOf([]int32{7}) + runsOf([]int32{1, 2, 3, 5}); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// Rows of a stripe that is kept are few pieces, in any order, and the memory that they are gathered in is used again.
func TestGatherPieces(t *testing.T) {
	a, b := &ioplan.Stripe{Columns: make([]*ioplan.Decoded, 1)}, &ioplan.Stripe{Columns: make([]*ioplan.Decoded, 1)}
	a.Columns[0] = &ioplan.Decoded{Column: &vector.Column{Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64},
		Rows: 9, Slots: 2,
		Inverse: []int32{0, 0, 1, 1, 1, 0, 0, 0, 1}, Monotone: true, Ints: []int64{7, 8}}}
	var x PieceGatherer
	for range 2 {
		var pieces []batch.Piece
		for i, r := range []int{8, 1, 2, 3, 0} {
			pieces = append(pieces, batch.Piece{Stripe: a, Lo: r, Hi: r + 1, At: i})
		}
		pieces = append(pieces, batch.Piece{Stripe: b, Lo: 4, Hi: 6, At: 5},
			batch.Piece{Stripe: a, Lo: 5, Hi: 6, At: 7})
		got := x.Gather(pieces, 2)
		if len(got) != 3 || got[0].Lo != 0 || got[0].Hi != 5 || got[1].At != 5 || got[1].Hi != 2 || got[2].Lo != 5 ||
			got[2].At != 7 {
			t.Fatalf("%+v", got)
		}
		c := got[0].Column(0)
		if !slices.Equal(c.Inverse, []int32{1, 0, 1, 1, 0, 0}) || c.Rows != 6 || c.Monotone || got[1].Column(0) != nil {
			t.Fatalf("%+v", c)
		}
		if a.Columns[0].Column.Rows != 9 {
			t.Fatal("the stripe is changed")
		}
		x.Release()
		if x.used != 0 || len(x.all) != 2 || x.all[0].columns[0].Column != nil {
			t.Fatalf("%+v", x)
		}
	}
}
