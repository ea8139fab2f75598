package dedup

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// A Group says which features share an inverse.
type Group struct {
	// Members are the numbers that the features were added with, in that order.
	Members []int
	// ByRuns: only neighbouring rows share slots.
	ByRuns bool
}

const (
	// maxGroups bounds the groups that a feature is held against.
	maxGroups = 512
	// quickRows are looked at first; a group that differs in more than an eighth of them is not compared in full.
	quickRows  = 1024
	quickWords = quickRows / 64
	// fileBits is what a feature file of its own costs for the inverse.
	fileBits = 60 * 8
	// slotsOverRuns is how much larger a group may be by runs: its inverse is monotone, which reads faster.
	slotsOverRuns = 1.03
)

// A Grouper finds the features that repeat on the same rows, from a sample: one stripe, or part of one, the same rows of
// each feature. Features come one after the other, those with most values first; each joins the group where it makes the
// whole smaller by most, or starts one. A group's inverse tells rows apart that differ in any member, so that nearly equal
// features share as well: a slot more costs its values again. Not safe for concurrent use. Memory: 8 bytes for each row
// of the sample and group.
type Grouper struct {
	rows   int
	most   int // groups
	groups []*candidate
	opts   Options

	finder   Finder
	v        values
	table    slotTable
	pairs    pairTable
	estimate estimator
	starts   []int32
	codes    []int32
	reps     []int32
	byRow    []int32       // the feature's slots
	rowBits  []float32     // what each row takes
	tried    []int32       // slots of a group with the feature
	present  vector.Bitmap // rows that are neither null nor empty
	quick    quick
}

// A quick says of each of the first rows whether it and the one before have values, and whether they differ.
type quick struct{ both, changed [quickWords]uint64 }

// set fills q from the slots of all rows.
func (q *quick) set(slots []int32, present vector.Bitmap) {
	*q = quick{}
	for row := 1; row < min(len(slots), quickRows); row++ {
		bit := uint64(1) << (row & 63)
		if present.Get(row) && present.Get(row-1) {
			q.both[row>>6] |= bit
		}
		if slots[row] != slots[row-1] {
			q.changed[row>>6] |= bit
		}
	}
}

// alike reports whether q and r change on the same rows, in most of those in which both have values.
func (q *quick) alike(r *quick) bool {
	both, differ := 0, 0
	for i := range q.both {
		b := q.both[i] & r.both[i]
		both += bits.OnesCount64(b)
		differ += bits.OnesCount64(b & (q.changed[i] ^ r.changed[i]))
	}
	return 8*differ <= both
}

// A candidate is a group in the making, of one feature or more.
type candidate struct {
	Group
	inverse []int32 // by row, slots numbered as they first occur
	present vector.Bitmap
	quick   quick
	slots   int
	rowBits []float32 // by row: what its values take, of all members
	cost    float64   // what the members take with their inverse, or the first by itself
	weight  int64
}

// Reset starts a sample of rows rows, of whose groups no more than maxBytes is held. opts say what the features may do by
// themselves.
func (g *Grouper) Reset(rows int, maxBytes int64, opts Options) {
	g.rows, g.groups, g.opts = rows, g.groups[:0], opts
	g.most = int(min(maxGroups, maxBytes/(8*int64(max(rows, 1)))))
}

// Add adds a feature of the sample, a plain column that is borrowed for the call, under a number. weight is what it adds to
// a group's weight, which stays within limit. It returns what was learnt of the feature by itself.
func (g *Grouper) Add(number int, c *vector.Column, weight, limit int64) Choice {
	if c.Rows != g.rows || g.rows < 2 {
		return Choice{}
	}
	g.finder.Reset(c.Type, g.opts, Choice{})
	byItself := g.finder.Find(c)
	choice := g.finder.Choice()
	g.v.set(c, c.Rows)
	defer g.v.drop()
	g.starts = g.v.markRuns(g.starts[:0], c.Rows)
	g.codes = resize(g.codes, len(g.starts))
	g.reps = g.table.find(&g.v, g.starts, g.codes, g.reps[:0])
	present := g.markPresent(c)
	if present == 0 || len(g.starts) == 1 {
		return choice // nothing to tell apart: by itself it takes next to nothing
	}
	// Its own inverse, and what it takes by itself.
	g.byRow = resize(g.byRow, g.rows)
	fillRuns(g.byRow, g.starts, g.codes)
	alone := g.measure(c, byItself, choice)
	g.add(number, alone, weight, limit)
	return choice
}

// measure sets rowBits so that the rows' bits add up to what the feature takes by itself, byItself being its form, and
// returns that, its inverse included.
func (g *Grouper) measure(c, byItself *vector.Column, choice Choice) (alone float64) {
	cost := g.costOf(c)
	g.rowBits = resize(g.rowBits, g.rows)
	all := 0.0
	for row := range g.rowBits {
		bits := cost.row(row)
		g.rowBits[row] = float32(bits)
		all += bits
	}
	inverse := 0.0
	switch choice.step {
	case byRuns:
		all = sum(g.rowBits, g.starts)
		inverse = inverseBits(g.rows, len(g.starts), 0)
	case bySlots:
		all = sum(g.rowBits, g.reps)
		inverse = inverseBits(g.rows, len(g.starts), len(g.reps))
	}
	took := 8 * g.finder.taken
	if took < 0 {
		took = 8 * g.finder.size(byItself)
	}
	values := max(took-inverse, took/8)
	if all > 0 && values < math.MaxFloat32 {
		scale := float32(values / all)
		for row := range g.rowBits {
			g.rowBits[row] *= scale
		}
	}
	if choice.step != noStep {
		inverse += g.inverseTime(choice.step == byRuns)
	}
	return values + inverse
}

// inverseTime returns what decoding an inverse takes, in the bits that could be fetched instead.
func (g *Grouper) inverseTime(monotone bool) float64 {
	ns := float64(nsCodedRow)
	if monotone {
		ns = nsRow
	}
	return ns * float64(g.rows) * 8 / nsPerByte
}

// add finds the feature's place among the groups.
func (g *Grouper) add(number int, alone float64, weight, limit int64) {
	var best *candidate
	bestGain, bestSlots := 0.0, 0
	g.quick.set(g.byRow, g.present)
	for _, k := range g.groups {
		if k.weight+weight > limit || !g.quick.alike(&k.quick) {
			continue
		}
		g.tried = append(g.tried[:0], k.inverse...)
		slots := g.pairs.refine(g.tried, g.starts, g.codes)
		together := g.together(k, slots)
		if len(k.Members) == 1 {
			together += fileBits
		}
		if gain := k.cost + alone - together; gain > bestGain {
			best, bestGain, bestSlots = k, gain, slots
		}
	}
	if best == nil {
		if len(g.groups) < g.most {
			g.groups = append(g.groups, &candidate{
				Group: Group{Members: []int{number}}, inverse: slices.Clone(g.byRow), present: slices.Clone(g.present),
				quick: g.quick, slots: len(g.reps), rowBits: slices.Clone(g.rowBits), cost: alone, weight: weight,
			})
		}
		return
	}
	g.pairs.refine(best.inverse, g.starts, g.codes)
	for i, w := range g.present {
		best.present[i] |= w
	}
	best.quick.set(best.inverse, best.present)
	best.Members = append(best.Members, number)
	best.cost -= bestGain - alone
	best.slots = bestSlots
	for row, b := range g.rowBits {
		best.rowBits[row] += b
	}
	best.weight += weight
}

// Groups returns the groups of two features or more, in the order of their first members. Copied.
func (g *Grouper) Groups() []Group {
	var out []Group
	for _, k := range g.groups {
		if len(k.Members) < 2 {
			continue
		}
		runs, byRuns, bySlots, next := 0, 0.0, 0.0, int32(0)
		for row, s := range k.inverse {
			if row == 0 || s != k.inverse[row-1] {
				runs++
				byRuns += float64(k.rowBits[row])
			}
			if s == next {
				bySlots += float64(k.rowBits[row])
				next++
			}
		}
		byRuns += inverseBits(g.rows, runs, 0) + g.inverseTime(true)
		bySlots += inverseBits(g.rows, runs, k.slots) + g.inverseTime(false)
		k.ByRuns = byRuns < slotsOverRuns*bySlots
		out = append(out, k.Group)
	}
	return out
}

// inverseBits estimates what an inverse takes; slots is 0 when it is monotone.
func inverseBits(rows, runs, slots int) float64 {
	n := float64(rows)*entropy(runs, rows) + streamBits
	if slots > 0 && slots < runs {
		n += float64(runs)*math.Log2(float64(slots)+1) + streamBits
	}
	return n
}

// markPresent sets g.present and returns how many rows are neither null nor empty.
func (g *Grouper) markPresent(c *vector.Column) int {
	g.present = resize(g.present, vector.BitmapWords(c.Rows))
	clear(g.present)
	for row := range c.Rows {
		if lo, hi := c.SlotRange(row); lo < hi && !g.v.null(row) {
			g.present.Set(row)
		}
	}
	return g.present.Count()
}

// A rowCost is what the rows of a column take, in bits.
type rowCost struct {
	c           *vector.Column
	null        float64 // of knowing whether a row is null
	length      float64 // of a list
	elementBits float64
}

// costOf estimates what rows of c, which is in g.v, take.
func (g *Grouper) costOf(c *vector.Column) rowCost {
	r := rowCost{c: c}
	present := c.Rows
	if c.Present != nil {
		present = c.Present.Count()
	}
	r.null = entropy(present, c.Rows)
	elements := c.Elements()
	r.elementBits = g.estimate.valueBits(&g.v, elements)
	if c.Type.Kind == vector.Weighted {
		r.elementBits += scoreBits
	}
	if c.Type.IsList() && present > 0 {
		r.length = 1 + math.Log2(1+float64(elements)/float64(present))
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

// together returns what the feature and k take with the slots of g.tried, by runs or by slots, whichever is less.
func (g *Grouper) together(k *candidate, slots int) float64 {
	runs, byRuns, bySlots := 0, 0.0, 0.0
	next, last := int32(0), int32(-1)
	for row, s := range g.tried {
		if s == last {
			continue
		}
		last = s
		bits := float64(g.rowBits[row]) + float64(k.rowBits[row])
		runs++
		byRuns += bits
		if s == next {
			bySlots += bits
			next++
		}
	}
	return min(byRuns+inverseBits(g.rows, runs, 0)+g.inverseTime(true), bySlots+inverseBits(g.rows, runs, slots)+g.inverseTime(false))
}

func sum(bits []float32, rows []int32) float64 {
	out := 0.0
	for _, row := range rows {
		out += float64(bits[row])
	}
	return out
}
