package dedup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

func TestRowsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ty := rapid.SampledFrom(types).Draw(rt, "type")
		opts := Options{Sizer: new(modelSizer), NoRuns: rapid.Bool().Draw(rt, "no runs"),
			NoSlots:   rapid.Bool().Draw(rt, "no slots"),
			NoPartial: rapid.Bool().Draw(rt, "no partial")}
		var f Finder
		f.table.weak = rapid.Bool().Draw(rt, "weak hash")
		f.Reset(ty, opts, Choice{})
		for range rapid.IntRange(1, 4).Draw(rt, "stripes") {
			c := drawColumn(rt, ty)
			want := modelRows(c)
			checkEqual(rt, want, f.FindRuns(drawStripe(rt, c)))
			checkEqual(rt, want, c)
		}
	})
}

// TestEveryStepStaysEqual takes each step whether it pays or not.
func TestEveryStepStaysEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ty := rapid.SampledFrom(types).Draw(rt, "type")
		var f Finder
		f.table.weak = rapid.Bool().Draw(rt, "weak hash")
		f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
		for range rapid.IntRange(1, 3).Draw(rt, "stripes") {
			c := drawColumn(rt, ty)
			if c.Rows == 0 {
				continue
			}
			want := modelRows(c)
			f.stripe = drawStripe(rt, c)
			f.markRuns()
			f.findSlots()
			if n := distinct(want); !f.table.weak && n != len(f.slotReps) {
				rt.Fatalf("%d slots for %d values", len(f.slotReps), n)
			}
			step := rapid.SampledFrom([]step{noStep, byRuns, bySlots}).Draw(rt, "step")
			f.setReps(step)
			partial := ty.IsList() && rapid.Bool().Draw(rt, "partial")
			f.choice.backward = rapid.Bool().Draw(rt, "backward")
			if partial {
				f.partials.walk(&f.v, f.reps, f.choice.backward)
			}
			out := f.form(step, partial)
			checkEqual(rt, want, out)
			if !partial && c.Rows > 2 {
				slots := 0
				for slots < len(f.reps) && f.firstRowOf(step, slots) < 2 {
					slots++
				}
				checkEqual(rt, want[:2], f.first(out, 2, slots))
			}
		}
	})
}

// firstRowOf returns the first row of a slot of reps, where the step gives each row a slot too.
func (f *Finder) firstRowOf(s step, slot int) int32 {
	if s == noStep {
		return int32(slot)
	}
	return f.firstRow(f.reps[slot])
}

// drawStripe returns the rows of a plain column as a gatherer may give them: with runs or without.
func drawStripe(t *rapid.T, c *vector.Column) Stripe {
	if rapid.Bool().Draw(t, "plain") {
		return Stripe{Values: c, Rows: c.Rows}
	}
	return runsOf(c)
}

// runsOf returns the rows of a plain column with each run of equal rows once.
func runsOf(c *vector.Column) Stripe {
	rows := modelRows(c)
	s := Stripe{Values: vector.NewColumn(c.Type), Starts: []int32{}, Rows: c.Rows}
	for i := range rows {
		if i > 0 && slices.Equal(rows[i], rows[i-1]) && (rows[i] == nil) == (rows[i-1] == nil) {
			continue
		}
		s.Values.AppendRow(c, i)
		s.Starts = append(s.Starts, int32(i))
	}
	return s
}

// TestRunsSayTheSame: a stripe whose runs are given has the form, choice and counts of one whose runs are not.
func TestRunsSayTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ty := rapid.SampledFrom(types).Draw(rt, "type")
		opts := Options{Sizer: new(modelSizer), NoRuns: rapid.Bool().Draw(rt, "no runs"),
			NoSlots:   rapid.Bool().Draw(rt, "no slots"),
			NoPartial: rapid.Bool().Draw(rt, "no partial")}
		var plain, runs Finder
		plain.Reset(ty, opts, Choice{})
		runs.Reset(ty, opts, Choice{})
		var s Sampler
		for range rapid.IntRange(1, 4).Draw(rt, "stripes") {
			c := drawColumn(rt, ty)
			compact := runsOf(c)
			a, b := plain.Find(c), runs.FindRuns(compact)
			expanded, err := a.Expanded()
			if err != nil {
				rt.Fatal(err)
			}
			checkEqual(rt, modelRows(expanded), b)
			if a.Slots != b.Slots || a.Elements() != b.Elements() || a.Monotone != b.Monotone ||
				(a.Lengths == nil) != (b.Lengths == nil) {
				rt.Fatalf("forms differ: %d and %d slots, %d and %d values", a.Slots, b.Slots, a.Elements(),
					b.Elements())
			}
			if plain.Stats() != runs.Stats() || plain.Choice() != runs.Choice() {
				rt.Fatalf("%+v %+v, of runs %+v %+v", plain.Stats(), plain.Choice(), runs.Stats(), runs.Choice())
			}
			var one, other Sampled
			s.Sample(&one, Stripe{Values: c, Rows: c.Rows}, opts)
			s.Sample(&other, compact, opts)
			if !reflect.DeepEqual(one, other) {
				rt.Fatalf("samples differ: %+v and %+v", one, other)
			}
		}
	})
}

func distinct(rows []row) int {
	seen := map[string]bool{}
	for _, r := range rows {
		seen[fmt.Sprint(r == nil, []uint64(r))] = true
	}
	return len(seen)
}

// sessions makes rows that repeat for as long as a session lasts on average, with histories that slide.
func sessions(ty vector.Type, rows int, newest bool, rng *rand.Rand) *vector.Column {
	c := vector.NewColumn(ty)
	var list []int
	for range rows {
		switch p := rng.IntN(100); {
		case p < 6 || list == nil:
			list = make([]int, 40)
			for i := range list {
				list[i] = rng.IntN(1 << 14)
			}
			if !ty.IsList() {
				list = list[:max(ty.Width(), 1)]
			}
		case p < 20 && ty.IsList() && newest:
			list = slices.Concat([]int{rng.IntN(1 << 14)}, list[:39])
		case p < 20 && ty.IsList():
			list = slices.Concat(list[1:], []int{rng.IntN(1 << 14)})
		}
		appendModel(c, list)
	}
	return c
}

func TestFindsWhatRepeats(t *testing.T) {
	for _, ty := range []vector.Type{{Kind: vector.Sparse, Elem: vector.Int64},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}} {
		for _, newest := range []bool{true, false} {
			c := sessions(ty, 4096, newest, rand.New(rand.NewPCG(1, 2)))
			var f Finder
			f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
			out := f.Find(c)
			checkEqual(t, modelRows(c), out)
			s := f.Stats()
			// A session is 16.7 rows and 3.3 lists of 40, 2.3 of which add one id.
			if !out.Monotone || out.Lengths == nil || s.Slots > 1000 || s.Factor() < 14 || s.Partial < s.Slots/2 {
				t.Errorf("%v, newest first %v: %+v, factor %.1f", ty, newest, s, s.Factor())
			}
		}
	}
}

func TestFindsWhatCameBack(t *testing.T) {
	ty := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	rng := rand.New(rand.NewPCG(3, 4))
	lists := make([][]int, 100)
	for i := range lists {
		for range 20 {
			lists[i] = append(lists[i], rng.IntN(1<<16))
		}
	}
	c := vector.NewColumn(ty)
	for range 4096 {
		appendModel(c, lists[rng.IntN(100)])
	}
	var f Finder
	f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
	out := f.Find(c)
	checkEqual(t, modelRows(c), out)
	if out.Slots != 100 || out.Monotone {
		t.Errorf("%d slots, monotone %v", out.Slots, out.Monotone)
	}
	f.Reset(ty, Options{NoSlots: true, NoPartial: true, Sizer: new(modelSizer)}, Choice{})
	if out := f.Find(c); out.Slots < 4000 {
		t.Errorf("%d slots without looking for them", out.Slots)
	}
}

// TestNothingToFind: a feature without duplicates comes out as it went in, and soon is no longer searched.
func TestNothingToFind(t *testing.T) {
	for _, ty := range []vector.Type{{Kind: vector.Dense, Elem: vector.Int64},
		{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Bytes}} {
		rng := rand.New(rand.NewPCG(5, 6))
		c := vector.NewColumn(ty)
		for i := range 4096 {
			if ty.IsList() {
				appendModel(c, []int{rng.IntN(1 << 20), rng.IntN(1 << 20), i, rng.IntN(1 << 20), rng.IntN(1 << 20),
					i % 256})
			} else {
				appendModel(c, []int{i * 977})
			}
		}
		var f Finder
		f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
		for range 25 {
			if f.Find(c) != c {
				t.Fatalf("%v: %+v", ty, f.Stats())
			}
		}
		if f.choice.waited != 31 {
			t.Errorf("%v: examined again after %d stripes", ty, f.choice.waited)
		}
	}
}

// TestTimeIsLinear: values made to be slow take no more than a few times what random ones do.
func TestTimeIsLinear(t *testing.T) {
	ty := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	column := func(row func(i int) []int) *vector.Column {
		c := vector.NewColumn(ty)
		for i := range 4096 {
			appendModel(c, row(i))
		}
		return c
	}
	rng := rand.New(rand.NewPCG(7, 8))
	zeros := make([]int, 100)
	cases := map[string]*vector.Column{
		"random": column(func(int) []int {
			l := slices.Clone(zeros)
			for i := range l {
				l[i] = rng.IntN(1 << 30)
			}
			return l
		}),
		"equal but for the last id":  column(func(i int) []int { return slices.Concat(zeros, []int{i}) }),
		"equal but for the first id": column(func(i int) []int { return slices.Concat([]int{i}, zeros) }),
		"longer by one":              column(func(i int) []int { return zeros[:i%100] }),
	}
	took := map[string]time.Duration{}
	for name, c := range cases {
		var f Finder
		f.table.weak = true
		best := time.Hour
		for range 3 {
			start := time.Now()
			f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
			out := f.Find(c)
			best = min(best, time.Since(start))
			checkEqual(t, modelRows(c), out)
		}
		took[name] = best
	}
	for name, d := range took {
		if d > 100*max(took["random"], 100*time.Microsecond) {
			t.Errorf("%s: %v, random lists %v", name, d, took["random"])
		}
	}
}

func TestOneGiantList(t *testing.T) {
	ty := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	giant := make([]int, 1<<20)
	for i := range giant {
		giant[i] = i * 31
	}
	c := vector.NewColumn(ty)
	for i := range 8 {
		appendModel(c, giant[i:])
	}
	var f Finder
	f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
	out := f.Find(c)
	checkEqual(t, modelRows(c), out)
	if out.Elements() > len(giant)+100 {
		t.Errorf("%d values are stored", out.Elements())
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	for _, ty := range types {
		rng := rand.New(rand.NewPCG(9, 10))
		c := sessions(ty, 2048, true, rng)
		if ty.Elem == vector.Bool {
			continue
		}
		var f Finder
		f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
		f.Find(c)
		if n := testing.AllocsPerRun(20, func() { f.Find(c) }); n > 0 {
			t.Errorf("%v: %v allocations/stripe", ty, n)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("abcabcabdbcd"), uint8(4), uint8(3))
	f.Add([]byte{0, 0, 0, 0, 0, 0}, uint8(7), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, kind, width uint8) {
		ty := types[int(kind)%len(types)]
		c := vector.NewColumn(ty)
		n := int(width%16) + 1
		if !ty.IsList() {
			n = ty.Width()
		}
		for len(data) > n {
			l := make([]int, 0, n)
			take := n
			if ty.IsList() {
				take = int(data[0]) % (n + 1)
			}
			for _, b := range data[1 : 1+take] {
				if ty.Elem.FirstOutOfRange([]int64{int64(b)}) == 0 {
					b &= 1
				}
				l = append(l, int(b))
			}
			if data[0] == 255 {
				l = nil
			}
			data = data[1+take:]
			appendModel(c, l)
		}
		for _, opts := range []Options{{}, {NoSlots: true}, {NoPartial: true}, {NoRuns: true}} {
			opts.Sizer = new(modelSizer)
			var find Finder
			find.Reset(ty, opts, Choice{})
			checkEqual(t, modelRows(c), find.Find(c))
			checkEqual(t, modelRows(c), find.Find(c))
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for _, ty := range []vector.Type{
		{Kind: vector.Dense, Elem: vector.Float32}, {Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Sparse,
			Elem: vector.Int64},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32},
	} {
		c := sessions(ty, 16384, true, rand.New(rand.NewPCG(1, 2)))
		b.Run(ty.String(), func(b *testing.B) {
			b.ReportAllocs()
			var f Finder
			f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
			for b.Loop() {
				f.Find(c)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16384, "ns/row")
		})
	}
}

// Rows that are encoded to learn what values take are encoded once each, spread over all, however few and long their
// lists are.
func TestEncodedRowsAreDistinct(t *testing.T) {
	for _, x := range []struct{ rows, length int }{{1, 3 * encodedValues}, {2, encodedValues}, {3, encodedValues},
		{4, encodedValues}, {5, encodedValues}, {9, 2000},
		{1000, 50}, {encodedValues, 1}, {4 * encodedValues, 3}} {
		c := vector.NewColumn(vector.Type{Kind: vector.Sparse, Elem: vector.Int64})
		var reps []int32
		for r := range x.rows {
			c.Ints = append(c.Ints, make([]int64, x.length)...)
			c.AddSlot()
			reps = append(reps, int32(r))
		}
		got := appendBlocks(nil, c, reps)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%d lists of %d: some rows are encoded twice: %d", x.rows, x.length, got[:min(len(got), 8)])
		}
		if got[0] != 0 || got[len(got)-1] != int32(x.rows-1) {
			t.Errorf("%d lists of %d: rows %d to %d are encoded", x.rows, x.length, got[0], got[len(got)-1])
		}
	}
}
