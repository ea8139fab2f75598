package dedup

import (
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// Options say which steps a Finder may take, and how it knows what they save. The zero value of the others than Sizer
// allows all.
type Options struct {
	NoRuns    bool // default false: a row equal to the one before shares its slot
	NoSlots   bool // default false: a row equal to any earlier one of the stripe shares its slot
	NoPartial bool // default false: lists share the values that they have in common
	// Sizer says what a stripe takes in each form. A Finder and a Sampler need one. It must not be used by another of
	// them at the same time.
	Sizer Sizer
	// NsPerByte is what a stored byte counts for, in ns of decoding. Default: 8, as for the encodings' chooser
	// (Balanced).
	NsPerByte float64
}

func (o *Options) nsPerByte() float64 {
	if o.NsPerByte == 0 {
		return balancedNsPerByte
	}
	return o.NsPerByte
}

// A Sizer says what stripes take once encoded. *format.Sizer is one.
type Sizer interface {
	// Reset turns it to stripes of a type; grouped: without their inverse.
	Reset(t vector.Type, grouped bool)
	// Size returns the bytes of a stripe, which is borrowed for the call.
	Size(c *vector.Column) (int, error)
}

const (
	sampledRows  = 1024
	sampledSlots = 512
	// slotsMargin is what slots must save against runs: their inverse is not monotone, so that a batch gathers its
	// values.
	slotsMargin = 0.03
	// minPartialShare is the share of the values that partial duplicates must save.
	minPartialShare = 0.05
)

// A Finder finds the duplicates in the stripes of one feature, one after the other. Now and then it examines a stripe:
// it takes the form in which it is fetched and decoded soonest, by the bytes that a Sizer says, and keeps to that form
// until it examines the next. The zero Finder is ready after Reset. Not safe for concurrent use. Memory: ScratchBytes
// of the largest stripe and what the Sizer holds; nothing is allocated for a row or a list.
type Finder struct {
	typ      vector.Type
	opts     Options
	stats    Stats
	choice   Choice
	v        values
	table    slotTable
	partials partialFinder
	estimate estimator
	stripe   Stripe  // the one at hand
	marked   []int32 // memory of starts
	starts   []int32 // first row of each run
	at       []int32 // value of each run
	codes    []int32 // slot of each run
	slotReps []int32 // value of each slot, when equal ones share one
	rows     []int32 // 0, 1, 2, ...
	ofRow    []int32 // value of each row, when they are fewer
	ofUnion  []int32 // value of each slot of a Union, when they are fewer than the rows
	reps     []int32 // value of each slot of the form at hand; borrowed from those above, or from a Union
	spans    []span

	out, shown          vector.Column // shown borrows its values
	inverse             []int32       // memory of out's slices while out does not use them
	present             vector.Bitmap
	offsets, slotLength []int32
	part                vector.Column // the first rows of a stripe, whose memory it borrows
	partPresent         vector.Bitmap
}

// Reset turns f to the first stripe of a feature of type t, of which known is remembered, keeping its memory.
func (f *Finder) Reset(t vector.Type, opts Options, known Choice) {
	f.typ, f.opts, f.stats, f.choice = t, opts, Stats{}, known
	if !known.known {
		f.choice.backward = true
	}
}

// Stats returns the counts since Reset.
func (f *Finder) Stats() Stats { return f.stats }

// Choice returns what f remembers, for the next stripes of the feature.
func (f *Finder) Choice() Choice { return f.choice }

// ScratchBytes bounds the memory that a Finder holds besides what it was given and the Sizer's, for stripes of so many
// rows whose values take that many bytes.
func ScratchBytes(rows, valueBytes int64) int64 {
	// By row: starts, codes, slots' values, rows, the values of rows and of a union's slots, inverse (4 each), spans
	// placed and copied (8 each), the lists' starts and lengths, twice (16), the table (8 for each of at most 4
	// places); memory that grows is up to a quarter more, or by append up to twice as much. Values: the result's, and
	// twice as much to spare: the bound decides which groups fit.
	return estimatorBytes + 192*rows + 3*valueBytes
}

// Find returns c, a plain column of the Finder's type, with its duplicates found: c itself when there is nothing to
// gain, else a column that is borrowed until the next call. c is borrowed for as long.
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

// Leave counts a stripe that is stored as it is.
func (f *Finder) Leave(c *vector.Column) {
	n := int64(c.Elements())
	f.stats.Add(Stats{Stripes: 1, Rows: int64(c.Rows), Runs: int64(c.Rows), Slots: int64(c.Rows), ElementsBefore: n,
		ElementsAfter: n})
}

// drop forgets what was borrowed.
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
	if f.choice.grouped { // what was known of it in a group says nothing of it alone
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
	if !f.take(step) {
		step = noStep
		f.take(step)
	}
	partial = partial && f.placePartial()
	return f.form(step, partial)
}

// sampleShare returns the share of the first rows that differ from the one before.
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

// markRuns sets starts, at and v.
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

// take sets reps to the slots that a step makes and reports whether they are fewer than the rows, or there is no step.
func (f *Finder) take(s step) bool {
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

// form makes the result of the step whose slots reps has and, with partial, of partial duplicates.
func (f *Finder) form(s step, partial bool) *vector.Column {
	rows := f.stripe.Rows
	switch s {
	case byRuns:
		f.inverse = vector.Resize(f.inverse, rows)
		fillRuns(f.inverse, f.starts, nil)
		if !partial && f.stripe.Starts != nil { // the values are what was given
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

// column makes a column of the slots of reps and, with partial, of the placed values. inverse may be nil.
func (f *Finder) column(inverse []int32, partial bool) *vector.Column {
	f.takeBack()
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

// takeBack keeps the memory of slices that out may give up.
func (f *Finder) takeBack() {
	if f.out.Offsets != nil {
		f.offsets = f.out.Offsets
	}
	if f.out.Lengths != nil {
		f.slotLength = f.out.Lengths
	}
}

// fillRuns sets each row of inverse to the slot of its run: the run's number, or codes where there are any.
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

// countPartial counts the slots whose values others store too.
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
