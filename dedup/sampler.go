package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// A Sampler examines features of a sample for a Grouper, one after the other. It keeps its memory. One for each goroutine.
type Sampler struct {
	finder   Finder
	v        values
	table    slotTable
	estimate estimator
	marked   []int32
	reps     []int32
}

// Sampled is what a Sampler learnt of a feature. Its memory is used again.
type Sampled struct {
	Choice Choice // what it does best by itself

	rows    int
	apart   bool          // some rows differ, and have values: it may share an inverse
	starts  []int32       // first row of each run
	codes   []int32       // slot of each run
	slots   int           // distinct values
	present vector.Bitmap // rows that are neither null nor empty
	rowBits []float32     // what each row takes
	alone   float64       // what it takes by itself, its inverse included, in bits
}

// Sample examines the rows of a feature, which are borrowed for the call. opts say what the feature may do by itself.
func (s *Sampler) Sample(dst *Sampled, rows Stripe, opts Options) {
	dst.Choice, dst.rows, dst.apart = Choice{}, rows.Rows, false
	if rows.Rows < 2 {
		return
	}
	s.finder.Reset(rows.Values.Type, opts, Choice{})
	byItself := s.finder.FindRuns(rows)
	dst.Choice = s.finder.Choice()
	s.v.set(rows.Values, rows.Values.Rows)
	defer s.v.drop()
	var at []int32
	if rows.Starts == nil {
		s.marked = s.v.markRuns(s.marked[:0], rows.Rows)
		dst.starts, at = append(dst.starts[:0], s.marked...), s.marked
	} else {
		dst.starts, at = append(dst.starts[:0], rows.Starts...), s.finder.count(len(rows.Starts))
	}
	dst.codes = resize(dst.codes, len(at))
	s.reps = s.table.find(&s.v, at, dst.codes, s.reps[:0])
	dst.slots = len(s.reps)
	if dst.markPresent(rows) == 0 || len(at) == 1 {
		return // nothing to tell apart: by itself it takes next to nothing
	}
	dst.apart = true
	s.measure(dst, rows, byItself, at, opts.nsPerByte())
}

// measure sets rowBits so that the rows' bits add up to what the feature takes by itself, byItself being its form, and alone to that,
// its inverse included. at are the values of the runs.
func (s *Sampler) measure(dst *Sampled, rows Stripe, byItself *vector.Column, at []int32, nsPerByte float64) {
	cost := s.costOf(rows)
	dst.rowBits = resize(dst.rowBits, rows.Rows)
	all, ofRuns := 0.0, 0.0
	for i, start := range dst.starts {
		bits := float32(cost.row(int(at[i])))
		ofRuns += float64(bits)
		run := dst.rowBits[start : int(start)+dst.length(i)]
		for j := range run {
			run[j] = bits
		}
		all += cost.row(int(at[i])) * float64(len(run))
	}
	inverse := 0.0
	choice := dst.Choice
	switch choice.step {
	case byRuns:
		all = ofRuns
		inverse = inverseBits(rows.Rows, len(dst.starts), 0)
	case bySlots:
		all = 0
		for _, rep := range s.reps {
			all += float64(float32(cost.row(int(rep))))
		}
		inverse = inverseBits(rows.Rows, len(dst.starts), dst.slots)
	}
	took := 8 * s.finder.taken
	if took < 0 {
		took = 8 * s.finder.size(byItself)
	}
	values := max(took-inverse, took/8)
	if all > 0 && values < math.MaxFloat32 {
		scale := float32(values / all)
		for row := range dst.rowBits {
			dst.rowBits[row] *= scale
		}
	}
	if choice.step != noStep {
		inverse += inverseTime(rows.Rows, choice.step == byRuns, nsPerByte)
	}
	dst.alone = values + inverse
}

// length returns how many rows run i has.
func (d *Sampled) length(i int) int { return Stripe{Starts: d.starts, Rows: d.rows}.length(i) }

// markPresent sets present and returns how many rows are neither null nor empty.
func (d *Sampled) markPresent(rows Stripe) int {
	d.present = resize(d.present, vector.BitmapWords(rows.Rows))
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

// A rowCost is what the rows of a column take, in bits.
type rowCost struct {
	c           *vector.Column
	null        float64 // of knowing whether a row is null
	length      float64 // of a list
	elementBits float64
}

// costOf estimates what rows of the stripe, which is in v, take.
func (s *Sampler) costOf(rows Stripe) rowCost {
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
	r.elementBits = s.estimate.valueBits(&s.v, rows)
	if c.Type.Kind == vector.Weighted {
		r.elementBits += scoreBits
	}
	if c.Type.IsList() && present > 0 {
		r.length = 1 + math.Log2(1+float64(rows.Elements())/float64(present))
	}
	return r
}

func (r *rowCost) row(row int) float64 {
	if r.c.Present != nil && !r.c.Present.Get(row) {
		return r.null
	}
	lo, hi := r.c.SlotRange(row)
	return r.null + r.length + r.elementBits*float64(hi-lo)
}
