package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// Options say which steps a Finder may take. The zero value allows all.
type Options struct {
	NoRuns    bool // default false: a row equal to the one before shares its slot
	NoSlots   bool // default false: a row equal to any earlier one of the stripe shares its slot
	NoWindows bool // default false: lists share the values that they have in common
}

const (
	scoreBits    = 8 // of one score, about
	sampledRows  = 1024
	sampledSlots = 512
	maxSkip      = 15 // stripes
	// A step must save this many times what it costs: decoding pays for it too.
	runsMargin, slotsMargin, windowsMargin = 1.1, 1.25, 1.25
	// minWindowShare is the share of the values that windows must save.
	minWindowShare = 0.05
)

// A Finder finds the duplicates in the stripes of one feature, one after the other. It remembers from stripe to stripe
// what paid. The zero Finder is ready after Reset. Not safe for concurrent use. Memory: scratch in proportion to the
// largest stripe; nothing is allocated for a row or a list.
type Finder struct {
	typ   vector.Type
	opts  Options
	stats Stats

	// What did not pay is not looked for in the next few stripes.
	runs, slots, windows backoff
	// backward is the direction that windows went last.
	backward bool

	v        values
	table    slotTable
	windower windowFinder
	estimate estimator
	starts   []int32 // first row of each run
	codes    []int32 // slot of each run
	reps     []int32 // first row of each slot
	spans    []span

	out                 vector.Column
	inverse             []int32 // memory of out's slices while out does not use them
	present             vector.Bitmap
	offsets, slotLength []int32
}

// A backoff counts stripes until a step that did not pay is tried again: 1, 3, 7, 15.
type backoff struct{ skip, last int }

func (b *backoff) due() bool {
	if b.skip == 0 {
		return true
	}
	b.skip--
	return false
}

func (b *backoff) paid(yes bool) {
	b.skip, b.last = 0, 2*b.last+1
	if b.last = min(b.last, maxSkip); yes {
		b.last = 0
	}
	b.skip = b.last
}

// Reset turns f to the first stripe of a feature of type t, keeping its memory.
func (f *Finder) Reset(t vector.Type, opts Options) {
	f.typ, f.opts, f.stats = t, opts, Stats{}
	f.runs, f.slots, f.windows, f.backward = backoff{}, backoff{}, backoff{}, true
}

// Stats returns the counts since Reset.
func (f *Finder) Stats() Stats { return f.stats }

// Find returns c, a plain column of the Finder's type, with its duplicates found: c itself when there is nothing to gain,
// else a column that is borrowed until the next call. c is borrowed for as long.
func (f *Finder) Find(c *vector.Column) *vector.Column {
	before := int64(c.Elements())
	f.stats.Stripes++
	f.stats.Rows += int64(c.Rows)
	f.stats.ElementsBefore += before
	out := f.find(c)
	f.v.drop()
	if out == c {
		f.stats.Slots += int64(c.Rows)
		f.stats.ElementsAfter += before
		return c
	}
	f.stats.Slots += int64(out.Slots)
	f.stats.ElementsAfter += int64(out.Elements())
	return out
}

func (f *Finder) find(c *vector.Column) *vector.Column {
	if c.Rows < 2 || c.Type.Kind == vector.Inverse {
		f.stats.Runs += int64(c.Rows)
		return c
	}
	if !f.runs.due() && !f.sampleRepeats(c) {
		f.stats.Runs += int64(c.Rows)
		return c
	}
	f.v.set(c, c.Rows)
	f.starts = f.v.markRuns(f.starts[:0], c.Rows)
	f.stats.Runs += int64(len(f.starts))
	slotBits, elementBits := f.costs(c)
	inverse := f.chooseInverse(c, slotBits)
	window := f.chooseWindows(c, elementBits)
	f.runs.paid(inverse || window)
	if !inverse && !window {
		return c
	}
	if !inverse {
		return f.column(c, nil, window)
	}
	f.inverse = resize(f.inverse, c.Rows)
	fillRuns(f.inverse, f.starts, f.codes)
	out := f.column(c, f.inverse, window)
	out.Monotone = len(f.codes) == 0
	return out
}

// sampleRepeats reports whether some of the first rows repeat the one before.
func (f *Finder) sampleRepeats(c *vector.Column) bool {
	n := min(c.Rows, sampledRows)
	f.v.set(c, n)
	f.starts = f.v.markRuns(f.starts[:0], n)
	return len(f.starts) < n-n/8
}

// costs estimates the bits that a slot takes, and that each of its values takes with its score.
func (f *Finder) costs(c *vector.Column) (slotBits, elementBits float64) {
	present := c.Rows
	if c.Present != nil {
		present = c.Present.Count()
	}
	slotBits = entropy(present, c.Rows)
	if present == 0 {
		return slotBits, 0
	}
	elements := c.Elements()
	elementBits = f.estimate.valueBits(&f.v, elements)
	if c.Type.Kind == vector.Weighted {
		elementBits += scoreBits
	}
	slotBits += elementBits * float64(elements) / float64(c.Rows)
	if c.Type.IsList() {
		slotBits += float64(present) / float64(c.Rows) * (1 + math.Log2(1+float64(elements)/float64(present)))
	}
	return slotBits, elementBits
}

// chooseInverse sets reps to the first rows of the slots that pay, and reports whether there are fewer than rows. With
// codes it sets f.codes, else empties it.
func (f *Finder) chooseInverse(c *vector.Column, slotBits float64) bool {
	rows, runs := c.Rows, len(f.starts)
	f.codes = f.codes[:0]
	runsGain := 0.0
	if !f.opts.NoRuns && runs < rows {
		cost := float64(rows)*entropy(runs, rows) + streamBits
		gain := float64(rows-runs) * slotBits
		if gain > runsMargin*cost {
			runsGain = gain - cost
		}
		if runs == 1 {
			runsGain = gain + 1 // one slot takes no inverse
		}
	}
	if !f.opts.NoSlots && runs > 1 && slotBits > 0 && f.slots.due() {
		f.codes = resize(f.codes, runs)
		f.reps = f.table.find(&f.v, f.starts, f.codes, f.reps[:0])
		slots := len(f.reps)
		cost := float64(runs)*math.Log2(float64(slots)+1) + streamBits
		if runs < rows {
			cost += float64(rows)*entropy(runs, rows) + streamBits
		}
		gain := float64(rows-slots) * slotBits
		pays := slots < runs && gain > slotsMargin*cost && gain-cost > max(runsGain, 0)*1.05
		f.slots.paid(pays)
		if pays {
			return true
		}
	}
	f.codes = f.codes[:0]
	if runsGain > 0 {
		f.reps = append(f.reps[:0], f.starts...)
		return true
	}
	f.reps = resize(f.reps, rows)
	for i := range f.reps {
		f.reps[i] = int32(i)
	}
	return false
}

// chooseWindows lays the lists of reps down and reports whether that pays.
func (f *Finder) chooseWindows(c *vector.Column, elementBits float64) bool {
	if f.opts.NoWindows || !c.Type.IsList() || c.Type.Physical() == vector.ByteValues || len(f.reps) < 2 || !f.windows.due() {
		return false
	}
	// Both directions on a sample, the one of the last stripe first.
	sample := f.reps[:min(len(f.reps), sampledSlots)]
	total := 0
	for _, row := range sample {
		lo, hi := c.SlotRange(int(row))
		total += hi - lo
	}
	f.windower.walk(&f.v, sample, f.backward)
	left := int(f.windower.end)
	f.windower.walk(&f.v, sample, !f.backward)
	if other := int(f.windower.end); other < left {
		left, f.backward = other, !f.backward
	}
	if float64(total-left) < minWindowShare*float64(total) || total == 0 {
		f.windows.paid(false)
		return false
	}
	f.windower.walk(&f.v, f.reps, f.backward)
	total = 0
	for _, n := range f.windower.lengths {
		total += int(n)
	}
	saved := total - int(f.windower.end)
	// A start is told by its distance from the one before it.
	mean := float64(total) / float64(len(f.reps))
	cost := float64(len(f.reps))*(1+math.Log2(2+mean)) + streamBits
	pays := float64(saved) >= minWindowShare*float64(total) && float64(saved)*elementBits > windowsMargin*cost
	f.windows.paid(pays)
	return pays
}

// column makes the result of reps and, with window, of what is laid down. inverse may be nil.
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
		f.countWindows()
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
		if f.backward {
			slot = len(f.reps) - 1 - i
		}
		n, start := f.windower.lengths[slot], f.windower.starts[slot]
		if n > 0 && start < end {
			f.stats.Windows++
		}
		end = max(end, start+n)
	}
}
