package dedup

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// A Union makes the inverse that the features of a dedup group share in a stripe: two rows share a slot if they are
// equal in every feature. By runs, only neighbouring rows share a slot, so that the inverse is monotone. The zero Union
// is ready after Reset. Not safe for concurrent use.
//
//	feature a          x x x y y
//	feature b          1 2 2 2 1
//	inverse by runs    0 1 1 2 3      slots   (x,1) (x,2) (y,2) (y,1)
type Union struct {
	byRuns bool
	rows   int
	slots  int

	v      values
	table  slotTable
	pairs  pairTable
	starts []int32 // first rows of one feature's runs
	merged []int32 // by runs: first rows of the union's runs
	other  []int32
	runs   []int32 // 0, 1, 2, ...
	codes  []int32 // of one feature's runs
	reps   []int32 // first row of each slot
	column vector.Column
}

// UnionBytes bounds the memory of a Union, in bytes, for stripes of so many rows.
func UnionBytes(rows int64) int64 {
	// Per row: the inverse, starts, merged, other, runs, codes, pairs.codes, reps (4 each); both tables, of 8 and 12
	// bytes for each of at most 4 positions. Slices have up to twice the capacity that they need.
	return 160 * rows
}

// Reset starts a stripe of rows rows.
func (u *Union) Reset(rows int, byRuns bool) {
	u.byRuns, u.rows, u.slots = byRuns, rows, min(rows, 1)
	u.column.Inverse = vector.Resize(u.column.Inverse, rows)
	clear(u.column.Inverse)
	u.merged = append(u.merged[:0], 0)[:u.slots]
}

// Add separates the rows that differ in s, the stripe of one feature, which is borrowed for the call.
func (u *Union) Add(s Stripe) {
	if u.rows == 0 {
		return
	}
	starts, at := s.Starts, s.Starts
	if starts == nil || !u.byRuns {
		u.v.set(s.Values, s.Values.Rows)
	}
	if starts == nil {
		u.starts = u.v.markRuns(u.starts[:0], s.Rows)
		starts, at = u.starts, u.starts
	}
	if u.byRuns {
		u.other = mergeStarts(u.other[:0], u.merged, starts)
		u.merged, u.other = u.other, u.merged
		u.slots = len(u.merged)
	} else {
		if s.Starts != nil {
			for len(u.runs) < len(starts) {
				u.runs = append(u.runs, int32(len(u.runs)))
			}
			at = u.runs[:len(starts)]
		}
		u.codes = vector.Resize(u.codes, len(starts))
		u.reps = u.table.find(&u.v, at, u.codes, u.reps[:0])
		u.slots = u.pairs.refine(u.column.Inverse, starts, u.codes)
	}
	u.v.drop()
}

// Inverse returns the inverse as a column of kind vector.Inverse, borrowed until the next Reset.
func (u *Union) Inverse() *vector.Column {
	c := &u.column
	c.Type, c.Rows, c.Slots, c.Monotone = vector.Type{Kind: vector.Inverse}, u.rows, u.slots, u.byRuns
	if u.byRuns {
		fillRuns(c.Inverse, u.merged, nil)
		u.reps = append(u.reps[:0], u.merged...)
		return c
	}
	u.reps = u.reps[:0]
	for row, s := range c.Inverse {
		if int(s) == len(u.reps) {
			u.reps = append(u.reps, int32(row))
		}
	}
	return c
}

// mergeStarts appends both ascending lists to dst, each row once.
func mergeStarts(dst, a, b []int32) []int32 {
	for len(a) > 0 && len(b) > 0 {
		x := min(a[0], b[0])
		dst = append(dst, x)
		if a[0] == x {
			a = a[1:]
		}
		if b[0] == x {
			b = b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// pairSeed and pairFactor are random for each process, so that nobody can make rows whose pairs all collide. The result
// does not depend on them: every pair is found, and numbered in the order in which pairs first occur.
var pairSeed, pairFactor = rand.Uint64(), rand.Uint64() | 1

// A pairTable numbers pairs of slots. Open addressing, at most half full. It is emptied without a pass over it: numbers
// from before the last reset are below those since.
type pairTable struct {
	keys   []uint64 // pair by position
	slots  []int32  // by position: number + 1 + before, or a free one's: before or less
	before int32
	most   int32   // before, at the next reset
	codes  []int32 // the feature's slot by slot of the inverse
}

// reset empties t and makes room for n pairs, with numbers below n.
func (t *pairTable) reset(n int) {
	size := 1 << bits.Len(uint(max(2*n, 16)-1))
	t.keys, t.slots = vector.Resize(t.keys, size), vector.Resize(t.slots, size)
	if int(t.most) > math.MaxInt32-n {
		clear(t.slots[:cap(t.slots)])
		t.most = 0
	}
	t.before, t.most = t.most, t.most+int32(n)
}

// number returns the number of a pair. A new pair gets the number next.
func (t *pairTable) number(pair uint64, next int32) int32 {
	mask := uint64(len(t.slots) - 1)
	at := pairHash(pair) & mask
	for ; t.slots[at] > t.before; at = (at + 1) & mask {
		if t.keys[at] == pair {
			return t.slots[at] - 1 - t.before
		}
	}
	t.keys[at], t.slots[at] = pair, t.before+1+next
	return next
}

// pairOf returns the pair of a slot of an inverse and a slot of a feature.
func pairOf(slot, code int32) uint64 { return uint64(slot)<<32 | uint64(code) }

// same reports whether the feature separates no rows of a slot of inverse: all rows of the slot are in one slot of the
// feature. If so, slots is the number of slots of inverse, which numbers them in the order in which they first occur.
func (t *pairTable) same(inverse, starts, codes []int32) (slots int, same bool) {
	t.codes = vector.Resize(t.codes, len(inverse))
	for i, start := range starts {
		end := len(inverse)
		if i+1 < len(starts) {
			end = int(starts[i+1])
		}
		code := codes[i]
		for _, g := range inverse[start:end] {
			if int(g) == slots {
				t.codes[slots] = code
				slots++
			} else if t.codes[g] != code {
				return 0, false
			}
		}
	}
	return slots, true
}

// pairHash returns the hash of a pair. A random factor may mix badly, so a known good one is applied first.
func pairHash(key uint64) uint64 { return fold(fold(key^pairSeed, key1), pairFactor) }

// refine separates the rows of inverse that are in different slots of a feature: it sets each row to the number of its
// pair (slot of inverse, slot of the feature), and returns how many pairs there are. Slots of inverse, before and
// after, are numbered in the order in which they first occur. starts are the first rows of the feature's runs, codes
// their slots.
func (t *pairTable) refine(inverse, starts, codes []int32) (slots int) {
	if slots, same := t.same(inverse, starts, codes); same {
		return slots
	}
	t.reset(len(inverse))
	before, number := ^uint64(0), int32(0)
	for i, start := range starts {
		end := len(inverse)
		if i+1 < len(starts) {
			end = int(starts[i+1])
		}
		part := inverse[start:end]
		for j, g := range part {
			if pair := pairOf(g, codes[i]); pair != before {
				before = pair
				number = t.number(pair, int32(slots))
				if int(number) == slots {
					slots++
				}
			}
			part[j] = number
		}
	}
	return slots
}

// FindIn returns a column that expands to s, with the inverse of the dedup group, which is in u. It has the value of
// each slot of the group once, as partial duplicates if that costs less. The column is borrowed until the next call,
// its Inverse until u's next Reset. u.Inverse must have been called.
func (f *Finder) FindIn(s Stripe, u *Union) *vector.Column {
	before := int64(s.Elements())
	f.stats.Stripes++
	f.stats.Rows += int64(s.Rows)
	f.stats.Runs += int64(u.slots)
	f.stats.Slots += int64(u.slots)
	f.stats.ElementsBefore += before
	f.stripe = s
	f.reps = f.valuesOf(u.reps)
	partial := false
	if s.Rows > 1 {
		// In a group only partial duplicates are a choice. Other features are examined once, to set choice.saved.
		due := !f.choice.isIn(u) || f.canShareValues(s.Values) && f.choice.due(f.sampleShare(s))
		if due || f.choice.partial {
			f.v.set(s.Values, s.Values.Rows)
		}
		switch {
		case due:
			partial = f.examineIn(u)
		case f.choice.partial:
			partial = f.placePartial()
		}
	}
	out := s.Values
	if u.slots < u.rows || partial || out.Rows < s.Rows {
		f.stats.SavedBytes += f.choice.saved * float64(s.Rows)
		out = f.formIn(u, partial)
	}
	f.drop()
	if partial {
		f.countPartial()
	}
	f.stats.ElementsAfter += int64(out.Elements())
	return out
}

// valuesOf returns the values (see Finder) of rows, which ascend.
func (f *Finder) valuesOf(rows []int32) []int32 {
	starts := f.stripe.Starts
	if starts == nil {
		return rows
	}
	f.ofUnion = vector.Resize(f.ofUnion, len(rows))
	run := 0
	for i, row := range rows {
		for run+1 < len(starts) && starts[run+1] <= row {
			run++
		}
		f.ofUnion[i] = int32(run)
	}
	return f.ofUnion
}

// Partial duplicates of a group are measured on the slots of the first examinedRows rows, or fewer if their lists have
// more than examinedValues values.
const (
	examinedRows   = 4096
	examinedValues = 1 << 14
)

// examineIn reports whether partial duplicates pay in a stripe of a group, and places them. The first time in such a
// group it measures choice.saved.
func (f *Finder) examineIn(u *Union) bool {
	saved, known := f.choice.saved, f.choice.isIn(u)
	if !known {
		saved = f.savedIn(u)
	}
	partial := f.findPartial()
	switch {
	case !partial:
	case f.partials.clearlyPays():
		if !known {
			saved += copyBits / 8 * float64(u.slots) / float64(u.rows)
		}
	default:
		all := f.reps
		f.reps = all[:f.examinedSlots(u)]
		f.opts.Sizer.Reset(f.typ, true)
		f.partials.walk(&f.v, f.reps, f.choice.backward)
		without, with := f.scoreSlots(false), f.scoreSlots(true)
		partial = with.score < without.score
		if partial && !known {
			saved += (without.bytes - with.bytes) / float64(len(f.reps)) * float64(u.slots) / float64(u.rows)
		}
		f.reps = all
		partial = partial && f.placePartial()
	}
	f.choice.keep(noStep, partial, saved)
	f.choice.grouped, f.choice.byRuns = true, u.byRuns
	return partial
}

// savedIn returns how many bytes per row it saves that rows share the group's slots, measured on the first rows; on the
// whole stripe if clearly more of its rows come again. Each form has the encodings that are chosen for it.
func (f *Finder) savedIn(u *Union) float64 {
	rows := partRows
	if u.byRuns {
		rows /= 4 // rows come again at once
	}
	rows = min(rows, u.rows)
	slots, _ := slices.BinarySearch(u.reps, int32(rows))
	if 4*(rows-slots)*u.rows < 3*(u.rows-u.slots)*rows {
		rows, slots = u.rows, u.slots
	}
	if slots == rows {
		return 0
	}
	f.opts.Sizer.Reset(f.typ, true)
	plain := f.sizeRows(rows)
	all := f.reps
	f.reps = all[:slots]
	f.opts.Sizer.Reset(f.typ, true)
	repeated := (plain - f.scoreSlots(false).bytes) / float64(rows-slots)
	f.reps = all
	return finite(repeated * float64(u.rows-u.slots) / float64(u.rows))
}

// finite returns x, or 0 for what a Sizer that fails makes of it.
func finite(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// examinedSlots returns how many of the group's slots are measured, at least one.
func (f *Finder) examinedSlots(u *Union) int {
	values := 0
	for i, rep := range f.reps {
		lo, hi := f.v.c.SlotRange(int(rep))
		values += hi - lo
		if u.reps[i] >= examinedRows || values > examinedValues {
			return max(i, 1)
		}
	}
	return len(f.reps)
}

// scoreSlots returns the cost of the slots of reps, without an inverse.
func (f *Finder) scoreSlots(partial bool) measure {
	rows := f.stripe.Rows
	f.stripe.Rows = len(f.reps)
	m := f.score(noStep, f.column(nil, partial))
	f.stripe.Rows = rows
	return m
}

// formIn makes a feature's column of a group's stripe, whose slots are in reps.
func (f *Finder) formIn(u *Union, partial bool) *vector.Column {
	out := f.column(nil, partial)
	if u.slots < u.rows {
		out.Inverse, out.Monotone, out.InverseBorrowed = u.column.Inverse, u.byRuns, true
	}
	return out
}
