package reader

import (
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// A storedSlot is what a row has of a feature as it was written: rows with one share a value there. Features with one
// inverse share it.
type storedSlot struct {
	segment       string // or layer
	stripe        int
	inverse       string // of a segment's group, or the feature's own
	group         string // of the segment; empty: none
	slot          int
	stripeInverse bool // false: in this stripe each row is its own slot
	nothing       bool // the stripe has no values of the feature: null, which is one slot in all such stripes
}

// Inverses that are none.
const (
	noInverse      = ""        // in no stripe of the segment
	missingInverse = "missing" // the feature is not there
)

func isIdentity(inverse []int32) bool {
	for i, s := range inverse {
		if int(s) != i {
			return false
		}
	}
	return true
}

// A testGroup is an inverse for each stripe of a segment.
type testGroup struct {
	id       uint64
	inverse  [][]int32
	slots    []int
	monotone bool
	used     bool
}

func drawGroup(t *rapid.T, id uint64, stripeRows []uint32) testGroup {
	g := testGroup{id: id, monotone: rapid.Bool().Draw(t, "group by runs")}
	for _, r := range stripeRows {
		draw := drawCodes
		if g.monotone {
			draw = drawRuns
		}
		inverse, slots := draw(t, int(r))
		g.inverse, g.slots = append(g.inverse, inverse), append(g.slots, slots)
	}
	return g
}

// drawPartial draws a column of lists that are parts of one run of values, sets values to the lists, and returns it.
func drawPartial(t *rapid.T, typ vector.Type, values []value) *vector.Column {
	run := value{}
	for range rapid.IntRange(0, 6).Draw(t, "values") {
		run.numbers = append(run.numbers, drawNumber(t, typ.Elem))
		if typ.Kind == vector.Weighted {
			run.scores = append(run.scores, drawNumber(t, typ.Score).f)
		}
	}
	c := vector.NewColumn(typ)
	appendSlot(c, run)
	c.Offsets, c.Lengths, c.Rows, c.Slots = nil, make([]int32, 0), len(values), len(values)
	present := make(vector.Bitmap, vector.BitmapWords(len(values)))
	for s := range values {
		from, length := int32(0), int32(0)
		if values[s].null = rapid.IntRange(0, 3).Draw(t, "null") == 0; !values[s].null {
			present.Set(s)
			from = int32(rapid.IntRange(0, len(run.numbers)).Draw(t, "from"))
			length = int32(rapid.IntRange(0, len(run.numbers)-int(from)).Draw(t, "length"))
			values[s].numbers = run.numbers[from : from+length]
			if typ.Kind == vector.Weighted {
				values[s].scores = run.scores[from : from+length]
			}
		}
		c.Offsets, c.Lengths = append(c.Offsets, from), append(c.Lengths, length)
	}
	if present.Count() < len(values) {
		c.Present = present
	}
	return c
}
