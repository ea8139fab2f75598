package dedup

import (
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// Options say which steps a Finder tries, and how it weighs them. All steps are tried by default.
type Options struct {
	NoRuns    bool // do not share slots between a row and an equal row before it
	NoSlots   bool // do not share slots between a row and an equal earlier row that is not its neighbour
	NoPartial bool // do not store lists as slices of others
	// Sizer returns the stored size of each form. It is required. Finders and Samplers that are used concurrently need
	// different ones.
	Sizer Sizer
	// NsPerByte is how many ns of decoding a stored byte is worth. Default: 8, as in the encodings' chooser (Balanced).
	NsPerByte float64
}

func (o *Options) nsPerByte() float64 {
	if o.NsPerByte == 0 {
		return balancedNsPerByte
	}
	return o.NsPerByte
}

// A Sizer returns the size of encoded stripes. *format.Sizer is one.
type Sizer interface {
	// Reset starts stripes of type t. grouped: their size is without the inverse.
	Reset(t vector.Type, grouped bool)
	// Size returns the bytes of an encoded stripe. c is borrowed for the call.
	Size(c *vector.Column) (int, error)
}

const (
	sampledRows  = 1024
	sampledSlots = 512
	// slotsMargin is the share that slots must save against runs: their inverse is not monotone, so that a reader has
	// to gather the values of a batch.
	slotsMargin = 0.03
	// minPartialShare is the share of the values that partial duplicates must save.
	minPartialShare = 0.05
)

// A Finder finds the duplicates in the stripes of one feature, one stripe after the other. From time to time it
// examines a stripe: it compares the possible forms and uses the one with the lowest cost of fetching and decoding
// until the next examination. The zero Finder is ready after Reset. Not safe for concurrent use. It holds ScratchBytes
// of the largest stripe and the Sizer's memory, and does not allocate per row or list.
//
// reps, at, slotReps, ofRow and ofUnion hold "values": row numbers of Stripe.Values, which has a row for each run or,
// if the runs are not known, for each row.
type Finder struct {
	typ      vector.Type
	opts     Options
	stats    Stats
	choice   Choice
	v        values
	table    slotTable
	partials partialFinder
	estimate estimator
	stripe   Stripe  // the current one
	marked   []int32 // memory of starts
	starts   []int32 // first row of each run
	at       []int32 // value of each run
	codes    []int32 // slot of each run, with bySlots
	slotReps []int32 // value of each slot, with bySlots
	rows     []int32 // 0, 1, 2, ...
	ofRow    []int32 // value of each row, if there are fewer values than rows
	ofUnion  []int32 // value of each slot of a Union, if there are fewer values than rows
	reps     []int32 // value of each slot of the current form; borrowed from those above, or from a Union
	spans    []span

	out, shown          vector.Column // shown borrows the stripe's values
	inverse             []int32       // memory of out's slices while out does not use them
	present             vector.Bitmap
	offsets, slotLength []int32
	part                vector.Column // the first rows of a stripe, whose memory it borrows
	partPresent         vector.Bitmap
}

// Reset starts a feature of type t. known is the Choice after its earlier stripes, or zero. Reset keeps f's memory.
func (f *Finder) Reset(t vector.Type, opts Options, known Choice) {
	f.typ, f.opts, f.stats, f.choice = t, opts, Stats{}, known
	if !known.known {
		f.choice.backward = true
	}
}

// Stats returns the counts since Reset.
func (f *Finder) Stats() Stats { return f.stats }

// Choice returns the current choice, for Reset before the next stripes of the feature.
func (f *Finder) Choice() Choice { return f.choice }

// ScratchBytes bounds the memory of a Finder, in bytes, without its arguments and the Sizer's memory, for stripes of so
// many rows whose values take valueBytes.
func ScratchBytes(rows, valueBytes int64) int64 {
	// Per row: starts, codes, slotReps, rows, ofRow, ofUnion, inverse (4 each), two lists of spans (8 each), starts and
	// lengths of lists, twice (16), the table (8 for each of at most 4 positions). Slices have up to twice the capacity
	// that they need. Values: one copy in the result, and twice as much as a reserve.
	return estimatorBytes + 192*rows + 3*valueBytes
}

// Find returns a column that expands to c, a plain column of the Finder's type, in the form that was chosen. It returns
// c itself if no form costs less. Else the column is borrowed until the next call, and borrows c.
func (f *Finder) Find(c *vector.Column) *vector.Column {
	return f.FindRuns(Stripe{Values: c, Rows: c.Rows})
}

// FindRuns is Find for a stripe whose runs may be known. It returns the same column for the same rows.
func (f *Finder) FindRuns(s Stripe) *vector.Column {
	before := int64(s.Elements())
	f.stats.Stripes++
	f.stats.Rows += int64(s.Rows)
	f.stats.ElementsBefore += before
	out := f.find(s)
	f.drop()
	f.stats.Slots += int64(out.Slots)
	f.stats.ElementsAfter += int64(out.Elements())
	if out.Inverse == nil && out.Lengths == nil {
		return out
	}
	f.stats.SavedBytes += f.choice.saved * float64(s.Rows)
	if out.Lengths != nil {
		f.countPartial()
	}
	return out
}

// Leave counts a stripe that is stored with one slot per row, without examining it.
func (f *Finder) Leave(c *vector.Column) {
	n := int64(c.Elements())
	f.stats.Add(Stats{Stripes: 1, Rows: int64(c.Rows), Runs: int64(c.Rows), Slots: int64(c.Rows), ElementsBefore: n,
		ElementsAfter: n})
}

// drop removes the references to what was borrowed.
func (f *Finder) drop() {
	f.v.drop()
	f.part, f.stripe = vector.Column{}, Stripe{}
}

func (f *Finder) find(s Stripe) *vector.Column {
	f.stripe = s
	if s.Rows < 2 || s.Values.Type.Kind == vector.Inverse {
		f.stats.Runs += int64(s.Rows)
		return s.Values
	}
	if f.choice.grouped { // the choice in a group does not apply to the feature alone
		f.choice = Choice{backward: f.choice.backward}
	}
	if f.choice.due(f.sampleShare(s)) {
		return f.examine()
	}
	step, partial := f.choice.step, f.choice.partial
	if step == noStep && !partial {
		f.stats.Runs += int64(s.Rows)
		return f.plain()
	}
	f.markRuns()
	if step == bySlots {
		f.findSlots()
	}
	if !f.setReps(step) {
		step = noStep
		f.setReps(step)
	}
	partial = partial && f.placePartial()
	return f.form(step, partial)
}

// sampleShare returns the share of the first sampledRows rows that differ from the row before.
func (f *Finder) sampleShare(s Stripe) float64 {
	n := min(s.Rows, sampledRows)
	if s.Starts != nil {
		runs, _ := slices.BinarySearch(s.Starts, int32(n))
		return float64(runs) / float64(n)
	}
	f.v.set(s.Values, n)
	f.marked = f.v.markRuns(f.marked[:0], n)
	return float64(len(f.marked)) / float64(n)
}

// markRuns sets starts, at and v from the stripe.
func (f *Finder) markRuns() {
	s := f.stripe
	f.v.set(s.Values, s.Values.Rows)
	if s.Starts != nil {
		f.starts, f.at = s.Starts, f.count(len(s.Starts))
	} else {
		f.marked = f.v.markRuns(f.marked[:0], s.Rows)
		f.starts, f.at = f.marked, f.marked
	}
	f.stats.Runs += int64(len(f.starts))
}

// count returns 0, 1, 2, ... to n-1.
func (f *Finder) count(n int) []int32 {
	for len(f.rows) < n {
		f.rows = append(f.rows, int32(len(f.rows)))
	}
	return f.rows[:n]
}

// findSlots sets codes and slotReps, from starts.
func (f *Finder) findSlots() {
	f.codes = vector.Resize(f.codes, len(f.starts))
	f.slotReps = f.table.find(&f.v, f.at, f.codes, f.slotReps[:0])
}

// setReps sets reps to the slots of a step. It returns false if a step other than noStep has as many slots as rows.
func (f *Finder) setReps(s step) bool {
	switch s {
	case byRuns:
		f.reps = f.at
	case bySlots:
		f.reps = f.slotReps
	default:
		f.reps = f.eachRow()
		return true
	}
	return len(f.reps) < f.stripe.Rows
}

// eachRow returns the value of each row.
func (f *Finder) eachRow() []int32 {
	s := f.stripe
	if s.Starts == nil {
		return f.count(s.Rows)
	}
	f.ofRow = vector.Resize(f.ofRow, s.Rows)
	fillRuns(f.ofRow, s.Starts, nil)
	return f.ofRow
}

// plain returns the stripe as a plain column.
func (f *Finder) plain() *vector.Column {
	if f.stripe.Values.Rows == f.stripe.Rows {
		return f.stripe.Values
	}
	f.reps = f.eachRow()
	return f.column(nil, false)
}

// form makes the column of step s, whose slots are in reps, with or without partial duplicates.
func (f *Finder) form(s step, partial bool) *vector.Column {
	rows := f.stripe.Rows
	switch s {
	case byRuns:
		f.inverse = vector.Resize(f.inverse, rows)
		fillRuns(f.inverse, f.starts, nil)
		if !partial && f.stripe.Starts != nil { // the stripe's values have a row for each run already
			f.shown = *f.stripe.Values
			f.shown.Rows, f.shown.Inverse, f.shown.Monotone = rows, f.inverse, true
			return &f.shown
		}
	case bySlots:
		f.inverse = vector.Resize(f.inverse, rows)
		fillRuns(f.inverse, f.starts, f.codes)
	default:
		if !partial && len(f.reps) == f.stripe.Values.Rows {
			return f.stripe.Values
		}
		return f.column(nil, partial)
	}
	out := f.column(f.inverse, partial)
	out.Monotone = s == byRuns
	return out
}

// column makes a column of the slots of reps or, with partial, of f.partials. inverse may be nil.
func (f *Finder) column(inverse []int32, partial bool) *vector.Column {
	f.keepMemory()
	c, out := f.stripe.Values, &f.out
	out.Type, out.Rows = c.Type, f.stripe.Rows
	out.Inverse, out.Monotone, out.InverseBorrowed = inverse, false, false
	out.Present = nil
	if c.Present != nil {
		var nulls bool
		if f.present, nulls = slotPresence(f.present, c.Present, f.reps); nulls {
			out.Present = f.present
		}
	}
	out.Offsets, out.Lengths = out.Offsets[:0], nil
	if partial {
		f.spans = append(f.spans[:0], f.partials.placed...)
		out.Offsets = append(f.offsets[:0], f.partials.starts...)
		out.Lengths = append(f.slotLength[:0], f.partials.lengths...)
	} else {
		f.spans, _ = spansOf(f.spans[:0], c, f.reps)
		if c.Type.IsList() {
			out.Offsets = listOffsets(f.offsets, c, f.reps)
		}
	}
	out.Slots = len(f.reps)
	copyValues(out, c, f.spans)
	return out
}

// keepMemory keeps the memory of slices that the next form of out may not need.
func (f *Finder) keepMemory() {
	if f.out.Offsets != nil {
		f.offsets = f.out.Offsets
	}
	if f.out.Lengths != nil {
		f.slotLength = f.out.Lengths
	}
}

// fillRuns sets each row of inverse to the slot of its run: codes[run], or without codes the run's number.
func fillRuns(inverse, starts, codes []int32) {
	for i, start := range starts {
		end := len(inverse)
		if i+1 < len(starts) {
			end = int(starts[i+1])
		}
		slot := int32(i)
		if len(codes) > 0 {
			slot = codes[i]
		}
		run := inverse[start:end]
		for j := range run {
			run[j] = slot
		}
	}
}

// listOffsets returns the offsets of the lists of rows reps of c, end to end, in the memory of offsets.
func listOffsets(offsets []int32, c *vector.Column, reps []int32) []int32 {
	offsets = append(offsets[:0], 0)
	end := int32(0)
	for _, row := range reps {
		lo, hi := c.SlotRange(int(row))
		end += int32(hi - lo)
		offsets = append(offsets, end)
	}
	return offsets
}

// countPartial counts the slots that are partial duplicates.
func (f *Finder) countPartial() {
	end := int32(0)
	for i := range f.reps {
		slot := i
		if f.choice.backward {
			slot = len(f.reps) - 1 - i
		}
		n, start := f.partials.lengths[slot], f.partials.starts[slot]
		if n > 0 && start < end {
			f.stats.Partial++
		}
		end = max(end, start+n)
	}
}
