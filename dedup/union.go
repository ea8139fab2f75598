package dedup

import (
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// A Union makes the one inverse of a stripe that the features of a dedup group share: two rows share a slot when they are
// equal in every feature. By runs, rows that are not neighbours never share one, so that the inverse is monotone. The zero
// Union is ready after Reset. Not safe for concurrent use.
//
//	feature a   x x x y y      feature b   1 2 2 2 1      inverse by runs    0 1 1 2 3      slots   (x,1) (x,2) (y,2) (y,1)
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
	codes  []int32 // of one feature's runs
	reps   []int32 // first row of each slot
	column vector.Column
}

// UnionBytes bounds the memory that a Union holds for stripes of so many rows.
func UnionBytes(rows int64) int64 {
	// By row: the inverse, runs of the group and of a feature, codes, slots' rows (4 each); both tables, of 8 and 12 bytes for
	// each of at most 4 places; memory that grows is a quarter more, or by append twice as much. Floats as bits: 8 at
	// least, and more for lists, which a Finder's memory, not used yet, allows for.
	return 160 * rows
}

// Reset starts a stripe of rows rows, which no feature has told apart yet.
func (u *Union) Reset(rows int, byRuns bool) {
	u.byRuns, u.rows, u.slots = byRuns, rows, min(rows, 1)
	u.column.Inverse = resize(u.column.Inverse, rows)
	clear(u.column.Inverse)
	u.merged = append(u.merged[:0], 0)[:u.slots]
}

// Add tells apart what differs in c, a plain column of the stripe, which is borrowed for the call.
func (u *Union) Add(c *vector.Column) {
	if u.rows == 0 {
		return
	}
	u.v.set(c, c.Rows)
	u.starts = u.v.markRuns(u.starts[:0], c.Rows)
	if u.byRuns {
		u.other = mergeStarts(u.other[:0], u.merged, u.starts)
		u.merged, u.other = u.other, u.merged
		u.slots = len(u.merged)
	} else {
		u.codes = resize(u.codes, len(u.starts))
		u.reps = u.table.find(&u.v, u.starts, u.codes, u.reps[:0])
		u.slots = u.pairs.refine(u.column.Inverse, u.starts, u.codes)
	}
	u.v.drop()
}

// Inverse returns the inverse as a column of its own kind, borrowed until the next Reset.
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

// A pairTable numbers pairs of slots as they first occur.
type pairTable struct {
	keys  []uint64 // pair by place
	slots []int32  // slot+1 by place; 0: free
}

// refine sets each row of inverse to the number of its pair of inverse and the feature's slot, and returns how many pairs
// there are. starts are the first rows of the feature's runs, codes their slots.
func (t *pairTable) refine(inverse, starts, codes []int32) (slots int) {
	size := 1 << bits.Len(uint(max(2*len(inverse), 16)-1))
	t.keys, t.slots = resize(t.keys, size), resize(t.slots, size)
	clear(t.slots)
	mask := uint64(size - 1)
	before, number := ^uint64(0), int32(0)
	for i, start := range starts {
		end := len(inverse)
		if i+1 < len(starts) {
			end = int(starts[i+1])
		}
		part := inverse[start:end]
		for j, g := range part {
			key := uint64(g)<<32 | uint64(codes[i])
			if key != before {
				before = key
				at := fold(key^key0, key1) & mask
				for t.slots[at] != 0 && t.keys[at] != key {
					at = (at + 1) & mask
				}
				if t.slots[at] == 0 {
					slots++
					t.keys[at], t.slots[at] = key, int32(slots)
				}
				number = t.slots[at] - 1
			}
			part[j] = number
		}
	}
	return slots
}

// FindIn returns c, a plain column of the Finder's type and of a stripe of the group whose inverse u holds, with the
// group's slots: the values of each slot once, and windows where they pay. It is borrowed until the next call, and its
// Inverse until u's next Reset. u.Inverse must have been called.
func (f *Finder) FindIn(c *vector.Column, u *Union) *vector.Column {
	before := int64(c.Elements())
	f.stats.Stripes++
	f.stats.Rows += int64(c.Rows)
	f.stats.Runs += int64(u.slots)
	f.stats.Slots += int64(u.slots)
	f.stats.ElementsBefore += before
	f.reps = u.reps
	window := false
	if c.Rows > 1 {
		// Beside windows there is nothing to choose, and what the group saves is examined once.
		due := !f.choice.grouped || f.canWindow(c) && f.choice.due(f.sampleShare(c))
		f.v.set(c, c.Rows)
		switch {
		case due:
			window = f.examineIn(c, u)
		case f.choice.windows:
			window = f.layWindows()
		}
	}
	if u.slots == u.rows && !window {
		f.drop()
		f.stats.ElementsAfter += before
		return c
	}
	f.stats.SavedBytes += f.choice.saved * float64(c.Rows)
	out := f.formIn(c, u, window)
	f.drop()
	if window {
		f.countWindows()
	}
	f.stats.ElementsAfter += int64(out.Elements())
	return out
}

// examineIn reports whether windows pay in a stripe of a group, lays them down, and notes what the group saves.
func (f *Finder) examineIn(c *vector.Column, u *Union) bool {
	f.model.learn(&f.estimate, &f.v, c)
	f.resetSizer(true)
	out := f.formIn(c, u, false)
	saved := f.choice.saved
	if !f.choice.grouped {
		saved = f.savedIn(c, out)
	}
	window := f.seekWindows()
	if window {
		without := f.score(noStep, f.formIn(c, u, false))
		with := f.score(noStep, f.formIn(c, u, true))
		window = with.score < without.score
		if window && !f.choice.grouped {
			saved += (without.bytes - with.bytes) / float64(c.Rows)
		}
	}
	f.choice.keep(noStep, window, saved)
	f.choice.grouped = true
	return window
}

// savedIn estimates the bytes a row that out, a group's form of the plain column c, saves, from the first rows.
func (f *Finder) savedIn(c, out *vector.Column) float64 {
	rows, slots := min(partRows, c.Rows), len(f.reps)
	for slots > 0 && int(f.reps[slots-1]) >= rows {
		slots--
	}
	short := f.size(f.first(out, rows, slots))
	return (f.size(f.first(c, rows, rows)) - short) / float64(rows)
}

// formIn makes a feature's column of a group's stripe, whose slots are in reps.
func (f *Finder) formIn(c *vector.Column, u *Union, window bool) *vector.Column {
	out := f.column(c, nil, window)
	if u.slots < u.rows {
		out.Inverse, out.Monotone, out.InverseBorrowed = u.column.Inverse, u.byRuns, true
	}
	return out
}
