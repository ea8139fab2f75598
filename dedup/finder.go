package dedup

import "github.com/dsistore/dsistore/format/vector"

// Options say which steps a Finder may take, and how it knows what they save. The zero value allows all.
type Options struct {
	NoRuns    bool // default false: a row equal to the one before shares its slot
	NoSlots   bool // default false: a row equal to any earlier one of the stripe shares its slot
	NoWindows bool // default false: lists share the values that they have in common
	// Sizer says what a stripe takes in each form. Default: sizes are estimated. It must not be used by another Finder at
	// the same time.
	Sizer Sizer
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
	// slotsMargin is what slots must save against runs: their inverse is not monotone, so that a batch gathers its values.
	slotsMargin = 0.03
	// minWindowShare is the share of the values that windows must save.
	minWindowShare = 0.05
)

// A Finder finds the duplicates in the stripes of one feature, one after the other. Now and then it examines a stripe: it
// takes the form in which it is fetched and decoded soonest, by the bytes that a Sizer says, and keeps to that form until
// it examines the next. The zero Finder is ready after Reset. Not safe for concurrent use. Memory: ScratchBytes of the
// largest stripe and what the Sizer holds; nothing is allocated for a row or a list.
type Finder struct {
	typ      vector.Type
	opts     Options
	stats    Stats
	choice   Choice
	taken    float64 // bytes of the form that the last examination chose; below 0: not known
	v        values
	table    slotTable
	windower windowFinder
	estimate estimator
	starts   []int32 // first row of each run
	codes    []int32 // slot of each run
	slotReps []int32 // first row of each slot, when equal values share one
	rows     []int32 // 0, 1, 2, ...
	reps     []int32 // first row of each slot of the form at hand; borrowed from the three above, or from a Union
	spans    []span
	model    sizeModel

	out                 vector.Column
	inverse             []int32 // memory of out's slices while out does not use them
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

// ScratchBytes bounds the memory that a Finder holds besides what it was given and the Sizer's, for stripes of so many rows
// whose values take that many bytes.
func ScratchBytes(rows, valueBytes int64) int64 {
	// By row: starts, codes, slots' rows, rows, inverse (4 each), spans laid and copied (8 each), the lists' starts and
	// lengths, twice (16), the table (8 for each of at most 4 places); memory that grows is up to a quarter more, or by
	// append up to twice as much. Values: the result's, and floats as bits.
	return estimatorBytes + 192*rows + 3*valueBytes
}

// Find returns c, a plain column of the Finder's type, with its duplicates found: c itself when there is nothing to gain,
// else a column that is borrowed until the next call. c is borrowed for as long.
func (f *Finder) Find(c *vector.Column) *vector.Column {
	before := int64(c.Elements())
	f.stats.Stripes++
	f.stats.Rows += int64(c.Rows)
	f.stats.ElementsBefore += before
	out := f.find(c)
	f.drop()
	if out == c {
		f.stats.Slots += int64(c.Rows)
		f.stats.ElementsAfter += before
		return c
	}
	f.stats.Slots += int64(out.Slots)
	f.stats.ElementsAfter += int64(out.Elements())
	f.stats.SavedBytes += f.choice.saved * float64(c.Rows)
	if out.Lengths != nil {
		f.countWindows()
	}
	return out
}

// Leave counts a stripe that is stored as it is.
func (f *Finder) Leave(c *vector.Column) {
	n := int64(c.Elements())
	f.stats.Add(Stats{Stripes: 1, Rows: int64(c.Rows), Runs: int64(c.Rows), Slots: int64(c.Rows), ElementsBefore: n, ElementsAfter: n})
}

// drop forgets what was borrowed.
func (f *Finder) drop() {
	f.v.drop()
	f.part = vector.Column{}
}

func (f *Finder) find(c *vector.Column) *vector.Column {
	if c.Rows < 2 || c.Type.Kind == vector.Inverse {
		f.stats.Runs += int64(c.Rows)
		return c
	}
	if f.choice.due(f.sampleShare(c)) {
		return f.examine(c)
	}
	step, window := f.choice.step, f.choice.windows
	if step == noStep && !window {
		f.stats.Runs += int64(c.Rows)
		return c
	}
	f.v.set(c, c.Rows)
	f.markRuns(c)
	if step == bySlots {
		f.findSlots()
	}
	if !f.take(c, step) {
		step = noStep
		f.take(c, step)
	}
	window = window && f.layWindows()
	if step == noStep && !window {
		return c
	}
	return f.form(c, step, window)
}

// sampleShare returns the share of the first rows that differ from the one before.
func (f *Finder) sampleShare(c *vector.Column) float64 {
	n := min(c.Rows, sampledRows)
	f.v.set(c, n)
	f.starts = f.v.markRuns(f.starts[:0], n)
	return float64(len(f.starts)) / float64(n)
}

func (f *Finder) markRuns(c *vector.Column) {
	f.starts = f.v.markRuns(f.starts[:0], c.Rows)
	f.stats.Runs += int64(len(f.starts))
}

// findSlots sets codes and slotReps, from starts.
func (f *Finder) findSlots() {
	f.codes = resize(f.codes, len(f.starts))
	f.slotReps = f.table.find(&f.v, f.starts, f.codes, f.slotReps[:0])
}

// take sets reps to the slots that a step makes and reports whether they are fewer than the rows, or there is no step.
func (f *Finder) take(c *vector.Column, s step) bool {
	switch s {
	case byRuns:
		f.reps = f.starts
	case bySlots:
		f.reps = f.slotReps
	default:
		for len(f.rows) < c.Rows {
			f.rows = append(f.rows, int32(len(f.rows)))
		}
		f.reps = f.rows[:c.Rows]
		return true
	}
	return len(f.reps) < c.Rows
}

// form makes the result of the step whose slots reps has and, with window, of the windows laid down.
func (f *Finder) form(c *vector.Column, s step, window bool) *vector.Column {
	var inverse []int32
	switch s {
	case byRuns:
		f.inverse = resize(f.inverse, c.Rows)
		fillRuns(f.inverse, f.starts, nil)
		inverse = f.inverse
	case bySlots:
		f.inverse = resize(f.inverse, c.Rows)
		fillRuns(f.inverse, f.starts, f.codes)
		inverse = f.inverse
	}
	out := f.column(c, inverse, window)
	out.Monotone = s == byRuns
	return out
}

// column makes a column of the slots of reps and, with window, of what is laid down. inverse may be nil.
func (f *Finder) column(c *vector.Column, inverse []int32, window bool) *vector.Column {
	f.takeBack()
	out := &f.out
	out.Type, out.Rows = c.Type, c.Rows
	out.Inverse, out.Monotone, out.InverseBorrowed = inverse, false, false
	out.Present = nil
	if c.Present != nil {
		var nulls bool
		if f.present, nulls = slotPresence(f.present, c.Present, f.reps); nulls {
			out.Present = f.present
		}
	}
	out.Offsets, out.Lengths = out.Offsets[:0], nil
	if window {
		f.spans = append(f.spans[:0], f.windower.laid...)
		out.Offsets = append(f.offsets[:0], f.windower.starts...)
		out.Lengths = append(f.slotLength[:0], f.windower.lengths...)
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

// countWindows counts the slots whose values others store too.
func (f *Finder) countWindows() {
	end := int32(0)
	for i := range f.reps {
		slot := i
		if f.choice.backward {
			slot = len(f.reps) - 1 - i
		}
		n, start := f.windower.lengths[slot], f.windower.starts[slot]
		if n > 0 && start < end {
			f.stats.Windows++
		}
		end = max(end, start+n)
	}
}
