package dedup

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// numbered returns the numbers of the keys, in the order in which they first occur.
func numbered[K comparable](keys []K) []int32 {
	seen, out := map[K]int32{}, make([]int32, len(keys))
	for i, k := range keys {
		if _, ok := seen[k]; !ok {
			seen[k] = int32(len(seen))
		}
		out[i] = seen[k]
	}
	return out
}

// runsOfSlots returns the runs of rows with these slots. A row of slot s has bits[s] bits.
func runsOfSlots(slots []int32, bits []float32) *sampledRuns {
	r := new(sampledRuns)
	for row, s := range slots {
		if row > 0 && s == slots[row-1] {
			continue
		}
		if int(s) == r.slots {
			r.slots++
			r.ofSlots += float64(bits[s])
		}
		r.ofRuns += float64(bits[s])
		r.starts, r.codes, r.bits = append(r.starts, int32(row)), append(r.codes, s), append(r.bits, bits[s])
	}
	return r
}

// drawSlots draws the slots of rows, with two at least, and the bits of each slot.
func drawSlots(rt *rapid.T, name string, rows int) ([]int32, []float32) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, name), 1))
	values, change, most := 2+rng.IntN(rows), 1+rng.IntN(100), 1+rng.IntN(1000)
	keys := make([]int, rows)
	for i := range keys {
		switch {
		case i > 0 && rng.IntN(100) >= change:
			keys[i] = keys[i-1]
		default:
			keys[i] = rng.IntN(values)
		}
	}
	keys[rows-1] = -1
	bits := make([]float32, rows)
	for i := range bits {
		bits[i] = float32(rng.IntN(most)) // a sum of them is exact
	}
	return numbered(keys), bits
}

// TestTogether holds the runs of a group with a feature, and what they cost, to those of pairs of rows' slots; and a
// search that ends early to one that does not.
func TestTogether(t *testing.T) {
	var g Grouper // its memory is used again
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.IntRange(2, 300).Draw(rt, "rows")
		g.Reset(rows, 1<<30, Options{})
		slotsA, bitsA := drawSlots(rt, "a", rows)
		slotsB, bitsB := slotsA, bitsA
		if rapid.IntRange(0, 4).Draw(rt, "other") > 0 {
			slotsB, bitsB = drawSlots(rt, "b", rows)
		}
		pairs := make([][2]int32, rows)
		for i := range pairs {
			pairs[i] = [2]int32{slotsA[i], slotsB[i]}
		}
		slots := numbered(pairs)
		bits := make([]float32, rows)
		for i, s := range slots {
			bits[s] = bitsA[slotsA[i]] + bitsB[slotsB[i]]
		}
		want := runsOfSlots(slots, bits)
		a, b := runsOfSlots(slotsA, bitsA), runsOfSlots(slotsB, bitsB)
		cost, ok := g.together(a, b, math.Inf(1))
		got := &g.tried
		if !ok || !slices.Equal(got.starts, want.starts) || !slices.Equal(got.codes, want.codes) ||
			!slices.Equal(got.bits, want.bits) || got.slots != want.slots || got.ofRuns != want.ofRuns ||
			got.ofSlots != want.ofSlots {
			rt.Fatalf("%v\n%v\ntogether %t %+v\nwant %+v", a, b, ok, got, want)
		}
		byRuns, bySlots := g.inverseCost(len(want.starts), want.slots)
		if least := min(byRuns+want.ofRuns, bySlots+want.ofSlots); cost != least {
			rt.Fatalf("cost %g: want %g", cost, least)
		}
		for _, most := range []float64{cost * rapid.Float64Range(0.2, 2).Draw(rt, "most"), cost, cost + 1e-6} {
			if least, below := g.together(a, b, most); below != (cost < most) || below && least != cost {
				rt.Fatalf("below %g: %g %t; it costs %g", most, least, below, cost)
			}
		}
	})
}

// TestPairsAfterManyResets: the numbers of a pairTable that was emptied without a pass over it come to their end, and
// start again.
func TestPairsAfterManyResets(t *testing.T) {
	var p pairTable
	for i, n := range []int{100, 100, 10, 100, 100} {
		if i == 1 {
			p.most = math.MaxInt32 - 105 // so that it starts again with 10 pairs, in part of the memory
		}
		p.reset(n)
		for k := range int32(n) {
			if got := p.number(pairOf(k, k), k); got != k {
				t.Fatalf("reset %d: pair %d has number %d: want a new one", i, k, got)
			}
		}
		for k := range int32(n) {
			if got := p.number(pairOf(k, k), 1000); got != k {
				t.Fatalf("reset %d: pair %d has number %d", i, k, got)
			}
		}
	}
}

// TestGroupsHoldWhatTheyMay: features that make no group of two or more hold no more than is allowed, nor do groups
// that grow.
func TestGroupsHoldWhatTheyMay(t *testing.T) {
	const rows, most = 1000, 30_000
	for _, inverse := range []float64{1, 1e4} { // costs of an inverse: groups do not pay, or any features make one
		rng := rand.New(rand.NewPCG(5, 6))
		var g Grouper
		g.Reset(rows, most, Options{})
		grown := 0
		for number := range 40 {
			slots, bits := make([]int32, rows), make([]float32, rows)
			for i := 1; i < rows; i++ {
				slots[i], bits[i] = slots[i-1], 1
				if rng.IntN(4) == 0 || i == rows/2 {
					slots[i]++
				}
			}
			f := Sampled{rows: rows, apart: true, sampledRuns: *runsOfSlots(slots, bits)}
			f.alone = f.ofRuns + inverse
			before := g.held
			g.Add(number, &f, 1, 4) // four features at most are in a group
			held := int64(0)
			for _, k := range g.groups {
				held += k.bytes()
				if n := 4 * (cap(k.starts) + cap(k.codes) + cap(k.bits)); int64(n) != k.bytes() {
					t.Fatalf("runs of %d bytes are counted as %d", n, k.bytes())
				}
			}
			if held != g.held || held > most {
				t.Fatalf("after %d features the groups hold %d bytes, counted as %d: want at most %d", number+1, held,
					g.held, most)
			}
			if held > before {
				grown++
			}
		}
		if grown < 4 || grown > 36 || g.held < most-6000 {
			t.Fatalf("%d features were added, in %d bytes: the test shows nothing", grown, g.held)
		}
	}
}

// A modelGroup is a candidate, row by row.
type modelGroup struct {
	members []int
	slots   []int32
	present []bool
	bits    []float32 // by slot
	cost    float64
	weight  int64
}

// join returns m with another, and what they cost together without a file for the inverse.
func (m *modelGroup) join(g *Grouper, o *modelGroup) *modelGroup {
	pairs := make([][2]int32, len(m.slots))
	out := &modelGroup{members: append(slices.Clone(m.members), o.members...), present: make([]bool, len(m.slots)),
		bits: make([]float32, len(m.slots)), weight: m.weight + o.weight}
	for row := range pairs {
		pairs[row] = [2]int32{m.slots[row], o.slots[row]}
		out.present[row] = m.present[row] || o.present[row]
	}
	out.slots = numbered(pairs)
	for row, s := range out.slots {
		out.bits[s] = m.bits[m.slots[row]] + o.bits[o.slots[row]]
	}
	r := runsOfSlots(out.slots, out.bits)
	byRuns, bySlots := g.inverseCost(len(r.starts), r.slots)
	out.cost = min(byRuns+r.ofRuns, bySlots+r.ofSlots)
	return out
}

// alike reports whether rows of both change together, in most of the first quickRows rows.
func (m *modelGroup) alike(o *modelGroup) bool {
	both, differ := 0, 0
	for row := 1; row < min(len(m.slots), quickRows); row++ {
		if !m.present[row] || !m.present[row-1] || !o.present[row] || !o.present[row-1] {
			continue
		}
		both++
		if (m.slots[row] != m.slots[row-1]) != (o.slots[row] != o.slots[row-1]) {
			differ++
		}
	}
	return 8*differ <= both
}

// TestGrouperIsTheModel holds the groups to those of a search row by row that looks at every group to its end.
func TestGrouperIsTheModel(t *testing.T) {
	var g Grouper // is used again
	joined := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		rows := 2 + rng.IntN(1500)
		limit := int64(3 + rng.IntN(30))
		g.Reset(rows, 1<<30, Options{})
		var kinds [3][]int
		for k := range kinds {
			kinds[k] = make([]int, rows)
			for i := 1; i < rows; i++ {
				kinds[k][i] = kinds[k][i-1]
				if rng.IntN(2+5*k) == 0 {
					kinds[k][i] = rng.IntN(rows)
				}
			}
		}
		var model []*modelGroup
		for number := range 25 {
			f := &modelGroup{members: []int{number}, present: make([]bool, rows), weight: 1 + rng.Int64N(3),
				bits: make([]float32, rows)}
			keys, noise := slices.Clone(kinds[rng.IntN(3)]), rng.IntN(6)
			for i := range keys {
				if rng.IntN(100) < noise {
					keys[i] = -rng.IntN(rows)
				}
				if noise%3 == 0 && keys[i]%5 == 0 {
					keys[i] = -1 << 20 // null
				}
				f.present[i] = keys[i] != -1<<20
			}
			keys[rows-1] = 1 << 20 // two values at least
			f.present[rows-1] = true
			f.slots = numbered(keys)
			most := 1 + rng.IntN(200)
			for i := range f.bits {
				f.bits[i] = float32(rng.IntN(most))
			}
			r := runsOfSlots(f.slots, f.bits)
			byRuns, bySlots := g.inverseCost(len(r.starts), r.slots)
			f.cost = min(byRuns+r.ofRuns, bySlots+r.ofSlots)
			sampled := Sampled{rows: rows, apart: true, alone: f.cost, sampledRuns: *r,
				present: make(vector.Bitmap, vector.BitmapWords(rows))}
			for i, has := range f.present {
				if has {
					sampled.present.Set(i)
				}
			}
			g.Add(number, &sampled, f.weight, limit)
			best, gain := -1, 0.0
			var with *modelGroup
			for i, k := range model {
				if k.weight+f.weight > limit || !k.alike(f) {
					continue
				}
				both := k.join(&g, f)
				if len(k.members) == 1 {
					both.cost += fileBits
				}
				if saved := k.cost + f.cost - both.cost; saved > gain {
					best, gain, with = i, saved, both
				}
			}
			if best < 0 {
				model = append(model, f)
			} else {
				model[best] = with
				joined++
			}
		}
		var want, got [][]int
		for _, k := range model {
			want = append(want, k.members)
		}
		held := int64(0)
		for _, k := range g.groups {
			got = append(got, k.Members)
			held += k.bytes()
		}
		if held != g.held {
			t.Fatalf("%d bytes are counted as %d", held, g.held)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
			t.Fatalf("seed %d, %d rows: groups %v: want %v", seed, rows, got, want)
		}
	}
	if joined < 500 || joined > 4500 {
		t.Fatalf("%d features joined a group: the test shows little", joined)
	}
}
