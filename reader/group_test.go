package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// listsOf returns the lists of ids, of ids with weights, and of numbers.
func listsOf(x *Tensors) [3]*Jagged { return [3]*Jagged{&x.Sparse, &x.Weighted, &x.Floats} }

// checkLayout checks that the features of a batch lie as those of every batch of the plan do, and that its inverses
// follow one another.
func checkLayout(t *rapid.T, b *Batch) {
	x, p := b.Tensors, b.Plan()
	var of [3][]int32 // positions of the features that are lists, by kind
	for i := range p.Features {
		f := &p.Features[i]
		kind := -1
		switch {
		case f.Role.IsKey() || plan.IsLabel(f.Role) || p.IsExact(i):
		case f.Type.Kind == vector.Weighted:
			kind = 1
		case f.Type.Kind == vector.Sparse && f.Type.Elem.IsInteger():
			kind = 0
		case f.Type.Kind == vector.Sparse:
			kind = 2
		}
		if kind >= 0 {
			of[kind] = append(of[kind], int32(i))
		}
	}
	for k, positions := range of {
		j := listsOf(x)[k]
		if !slices.Equal(j.Features, positions) {
			t.Fatalf("features %v, those of the plan are %v", j.Features, positions)
		}
		for i, f := range j.Features {
			from, to := j.Lists(i)
			inverse := x.InverseOf(j, i)
			at := slices.IndexFunc(x.Groups, func(g Group) bool { return slices.Contains(g.Features, f) })
			switch {
			case inverse == nil && (at >= 0 || to-from != b.Rows):
				t.Fatalf("feature %d: %d lists for %d rows, group %d", f, to-from, b.Rows, at)
			case inverse != nil && (at != int(j.Groups[i]) || to-from != x.Groups[at].Slots):
				t.Fatalf("feature %d: %d lists, of group %d, want %d", f, to-from, j.Groups[i], at)
			case inverse != nil && p.Expands(f):
				t.Fatalf("feature %d has an inverse, and is expanded", f)
			}
		}
	}
	var inverses []int32
	for i := range x.Groups {
		inverses = append(inverses, x.Groups[i].Inverse...)
	}
	if !slices.Equal(x.Inverses, inverses) {
		t.Fatalf("inverses %v, want %v", x.Inverses, inverses)
	}
}

// checkGroups checks what is promised of a batch's groups, from what was written: rows are the table's, in the batch's
// order.
func checkGroups(t *rapid.T, table *testTable, features []int, b *Batch, rows []int) {
	groupOf := make([]int, len(features)) // 0: none
	slotsOf := make([]int, len(features))
	grouped := func(k int, place int32, inverse []int32, slots int) {
		groupOf[place], slotsOf[place] = k+1, slots
		used := map[int32]bool{}
		for _, s := range inverse {
			used[s] = true
			if s < 0 || int(s) >= slots {
				t.Fatalf("slot %d of %d", s, slots)
			}
		}
		if len(inverse) != b.Rows || len(used) != slots {
			t.Fatalf("%d rows of %d, %d of %d slots are used", len(inverse), b.Rows, len(used), slots)
		}
	}
	var held []int32 // what may be in a group
	if b.Tensors != nil {
		checkLayout(t, b)
		for i := range b.Tensors.Groups {
			g := &b.Tensors.Groups[i]
			if !slices.IsSorted(g.Features) {
				t.Fatalf("features %v", g.Features)
			}
			for _, place := range g.Features {
				grouped(i, place, g.Inverse, g.Slots)
			}
			checkMonotone(t, g.Inverse, g.Slots, g.Monotone)
		}
		for _, j := range listsOf(b.Tensors) {
			held = append(held, j.Features...)
		}
	} else {
		inverses := map[*int32]int{}
		for place, c := range b.Columns {
			if IsPartitionKey(table.features[features[place]]) {
				continue
			}
			held = append(held, int32(place))
			if c.Inverse == nil {
				continue
			}
			k, ok := inverses[&c.Inverse[0]]
			if !ok {
				k = len(inverses)
				inverses[&c.Inverse[0]] = k
			}
			grouped(k, int32(place), c.Inverse, c.Slots)
		}
	}
	slotRows, slots := 0, 0
	for _, place := range held {
		used := map[storedSlot]bool{}
		inverse := false
		for _, r := range rows {
			x := table.slots[r][features[place]]
			if x.nothing || x.inverse == missingInverse {
				x = storedSlot{nothing: true}
			}
			used[x] = true
			inverse = inverse || table.slots[r][features[place]].stripeInverse
		}
		inverse = inverse && !b.Plan().Expands(place)
		if inverse != (groupOf[place] > 0) {
			t.Fatalf("feature %d has an inverse: %v, group %d", place, inverse, groupOf[place])
		}
		slotRows += len(rows)
		if !inverse {
			slots += len(rows)
			continue
		}
		slots += slotsOf[place]
		if slotsOf[place] != len(used) {
			t.Fatalf("feature %d: %d slots for %d that the batch uses", place, slotsOf[place], len(used))
		}
		for _, other := range held {
			same := true
			for _, r := range rows {
				same = same && table.slots[r][features[place]].inverse == table.slots[r][features[other]].inverse
			}
			if groupOf[other] > 0 && same != (groupOf[place] == groupOf[other]) {
				t.Fatalf("features %d and %d share inverses: %v, groups %d and %d", place, other, same, groupOf[place],
					groupOf[other])
			}
		}
	}
	if b.SlotRows != uint64(slotRows) || b.Slots != uint64(slots) {
		t.Fatalf("%d slots for %d rows, want %d for %d", b.Slots, b.SlotRows, slots, slotRows)
	}
}

func checkMonotone(t *rapid.T, inverse []int32, slots int, monotone bool) {
	if !monotone {
		return
	}
	c := vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: len(inverse), Slots: slots, Inverse: inverse,
		Monotone: true}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

// checkExpanded expands every list of b and compares it with what kjt has.
func checkExpanded(t *rapid.T, b, kjt *Batch) {
	var out Jagged
	same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	for k, j := range listsOf(b.Tensors) {
		want := listsOf(kjt.Tensors)[k]
		if err := b.Tensors.Expand(&out, j); err != nil {
			t.Fatal(err)
		}
		for i, place := range out.Features {
			w := slices.Index(want.Features, place)
			if w < 0 {
				t.Fatalf("feature %d is not in the expanded batch", place)
			}
			lo, hi := out.Lists(i)
			wlo, whi := want.Lists(w)
			if hi-lo != b.Rows || !slices.Equal(out.Lengths[lo:hi], want.Lengths[wlo:whi]) ||
				!slices.Equal(out.PresentOf(i), want.PresentOf(w)) {
				t.Fatalf("feature %d: lengths or presence differ", place)
			}
			from, to, wfrom, wto := out.Offsets[lo], out.Offsets[hi], want.Offsets[wlo], want.Offsets[whi]
			ok := false
			switch k {
			case 2:
				ok = slices.EqualFunc(out.FloatValues[from:to], want.FloatValues[wfrom:wto], same)
			case 1:
				ok = slices.Equal(out.Values[from:to], want.Values[wfrom:wto]) &&
					slices.EqualFunc(out.Weights[from:to], want.Weights[wfrom:wto], same)
			case 0:
				ok = slices.Equal(out.Values[from:to], want.Values[wfrom:wto])
			}
			if !ok {
				t.Fatalf("feature %d: values differ", place)
			}
		}
		if len(out.Features) != len(want.Features) {
			t.Fatalf("%d features, want %d", len(out.Features), len(want.Features))
		}
	}
}

// drawExpanded makes a plan expand some of its features, or none.
func drawExpanded(t *rapid.T, p *Plan) {
	if rapid.Bool().Draw(t, "expands") {
		p.Expanded = rapid.SliceOfN(rapid.Bool(), len(p.Features), len(p.Features)).Draw(t, "expanded")
		p.Expanded[rapid.IntRange(0, len(p.Features)-1).Draw(t, "surely")] = true
	}
}

// Groups are those that were written, hold each slot that the batch uses once, and expand to the rows.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		size := drawBatchSize(t)
		dedup := rapid.SampledFrom([]Dedup{DedupIKJT, DedupPartial}).Draw(t, "dedup")
		l := table.dedupLayout(features, size, output, dedup)
		drawExpanded(t, l.plan)
		s := open(t, l, drawOptions(t))
		defer s.Close()
		expanded := open(t, table.layout(features, size, output), drawOptions(t))
		defer expanded.Close()
		var slotRows, slots uint64
		for {
			b, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			rows := indices(int(b.FirstRow) + b.Rows)[b.FirstRow:]
			checkRows(t, table, features, b, rows)
			checkGroups(t, table, features, b, rows)
			kjt, err := expanded.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if kjt.Slots != kjt.SlotRows || kjt.SlotRows != b.SlotRows {
				t.Fatalf("expanded: %d slots of %d rows", kjt.Slots, kjt.SlotRows)
			}
			if output == OutputTensors {
				checkExpanded(t, b, kjt)
			}
			slotRows, slots = slotRows+b.SlotRows, slots+b.Slots
			b.Release()
			kjt.Release()
		}
		want := 1.0
		if slots > 0 {
			want = float64(slotRows) / float64(slots)
		}
		if st := s.Stats(); st.EmittedFactor != want || st.SlotRows != slotRows || st.Slots != slots {
			t.Fatalf("stats %+v, want %d slots of %d rows", st, slots, slotRows)
		}
	})
}

// decodeAll decodes every stripe of a scanner's layout, by hand.
func decodeAll(t *rapid.T, s *Scanner) []*ioplan.Stripe {
	s.x.Budget = memory.NewBudget(1 << 40)
	ctx := context.Background()
	var out []*ioplan.Stripe
	for i := range s.layout.segments {
		g, err := s.layout.loadSegment(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		for k := range g.Stripes() {
			u := s.x.PlanTask(g, k, k+1, s.opts.sizes())
			if err := s.x.Load(ctx, u); err != nil {
				t.Fatal(err)
			}
			st := s.x.Stripe(u, k)
			if err := s.x.DecodeStripes(ctx, []*ioplan.Stripe{st}, 1); err != nil {
				t.Fatal(err)
			}
			out = append(out, st)
		}
	}
	return out
}

// A batch of many small pieces, of some stripes in any order, holds the same as one of few: each slot once, however
// many pieces use it.
func TestGroupsOfManyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := smallShape
		shape.whole = true
		table := drawTable(t, shape)
		features := drawProjection(t, table)
		output := rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output")
		l := table.dedupLayout(features, 1000, output, drawDedup(t))
		drawExpanded(t, l.plan)
		s := open(t, l, drawOptions(t))
		defer s.Close()
		stripes := decodeAll(t, s)
		for range 2 { // the second batch finds the scratch memory of the first
			var pieces []batch.Piece
			for _, st := range stripes {
				for lo := 0; lo < st.Rows; {
					hi := rapid.IntRange(lo+1, st.Rows).Draw(t, "hi")
					if rapid.IntRange(0, 4).Draw(t, "taken") > 0 {
						pieces = append(pieces, batch.Piece{Stripe: st, Lo: lo, Hi: hi})
					}
					lo = hi
				}
			}
			if len(pieces) == 0 {
				return
			}
			if rapid.Bool().Draw(t, "shuffled") {
				pieces = rapid.Permutation(pieces).Draw(t, "pieces")
			}
			d := s.batches.Draft(nil)
			d.Index, d.FirstRow, d.Rows, d.Pieces = 0, 0, 0, d.Pieces[:0]
			var rows []int
			for _, p := range pieces {
				p.At = d.Rows
				d.Pieces = append(d.Pieces, p)
				d.Rows += p.Hi - p.Lo
				for r := p.Lo; r < p.Hi; r++ {
					rows = append(rows, int(p.Stripe.FirstRow)+r)
				}
			}
			s.batches.Make(d)
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			b := d.Batch
			checkRows(t, table, features, b, rows)
			if s.layout.plan.Dedup != DedupKJT {
				checkGroups(t, table, features, b, rows)
			}
			s.batches.Drop(d)
		}
	})
}

// Lists that a fault in telling them apart would mix up.
func TestAdversarialLists(t *testing.T) {
	giant := value{numbers: make([]number64, 100_000)}
	for i := range giant.numbers {
		giant.numbers[i].i = int64(i)
	}
	ids := func(n ...int64) value {
		v := value{}
		for _, x := range n {
			v.numbers = append(v.numbers, number64{i: x})
		}
		return v
	}
	floats := func(n ...float64) value {
		v := value{}
		for _, x := range n {
			v.numbers = append(v.numbers, number64{f: x})
		}
		return v
	}
	scored := func(score float64) value {
		v := ids(1, 2, 3)
		v.scores = []float64{0.5, 0.5, score}
		return v
	}
	sparse := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	doubles := vector.Type{Kind: vector.Sparse, Elem: vector.Float64}
	weighted := vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}
	null := value{null: true}
	otherNaN := math.Float64frombits(0xfff8000020000000) // as a float32 too
	for name, c := range map[string]struct {
		typ     vector.Type
		stripes [][]value // slots
		inverse [][]int32 // of each stripe
	}{
		"all null":        {sparse, [][]value{{null}, {null}}, [][]int32{{0, 0, 0, 0}, {0, 0}}},
		"all empty":       {sparse, [][]value{{ids()}, {ids()}}, [][]int32{{0, 0, 0, 0}, {0, 0}}},
		"null and empty":  {sparse, [][]value{{null, ids()}}, [][]int32{{0, 1, 0, 1, 1}}},
		"one giant list":  {sparse, [][]value{{giant}}, [][]int32{{0, 0, 0}}},
		"stripes of one":  {sparse, [][]value{{ids(1)}, {null}, {ids()}, {ids(1)}}, [][]int32{{0}, {0}, {0}, {0}}},
		"the last id":     {sparse, [][]value{{ids(1, 2, 3), ids(1, 2, 4), ids(1, 2)}}, [][]int32{{0, 0, 1, 0, 2, 1}}},
		"a weight":        {weighted, [][]value{{scored(1), scored(2)}}, [][]int32{{0, 1, 0, 1}}},
		"NaN bits":        {doubles, [][]value{{floats(math.NaN()), floats(otherNaN)}}, [][]int32{{0, 1, 1, 0}}},
		"the sign of a 0": {doubles, [][]value{{floats(0), floats(math.Copysign(0, -1))}}, [][]int32{{0, 1, 1, 0}}},
		"a weight's sign": {weighted, [][]value{{scored(0), scored(math.Copysign(0, -1)), scored(otherNaN)}},
			[][]int32{{0, 1, 2, 1, 0}}},
	} {
		table := writtenTable(t, c.typ, c.stripes, c.inverse)
		for _, output := range []Output{OutputColumns, OutputTensors} {
			for _, dedup := range []Dedup{DedupKJT, DedupIKJT, DedupPartial} {
				for _, size := range []int{1, 2, 3, 100} {
					t.Run(fmt.Sprintf("%s/%v/%v/%d", name, output, dedup, size), func(t *testing.T) {
						s := open(t, table.dedupLayout([]int{0}, size, output, dedup),
							Options{Presence: true, Allocator: dirtyAllocator{}})
						defer s.Close()
						for row := 0; row < len(table.rows); {
							b, err := s.Next(context.Background())
							if err != nil {
								t.Fatal(err)
							}
							checkBatch(t, table, []int{0}, b, row)
							row += b.Rows
							b.Release()
						}
					})
				}
			}
		}
	}
}

// writtenTable writes one feature in one segment: the slots of each stripe and their inverse.
func writtenTable(t *testing.T, typ vector.Type, stripes [][]value, inverse [][]int32) *testTable {
	t.Helper()
	out := &testTable{blobs: &memoryBlobs{objects: map[string][]byte{}}, indexes: map[string]*testIndex{}}
	out.features = []catalog.Feature{{ID: 1, Name: "f", Type: typ}}
	var file bytes.Buffer
	w, err := format.NewWriter(&file, typ, format.WriterOptions{Feature: 1, Name: "f"})
	if err != nil {
		t.Fatal(err)
	}
	index := &testIndex{entries: map[catalog.FeatureID]*segment.Entry{}}
	for i, slots := range stripes {
		if err := w.WriteStripe(slotColumn(typ, slots, inverse[i], false)); err != nil {
			t.Fatal(err)
		}
		for _, s := range inverse[i] {
			out.rows = append(out.rows, []value{slots[s]})
		}
		index.stripeRows = append(index.stripeRows, uint32(len(inverse[i])))
	}
	meta, size, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	index.entries[1] = &segment.Entry{Object: "file", Length: uint64(size), ObjectSize: uint64(size), Meta: meta}
	out.blobs.objects["file"] = file.Bytes()
	out.segments = []catalog.SegmentDescriptor{{ID: "0", Rows: uint64(len(out.rows)), Index: "index.sst", Objects: 1}}
	out.indexes["0"] = index
	return out
}
