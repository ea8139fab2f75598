package format_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// forge replaces the chunk of a stream of the only stripe by another whose checksum is right.
func forge(m *format.FileMeta, src []byte, kind format.StreamKind, chunk []byte) []byte {
	var out []byte
	s := &m.Stripes[0]
	s.Length = 0
	for i := range s.Streams {
		f := &s.Streams[i]
		old := src[:f.Length]
		src = src[f.Length:]
		if f.Kind == kind {
			old = append(append([]byte{}, chunk...), 0, 0, 0, 0)
			f.Length = uint64(len(old))
		}
		s.Length += f.Length
		out = append(out, old...)
	}
	sealStripe(m, 0, out)
	return out
}

// Chunks that decode well, under checksums that are right, but say what no column can hold.
func TestForgedStreams(t *testing.T) {
	list := sparse(vector.Int64)
	lists := func() *vector.Column { // slots [1 2], null, [3], [4]; 4 elements
		c := vector.NewColumn(list)
		c.Ints = append(c.Ints, 1, 2)
		c.AddSlot()
		c.AppendNulls(1)
		c.Ints = append(c.Ints, 3)
		c.AddSlot()
		c.Ints = append(c.Ints, 4)
		c.AddSlot()
		return c
	}
	partial := func() *vector.Column {
		c := lists()
		c.Offsets, c.Lengths = []int32{0, 0, 2, 3}, []int32{2, 0, 1, 1}
		return c
	}
	// A long run, so that runs are stored as lengths, or short ones, as changes; slots found again, or not.
	inverse := func(rows, run int, monotone bool) func() *vector.Column {
		return func() *vector.Column {
			c := vector.NewColumn(dense(vector.Int64))
			c.Inverse = make([]int32, rows)
			for i := range c.Inverse {
				c.Inverse[i] = int32(i / run)
			}
			c.Slots, c.Rows, c.Monotone = (rows+run-1)/run, rows, monotone
			if !monotone {
				c.Inverse[rows-1] = 0
			}
			for i := range c.Slots {
				c.Ints = append(c.Ints, int64(i))
			}
			return c
		}
	}
	var e encoding.Chooser
	ints := func(vals ...int32) []byte { return e.AppendInt32s(nil, 0, vals) }
	const rows = 4096
	few := inverse(rows, 1024, true)
	many := func() *vector.Column { // short runs without a pattern
		rng := rand.New(rand.NewPCG(1, 2))
		c := vector.NewColumn(dense(vector.Int64))
		for i := range rows {
			if i == 0 || rng.IntN(2) == 0 {
				c.Ints = append(c.Ints, int64(i))
				c.AddSlot()
			}
			c.Inverse = append(c.Inverse, int32(c.Slots-1))
		}
		c.Rows, c.Monotone = rows, true
		return c
	}
	again := inverse(rows, 1024, false)
	bytes8 := func() *vector.Column {
		c := vector.NewColumn(dense(vector.Int8))
		for i := range 3 {
			c.Ints = append(c.Ints, int64(i))
			c.AddSlot()
		}
		return c
	}
	cases := []struct {
		name   string
		column func() *vector.Column
		kind   format.StreamKind
		chunk  []byte
		want   string // empty: a valid column
	}{
		{"the lengths as they were", lists, format.Lengths, ints(2, 1, 1), ""},
		{"other lengths of the same sum", lists, format.Lengths, ints(0, 0, 4), ""},
		{"a negative length", lists, format.Lengths, ints(5, -2, 1), "none negative"},
		{"lengths whose sum wraps to the right one", lists, format.Lengths, ints(math.MaxInt32, math.MaxInt32, 6),
			"sum to"},
		{"lengths too long", lists, format.Lengths, ints(2, 1, 2), "sum to 5, want 4"},
		{"lengths too short", lists, format.Lengths, ints(2, 1, 0), "sum to 3, want 4"},
		{"a length of 33 bits", lists, format.Lengths, e.AppendInts(nil, 0, []int64{1<<32 + 2, 1, 1}), "32 bits"},
		{"presence of all", lists, format.Presence, e.AppendBits(nil, 0, []uint64{15}, 4), "4 present slots, want 3"},
		{"presence of few", lists, format.Presence, e.AppendBits(nil, 0, []uint64{1}, 4), "1 present slots, want 3"},
		{"presence of others", lists, format.Presence, e.AppendBits(nil, 0, []uint64{14}, 4), ""},
		{"slices elsewhere", partial, format.Starts, ints(2, 0, 3), ""},
		{"a slice past the end", partial, format.Starts, ints(3, 2, 3), "slice of 2 values at 3, of 4"},
		{"a slice before the start", partial, format.Starts, ints(-1, 2, 3), "slice of 2 values at -1"},
		{"a slice past 31 bits", partial, format.Starts, ints(math.MaxInt32, 2, 3), "slice of 2 values"},
		{"a slice of negative length", partial, format.Lengths, ints(2, -1, 1), "slice of -1 values"},
		{"other runs", few, format.InverseRuns, ints(1, 2, 3, rows-6), ""},
		{"an empty run", few, format.InverseRuns, ints(1, 0, 3, rows-4), "run 1 of 0 rows"},
		{"a negative run", few, format.InverseRuns, ints(1, -1, 3, rows-3), "run 1 of -1 rows"},
		{"runs too long", few, format.InverseRuns, ints(1, 2, 3, rows), "run 3 of 4096 rows at row 6"},
		{"runs too short", few, format.InverseRuns, ints(1, 2, 3, 4), "runs hold 10 rows"},
		{"no changes", many, format.InverseChanges, e.AppendBits(nil, 0, make([]uint64, rows/64), rows),
			"changes make 1 runs"},
		{"a change at row 0", many, format.InverseChanges, e.AppendBits(nil, 0, append([]uint64{1}, make([]uint64,
			rows/64-1)...), rows), "row 0 changes"},
		{"codes of slot 0", again, format.InverseCodes, ints(0, 1, 1, 1, 1), ""},
		{"a code past the slots", again, format.InverseCodes, ints(0, -4, 1, 1, 1), "has slot 5 of 4"},
		{"a code before slot 0", again, format.InverseCodes, ints(0, 2, 1, 1, 1), "has slot -1 of 4"},
		{"a code of 31 bits", again, format.InverseCodes, ints(0, math.MinInt32, 1, 1, 1), "of 4"},
		{"a number that no int8 is", bytes8, format.Values, e.AppendInts(nil, 0, []int64{1, -128, 128}),
			"value 2 is 128, out of the range of int8"},
		{"numbers that int8 are", bytes8, format.Values, e.AppendInts(nil, 0, []int64{1, -128, 127}), ""},
		{"only new slots", again, format.InverseCodes, ints(0, 0, 0, 0, 0), "has slot 4 of 4"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			column := c.column()
			file, m := writeFile(fatal{t}, column.Type, format.WriterOptions{}, column)
			found := false
			for _, f := range m.Stripes[0].Streams {
				found = found || f.Kind == c.kind
			}
			if !found {
				t.Fatalf("the stripe has no %v: %v", c.kind, m.Stripes[0].Streams)
			}
			src := forge(m, stripeBytes(file, m, 0), c.kind, c.chunk)
			var got vector.Column
			err := format.NewStripeDecoder(format.Limits{}).DecodeStripe(&got, m, 0, src, nil)
			if c.want == "" {
				if err != nil || got.Validate() != nil {
					t.Fatalf("%v, %v", err, got.Validate())
				}
				return
			}
			var ce *format.CorruptError
			if !errors.As(err, &ce) || !strings.Contains(ce.Reason, c.want) || ce.Stream == "" {
				t.Fatalf("%v, want %q", err, c.want)
			}
		})
	}
}
