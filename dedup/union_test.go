package dedup

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// TestGroupRowsStayAsTheyAre: whatever features share an inverse, each expands to its own rows.
func TestGroupRowsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var u Union
		byRuns := rapid.Bool().Draw(rt, "by runs")
		weak := rapid.Bool().Draw(rt, "weak hash")
		u.table.weak = weak
		finders := make([]Finder, rapid.IntRange(1, 4).Draw(rt, "features"))
		ofType := make([]vector.Type, len(finders))
		for i := range finders {
			ofType[i] = rapid.SampledFrom(types).Draw(rt, "type")
			finders[i].Reset(ofType[i], Options{Sizer: new(modelSizer)}, Choice{})
		}
		for range rapid.IntRange(1, 3).Draw(rt, "stripes") {
			var columns []*vector.Column
			var stripes []Stripe
			rows := 1 << 30
			for _, ty := range ofType {
				columns = append(columns, drawColumn(rt, ty))
				rows = min(rows, columns[len(columns)-1].Rows)
			}
			want := make([][]row, len(columns))
			tuples := make([]string, rows)
			u.Reset(rows, byRuns)
			for i, c := range columns {
				cut := vector.NewColumn(c.Type)
				cut.AppendRows(c, 0, rows)
				columns[i], want[i] = cut, modelRows(cut)
				for r := range rows {
					tuples[r] += fmt.Sprint(want[i][r] == nil, []uint64(want[i][r]), ";")
				}
				stripes = append(stripes, drawStripe(rt, cut))
				u.Add(stripes[i])
			}
			inverse := u.Inverse()
			if err := inverse.Validate(); err != nil {
				rt.Fatal(err)
			}
			if n := modelSlots(tuples, byRuns); !weak && n != inverse.Slots {
				rt.Fatalf("%d slots: want %d", inverse.Slots, n)
			}
			for i := range columns {
				got := *finders[i].FindIn(stripes[i], &u)
				if got.Slots != inverse.Slots {
					rt.Fatalf("%d slots in a group of %d", got.Slots, inverse.Slots)
				}
				got.Inverse, got.Monotone = inverse.Inverse, inverse.Monotone // as a reader puts them together
				checkEqual(rt, want[i], &got)
			}
		}
	})
}

// modelSlots returns the slots of rows that are equal in every feature.
func modelSlots(tuples []string, byRuns bool) int {
	if byRuns {
		return len(slices.Compact(slices.Clone(tuples)))
	}
	slices.Sort(tuples)
	return len(slices.Compact(tuples))
}

func TestGrouperFindsWhatRepeatsTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const rows = 8192
	// Features 0 to 3 change with sessions of kind a, 4 to 6 with those of kind b, 7 to 9 with one of 500 items; 10 and
	// 11 with nothing. Each is null in some sessions, or for some items.
	var g Grouper
	g.Reset(rows, 1<<30, Options{})
	change := func(p int) []int {
		out, n := make([]int, rows), 0
		for i := range out {
			if rng.IntN(100) < p {
				n++
			}
			out[i] = n
		}
		return out
	}
	a, b, items := change(10), change(25), make([]int, rows)
	for i := range items {
		items[i] = rng.IntN(500)
	}
	for number := range 12 {
		of := a
		switch {
		case number >= 10:
			of = change(100)
		case number >= 7:
			of = items
		case number >= 4:
			of = b
		}
		ty := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
		if number%2 == 1 {
			ty.Kind = vector.Sparse
		}
		c := vector.NewColumn(ty)
		for _, version := range of {
			h := rand.New(rand.NewPCG(uint64(number), uint64(version)))
			list := []int{h.IntN(1 << 20)}
			switch p := h.IntN(100); {
			case p < 15:
				list = nil
			case ty.IsList():
				list = append(list, h.IntN(1<<20), h.IntN(1<<20))
			}
			appendModel(c, list)
		}
		g.Add(number, sampled(c), 1, 100)
	}
	got := fmt.Sprint(g.Groups())
	if want := "[{[0 1 2 3] true} {[4 5 6] true} {[7 8 9] false}]"; got != want {
		t.Errorf("groups %s: want %s", got, want)
	}
}

func sampled(c *vector.Column) *Sampled {
	var s Sampler
	var out Sampled
	s.Sample(&out, runsOf(c), Options{Sizer: new(modelSizer)})
	return &out
}

// TestSampledIsUsedAgain: a Sampled says nothing of the feature that it was of before.
func TestSampledIsUsedAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Sampler
	var again Sampled
	for _, rows := range []int{3000, 500, 2000} {
		for _, ty := range types {
			c := sessions(ty, rows, rows != 500, rng)
			s.Sample(&again, runsOf(c), Options{Sizer: new(modelSizer)})
			fresh := sampled(c)
			if again.apart != fresh.apart || again.Distinct != fresh.Distinct {
				t.Fatalf("%v, %d rows: %+v, want %+v", ty, rows, again, fresh)
			}
			if again.apart && fmt.Sprint(again) != fmt.Sprint(*fresh) {
				t.Fatalf("%v, %d rows: it costs %g, %g and %g bits, and used again %g, %g and %g", ty, rows,
					fresh.alone, fresh.ofRuns, fresh.ofSlots, again.alone, again.ofRuns, again.ofSlots)
			}
		}
	}
}

func TestGrouperKeepsWithinItsLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := sessions(vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, 2048, true, rng)
	var g Grouper
	g.Reset(c.Rows, 1<<30, Options{})
	for i := range 7 {
		g.Add(i, sampled(c), 10, 30)
	}
	if got, want := fmt.Sprint(g.Groups()), "[{[0 1 2] true} {[3 4 5] true}]"; got != want {
		t.Errorf("groups %s: want %s", got, want)
	}
	g.Reset(c.Rows, 1<<30, Options{})
	f := sampled(c)
	for i := range maxGroups + 10 {
		g.Add(i, f, 1, 1)
	}
	if len(g.groups) != maxGroups {
		t.Errorf("%d groups: want %d at most", len(g.groups), maxGroups)
	}
	g.Reset(c.Rows, 0, Options{})
	for i := range 7 {
		g.Add(i, sampled(c), 10, 30)
	}
	if got := g.Groups(); len(got) > 0 {
		t.Errorf("groups %v in no memory", got)
	}
}

// A failingSizer has no size for stripes of more slots than most.
type failingSizer struct{ most int }

func (failingSizer) Reset(vector.Type, bool) {}

func (s failingSizer) Size(c *vector.Column) (int, error) {
	if c.Slots > s.most {
		return 0, errors.New("too large")
	}
	return 10 * c.Slots, nil
}

// TestSavedBytesAreFinite: a Sizer that fails, for all forms or for the plain one alone, makes no count of NaN or of
// infinity, which a report has no number for.
func TestSavedBytesAreFinite(t *testing.T) {
	ty := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	for _, most := range []int{-1, 40} {
		for _, rows := range []int{2, partRows, 5000} {
			c := vector.NewColumn(ty)
			for i := range rows {
				appendModel(c, []int{i % 7, i % 7})
			}
			var alone, grouped Finder
			alone.Reset(ty, Options{Sizer: failingSizer{most}}, Choice{})
			alone.Find(c)
			var u Union
			u.Reset(rows, false)
			u.Add(Stripe{Values: c, Rows: rows})
			u.Inverse()
			grouped.Reset(ty, Options{Sizer: failingSizer{most}}, Choice{})
			grouped.FindIn(Stripe{Values: c, Rows: rows}, &u)
			for name, f := range map[string]*Finder{"alone": &alone, "in a group": &grouped} {
				if saved := f.Stats().SavedBytes; math.IsNaN(saved) || math.IsInf(saved, 0) {
					t.Errorf("sizes up to %d slots, %d rows, %s: %v bytes saved", most, rows, name, saved)
				}
			}
		}
	}
}
