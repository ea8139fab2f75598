package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

const (
	// A plain stripe with plainTimes the values of another form is sure to decode more slowly: it is not encoded whole to
	// learn what it takes, but partRows rows of both are.
	plainTimes = 4
	partRows   = 2048 // a multiple of 64
)

// A measure is what a form of a stripe takes.
type measure struct {
	step     step
	bytes    float64
	elements int
	score    float64
}

// examine chooses the form of a stripe and returns it.
func (f *Finder) examine(c *vector.Column) *vector.Column {
	f.v.set(c, c.Rows)
	f.markRuns(c)
	f.model.learn(&f.estimate, &f.v, c)
	f.resetSizer(false)
	best := measure{score: math.Inf(1)}
	if !f.opts.NoRuns && f.take(c, byRuns) {
		best = f.measure(c, byRuns, false)
	}
	if !f.opts.NoSlots && len(f.starts) > 1 {
		f.findSlots()
		if f.slotsMayPay(c, best) && f.take(c, bySlots) {
			if m := f.measure(c, bySlots, false); m.score < best.score*(1-slotsMargin) {
				best = m
			}
		}
	}
	plain := -1.0
	if best.step != noStep && c.Elements() < plainTimes*best.elements {
		m := f.measure(c, noStep, false)
		plain = m.bytes
		if m.score <= best.score {
			best = m
		}
	}
	f.take(c, best.step)
	window := f.seekWindows()
	switch {
	case best.step != noStep && plain < 0:
		plain = f.plainBytes(c, f.form(c, best.step, false), best.bytes)
	case window && plain < 0:
		best = f.measure(c, noStep, false)
		plain = best.bytes
	}
	if window {
		if m := f.measure(c, best.step, true); m.score < best.score {
			best = m
		} else {
			window = false
		}
	}
	if best.step == noStep && !window {
		f.choice.keep(noStep, false, 0)
		f.taken = plain
		return c
	}
	f.taken = best.bytes
	f.choice.keep(best.step, window, (plain-best.bytes)/float64(c.Rows))
	return f.form(c, best.step, window)
}

// slotsMayPay reports whether slots leave so much less than what was measured before them, if anything was, that they are worth
// encoding: their inverse is larger and slower.
func (f *Finder) slotsMayPay(c *vector.Column, before measure) bool {
	if before.step == noStep {
		return len(f.slotReps) < len(f.starts)
	}
	if float64(len(f.slotReps)) < (1-slotsMargin)*float64(len(f.starts)) {
		return true
	}
	var n int
	f.spans, n = spansOf(f.spans[:0], c, f.slotReps)
	return float64(n) < (1-slotsMargin)*float64(before.elements)
}

// measure returns what the step takes; with window its slots are in reps, and the windows laid down.
func (f *Finder) measure(c *vector.Column, s step, window bool) measure {
	out := c
	if s != noStep || window {
		out = f.form(c, s, window)
	}
	return f.score(s, out)
}

// score returns what a form of a stripe takes.
func (f *Finder) score(s step, out *vector.Column) measure {
	b := f.size(out)
	return measure{step: s, bytes: b, elements: out.Elements(), score: b*nsPerByte + decodeTime(out)}
}

// size returns the bytes of a form; without end, where the Sizer has no size, so that no such form is taken.
func (f *Finder) size(out *vector.Column) float64 {
	if f.opts.Sizer == nil {
		return f.model.bytes(out)
	}
	n, err := f.opts.Sizer.Size(out)
	if err != nil {
		return math.Inf(1)
	}
	return float64(n)
}

func (f *Finder) resetSizer(grouped bool) {
	f.model.grouped = grouped
	if f.opts.Sizer != nil {
		f.opts.Sizer.Reset(f.typ, grouped)
	}
}

// plainBytes returns what the plain column c takes, of which out, without windows and with reps, takes outBytes. Where c has
// many more values it is estimated from the first rows of both.
func (f *Finder) plainBytes(c, out *vector.Column, outBytes float64) float64 {
	if c.Rows <= 2*partRows || c.Elements() < plainTimes*out.Elements() {
		return f.size(c)
	}
	slots := len(f.reps)
	for slots > 0 && f.reps[slots-1] >= partRows {
		slots--
	}
	short := f.size(f.first(out, partRows, slots))
	return outBytes * f.size(f.first(c, partRows, partRows)) / max(short, 1)
}

// first returns the first rows of c, which use the first slots, as a column that is borrowed until the next call.
func (f *Finder) first(c *vector.Column, rows, slots int) *vector.Column {
	p := &f.part
	*p = *c
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

// canWindow reports whether lists of c's type may share values.
func (f *Finder) canWindow(c *vector.Column) bool {
	return !f.opts.NoWindows && c.Type.IsList() && c.Type.Physical() != vector.ByteValues
}

// seekWindows reports whether the slots of reps share values as windows, in the direction that saves more, and lays them
// down.
func (f *Finder) seekWindows() bool {
	c := f.v.c
	if !f.canWindow(c) || len(f.reps) < 2 {
		return false
	}
	sample := f.reps[:min(len(f.reps), sampledSlots)]
	f.windower.walk(&f.v, sample, f.choice.backward)
	left := f.windower.end
	total := f.windower.values()
	f.windower.walk(&f.v, sample, !f.choice.backward)
	if f.windower.end < left {
		left, f.choice.backward = f.windower.end, !f.choice.backward
	}
	if total == 0 || float64(total-int(left)) < minWindowShare*float64(total) {
		return false
	}
	return f.layWindows()
}

// layWindows lays the slots of reps down as windows and reports whether they share values.
func (f *Finder) layWindows() bool {
	if len(f.reps) < 2 {
		return false
	}
	f.windower.walk(&f.v, f.reps, f.choice.backward)
	total := f.windower.values()
	return total > 0 && float64(total-int(f.windower.end)) >= minWindowShare*float64(total)
}
