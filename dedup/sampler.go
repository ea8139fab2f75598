package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// A Sampler examines features of a sample for a Grouper, one after the other. It reuses its memory: one for each
// goroutine.
type Sampler struct {
	finder Finder
	reps   []int32 // values that are encoded
}

// Sampled is what a Sampler found out about a feature. Its memory is reused.
type Sampled struct {
	Distinct float64 // which share of the rows has a slot of its own, from 0 to 1

	rows    int           // of the sample
	apart   bool          // rows with values differ, so the feature may join a group
	alone   float64       // cost of the feature outside of a group, with its inverse, in bits
	present vector.Bitmap // rows that are neither null nor empty
	sampledRuns
}

const (
	// About encodedValues values of a feature's sample are encoded to measure their size, in encodedBlocks pieces that
	// are spread over the sample, so that one unusual piece does not decide.
	encodedValues = 1 << 13
	encodedBlocks = 4
	// The approximate cost in bits, size and decoding time, of a row that repeats the row before and is not
	// deduplicated: copyBits for a list, repeatBits for a number.
	copyBits   = 32
	repeatBits = 8
)

// Sample sets dst from the rows of a feature, which are borrowed for the call. opts are those of the feature's Finder.
func (s *Sampler) Sample(dst *Sampled, rows Stripe, opts Options) {
	dst.rows, dst.apart, dst.Distinct = rows.Rows, false, 1
	if rows.Rows < 2 {
		return
	}
	f := &s.finder
	f.Reset(rows.Values.Type, opts, Choice{})
	defer f.drop()
	f.stripe = rows
	f.markRuns()
	f.findSlots()
	dst.starts, dst.codes = append(dst.starts[:0], f.starts...), append(dst.codes[:0], f.codes...)
	dst.slots = len(f.slotReps)
	dst.Distinct = float64(dst.slots) / float64(rows.Rows)
	if dst.markPresent(rows) == 0 || len(f.starts) == 1 {
		return // all rows are equal or have no values: a group would save nothing
	}
	dst.apart = true
	s.measure(dst, rows)
}

// measure sets bits, ofRuns, ofSlots and alone: the cost of the cheapest form.
func (s *Sampler) measure(dst *Sampled, rows Stripe) {
	f := &s.finder
	cost := f.costOf(rows)
	scale := s.encoded(&cost)
	again := float64(repeatBits)
	if rows.Values.Type.IsList() {
		again = copyBits
	}
	dst.bits, dst.ofRuns, dst.ofSlots = vector.Resize(dst.bits, len(dst.starts)), 0, 0
	copied := 0.0 // bits of the rows equal to the row before, with a slot for each
	next := int32(0)
	for i := range dst.starts {
		bits := cost.row(int(f.at[i])) * scale
		dst.bits[i] = float32(bits)
		dst.ofRuns += bits
		if dst.codes[i] == next {
			dst.ofSlots += bits
			next++
		}
		copied += min(float64(dst.length(i)-1)*bits, again)
	}
	nsPerByte := f.opts.nsPerByte()
	inverse := inverseBits(rows.Rows, len(dst.starts), 0)
	dst.alone = dst.ofRuns + inverse + inverseTime(rows.Rows, true, nsPerByte)
	if rows.Rows < plainTimes*len(dst.starts) {
		// Every form has to store which rows change.
		dst.alone = min(dst.alone, dst.ofRuns+max(copied, inverse))
	}
	inverse = inverseBits(rows.Rows, len(dst.starts), dst.slots)
	dst.alone = min(dst.alone, dst.ofSlots+inverse+inverseTime(rows.Rows, false, nsPerByte))
}

// encoded returns the encoded size of a sample of the values, as partial duplicates if that costs less, divided by the
// estimate of cost.
func (s *Sampler) encoded(cost *rowCost) float64 {
	f := &s.finder
	s.reps = appendBlocks(s.reps[:0], f.stripe.Values, f.at)
	estimated := 0.0
	for _, row := range s.reps {
		estimated += cost.row(int(row))
	}
	if estimated == 0 {
		return 1
	}
	f.reps = s.reps
	f.opts.Sizer.Reset(f.typ, true)
	partial := f.findPartial()
	m := f.scoreSlots(partial)
	if partial && !f.partials.clearlyPays() {
		if without := f.scoreSlots(false); without.score < m.score {
			m = without
		}
	}
	if scale := 8 * m.bytes / estimated; scale < math.MaxFloat32 {
		return scale
	}
	return 1 // the form cannot be stored: WriteStripe will return the error
}

// appendBlocks appends the rows of reps whose values are encoded: about encodedValues values, in blocks.
func appendBlocks(dst []int32, c *vector.Column, reps []int32) []int32 {
	values := 0
	for _, row := range reps {
		lo, hi := c.SlotRange(int(row))
		values += max(hi-lo, 1)
	}
	if values <= encodedValues {
		return append(dst, reps...)
	}
	length, end := max(len(reps)*encodedValues/values/encodedBlocks, 1), 0
	for i := range encodedBlocks {
		from := i * (len(reps) - length) / (encodedBlocks - 1)
		if from < end {
			continue // blocks overlap: do not encode a row twice
		}
		end = from + length
		dst = append(dst, reps[from:end]...)
	}
	return dst
}

// length returns how many rows run i has.
func (d *Sampled) length(i int) int { return Stripe{Starts: d.starts, Rows: d.rows}.length(i) }

// markPresent sets present and returns how many rows are neither null nor empty.
func (d *Sampled) markPresent(rows Stripe) int {
	d.present = vector.Resize(d.present, vector.BitmapWords(rows.Rows))
	clear(d.present)
	n := 0
	c := rows.Values
	for i, start := range d.starts {
		row := i
		if rows.Starts == nil {
			row = int(start)
		}
		if lo, hi := c.SlotRange(row); lo < hi && !c.IsNull(row) {
			d.present.SetRange(int(start), int(start)+d.length(i))
			n += d.length(i)
		}
	}
	return n
}

// A rowCost estimates the encoded size of rows of a column, in bits.
type rowCost struct {
	c           *vector.Column
	null        float64 // per row: whether it is null
	length      float64 // per list: its length
	elementBits float64 // per value
}

// costOf returns the rowCost of the stripe, whose values are in f.v.
func (f *Finder) costOf(rows Stripe) rowCost {
	c := rows.Values
	r := rowCost{c: c}
	present := rows.Rows
	if c.Present != nil {
		present = 0
		for i := range c.Rows {
			switch {
			case c.IsNull(i):
			case rows.Starts == nil:
				present++
			default:
				present += rows.length(i)
			}
		}
	}
	r.null = entropy(present, rows.Rows)
	r.elementBits = f.estimate.valueBits(&f.v, rows)
	if c.Type.Kind == vector.Weighted {
		r.elementBits += scoreBits
	}
	if c.Type.IsList() && present > 0 {
		r.length = 1 + math.Log2(1+float64(rows.Elements())/float64(present))
	}
	return r
}

// row returns the bits of a row.
func (r *rowCost) row(row int) float64 {
	if r.c.Present != nil && !r.c.Present.Get(row) {
		return r.null
	}
	lo, hi := r.c.SlotRange(row)
	return r.null + r.length + r.elementBits*float64(hi-lo)
}
