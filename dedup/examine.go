package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

const (
	// A plain stripe with plainTimes as many values as another form surely decodes more slowly. Its size is then
	// estimated from partRows rows of both instead of encoding it whole.
	plainTimes = 4
	partRows   = 2048 // a multiple of 64
)

// A measure is the cost of a form of a stripe.
type measure struct {
	step     step
	bytes    float64 // stored
	elements int     // stored values
	score    float64 // bytes and decoding time, in ns
}

// examine chooses the form of the stripe and returns it.
func (f *Finder) examine() *vector.Column {
	f.markRuns()
	elements := f.stripe.Elements()
	f.opts.Sizer.Reset(f.typ, false)
	best := measure{score: math.Inf(1)}
	if !f.opts.NoRuns && f.setReps(byRuns) {
		best = f.measure(byRuns, false)
	}
	if !f.opts.NoSlots && len(f.starts) > 1 {
		f.findSlots()
		if f.slotsMayPay(best) && f.setReps(bySlots) {
			if m := f.measure(bySlots, false); m.score < best.score*(1-slotsMargin) {
				best = m
			}
		}
	}
	plain := -1.0
	if best.step != noStep && elements < plainTimes*best.elements {
		f.setReps(noStep)
		m := f.measure(noStep, false)
		plain = m.bytes
		if m.score <= best.score {
			best = m
		}
	}
	f.setReps(best.step)
	partial := f.findPartial()
	switch {
	case best.step != noStep && plain < 0:
		plain = f.plainBytes(elements, best)
	case partial && plain < 0:
		best = f.measure(noStep, false)
		plain = best.bytes
	}
	if partial {
		if m := f.measure(best.step, true); m.score < best.score {
			best = m
		} else {
			partial = false
		}
	}
	if best.step == noStep && !partial {
		f.choice.keep(noStep, false, 0)
		return f.plain()
	}
	f.choice.keep(best.step, partial, finite((plain-best.bytes)/float64(f.stripe.Rows)))
	return f.form(best.step, partial)
}

// slotsMayPay reports whether slots are worth measuring: they have clearly fewer slots or values than the form measured
// before, if there is one. Their inverse is larger and slower than that of runs.
func (f *Finder) slotsMayPay(before measure) bool {
	if before.step == noStep {
		return len(f.slotReps) < len(f.starts)
	}
	if float64(len(f.slotReps)) < (1-slotsMargin)*float64(len(f.starts)) {
		return true
	}
	var n int
	f.spans, n = spansOf(f.spans[:0], f.stripe.Values, f.slotReps)
	return float64(n) < (1-slotsMargin)*float64(before.elements)
}

// measure returns the cost of step s, whose slots are in reps, with or without partial duplicates.
func (f *Finder) measure(s step, partial bool) measure { return f.score(s, f.form(s, partial)) }

// score returns the cost of a form of a stripe.
func (f *Finder) score(s step, out *vector.Column) measure {
	b := f.size(out)
	return measure{step: s, bytes: b, elements: out.Elements(), score: b*f.opts.nsPerByte() + decodeTime(out)}
}

// size returns the stored bytes of a form. It returns +Inf, so that the form is not used, if the Sizer fails.
func (f *Finder) size(out *vector.Column) float64 {
	n, err := f.opts.Sizer.Size(out)
	if err != nil {
		return math.Inf(1)
	}
	return float64(n)
}

// plainBytes returns the stored bytes of the stripe with one slot per row, which has so many elements. If it has many
// more than the form m, whose slots are in reps, it is estimated from the first rows of both.
func (f *Finder) plainBytes(elements int, m measure) float64 {
	// The Sizer keeps to the encodings that it chose: here those of another form.
	f.opts.Sizer.Reset(f.typ, false)
	defer f.opts.Sizer.Reset(f.typ, false)
	rows := f.stripe.Rows
	if rows <= 2*partRows || elements < plainTimes*m.elements {
		return f.sizeRows(rows)
	}
	slots := len(f.reps)
	for slots > 0 && f.firstRow(f.reps[slots-1]) >= partRows {
		slots--
	}
	plain := f.sizeRows(partRows)
	f.opts.Sizer.Reset(f.typ, false)
	short := f.size(f.first(f.form(m.step, false), partRows, slots))
	return m.bytes * plain / max(short, 1)
}

// firstRow returns the first row of value at, an element of reps.
func (f *Finder) firstRow(at int32) int32 {
	if f.stripe.Starts == nil {
		return at
	}
	return f.stripe.Starts[at]
}

// sizeRows returns the stored bytes of the first rows with one slot per row. It leaves reps as it was.
func (f *Finder) sizeRows(rows int) float64 {
	if f.stripe.Values.Rows == f.stripe.Rows {
		return f.size(f.first(f.stripe.Values, rows, rows))
	}
	reps, whole := f.reps, f.stripe.Rows
	f.reps, f.stripe.Rows = f.eachRow()[:rows], rows
	n := f.size(f.column(nil, false))
	f.reps, f.stripe.Rows = reps, whole
	return n
}

// first returns the first rows of c, which use only its first slots, as a column that is borrowed until the next call.
func (f *Finder) first(c *vector.Column, rows, slots int) *vector.Column {
	p := &f.part
	*p = *c
	if rows == c.Rows && slots == c.Slots {
		return p
	}
	p.Rows, p.Slots = rows, slots
	if c.Inverse != nil {
		p.Inverse = c.Inverse[:rows]
	}
	if c.Present != nil {
		f.partPresent = append(f.partPresent[:0], c.Present[:vector.BitmapWords(slots)]...)
		if r := slots & 63; r != 0 {
			f.partPresent[len(f.partPresent)-1] &= 1<<r - 1
		}
		p.Present = f.partPresent
	}
	n := 0
	if slots > 0 {
		_, n = c.SlotRange(slots - 1)
	}
	if c.Type.IsList() {
		p.Offsets = c.Offsets[:slots+1]
	}
	p.Ints, p.Floats, p.Doubles, p.Data = cut(c.Ints, n), cut(c.Floats, n), cut(c.Doubles, n), cut(c.Data, n)
	p.ScoreFloats, p.ScoreDoubles = cut(c.ScoreFloats, n), cut(c.ScoreDoubles, n)
	return p
}

func cut[T any](s []T, n int) []T { return s[:min(n, len(s))] }

// canShareValues reports whether lists of c's type may share values.
func (f *Finder) canShareValues(c *vector.Column) bool {
	return !f.opts.NoPartial && c.Type.IsList() && c.Type.Physical() != vector.ByteValues
}

// findPartial reports whether enough values of the slots of reps are partial duplicates. It tries both directions on a
// sample, and places the slots in the better one.
func (f *Finder) findPartial() bool {
	c := f.v.c
	if !f.canShareValues(c) || len(f.reps) < 2 {
		return false
	}
	sample := f.reps[:min(len(f.reps), sampledSlots)]
	f.partials.walk(&f.v, sample, f.choice.backward)
	left := f.partials.end
	total := f.partials.values()
	f.partials.walk(&f.v, sample, !f.choice.backward)
	if f.partials.end < left {
		left, f.choice.backward = f.partials.end, !f.choice.backward
	}
	if total == 0 || float64(total-int(left)) < minPartialShare*float64(total) {
		return false
	}
	return f.placePartial()
}

// placePartial places the slots of reps as partial duplicates and reports whether they share enough values.
func (f *Finder) placePartial() bool {
	if len(f.reps) < 2 {
		return false
	}
	f.partials.walk(&f.v, f.reps, f.choice.backward)
	total := f.partials.values()
	return total > 0 && float64(total-int(f.partials.end)) >= minPartialShare*float64(total)
}
