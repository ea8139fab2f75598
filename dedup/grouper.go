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

// A Grouper finds the features that repeat on the same rows, from a sample: one stripe, or part of one, the same rows
// of each feature. Features come one after the other, those with most values first; each joins the group where it makes
// the whole smaller by most, or starts one. A group's inverse tells rows apart that differ in any member, so that
// nearly equal features share as well: a slot more costs its values again. Not safe for concurrent use. Memory: 8 bytes
// for each row of the sample and group.
//
//	feature ── Sampler.Sample ──> Sampled ── Grouper.Add ──> Groups
//	           many at once                  one by one, in order
type Grouper struct {
	rows   int
	most   int // groups
	nsByte float64
	groups []*candidate

	pairs pairTable
	byRow []int32 // the feature's slots
	tried []int32 // slots of a group with the feature
	quick quick
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

// Reset starts a sample of rows rows, of whose groups no more than maxBytes is held. opts are those of the Samplers.
func (g *Grouper) Reset(rows int, maxBytes int64, opts Options) {
	g.rows, g.groups, g.nsByte = rows, g.groups[:0], opts.nsPerByte()
	g.most = int(min(maxGroups, maxBytes/(8*int64(max(rows, 1)))))
}

// Add adds a feature of the sample, which is borrowed for the call, under a number. weight is what it adds to a group's
// weight, which stays within limit.
func (g *Grouper) Add(number int, f *Sampled, weight, limit int64) {
	if f.rows != g.rows || !f.apart {
		return
	}
	// Its own inverse.
	g.byRow = vector.Resize(g.byRow, g.rows)
	fillRuns(g.byRow, f.starts, f.codes)
	g.add(number, f, weight, limit)
}

// inverseTime returns what decoding an inverse of so many rows takes, in the bits that could be fetched instead.
func inverseTime(rows int, monotone bool, nsPerByte float64) float64 {
	ns := float64(nsCodedRow)
	if monotone {
		ns = nsRow
	}
	return ns * float64(rows) * 8 / nsPerByte
}

// add finds the feature's place among the groups.
func (g *Grouper) add(number int, f *Sampled, weight, limit int64) {
	var best *candidate
	bestGain, bestSlots := 0.0, 0
	g.quick.set(g.byRow, f.present)
	for _, k := range g.groups {
		if k.weight+weight > limit || !g.quick.alike(&k.quick) {
			continue
		}
		g.tried = append(g.tried[:0], k.inverse...)
		slots := g.pairs.refine(g.tried, f.starts, f.codes)
		together := g.together(k, f, slots)
		if len(k.Members) == 1 {
			together += fileBits
		}
		if gain := k.cost + f.alone - together; gain > bestGain {
			best, bestGain, bestSlots = k, gain, slots
		}
	}
	if best == nil {
		if len(g.groups) < g.most {
			g.groups = append(g.groups, &candidate{
				Group: Group{Members: []int{number}}, inverse: slices.Clone(g.byRow), present: slices.Clone(f.present),
				quick: g.quick, slots: f.slots, rowBits: slices.Clone(f.rowBits), cost: f.alone, weight: weight,
			})
		}
		return
	}
	g.pairs.refine(best.inverse, f.starts, f.codes)
	for i, w := range f.present {
		best.present[i] |= w
	}
	best.quick.set(best.inverse, best.present)
	best.Members = append(best.Members, number)
	best.cost -= bestGain - f.alone
	best.slots = bestSlots
	for row, b := range f.rowBits {
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
		byRuns += inverseBits(g.rows, runs, 0) + inverseTime(g.rows, true, g.nsByte)
		bySlots += inverseBits(g.rows, runs, k.slots) + inverseTime(g.rows, false, g.nsByte)
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

// together returns what the feature and k take with the slots of g.tried, by runs or by slots, whichever is less.
func (g *Grouper) together(k *candidate, f *Sampled, slots int) float64 {
	runs, byRuns, bySlots := 0, 0.0, 0.0
	next, last := int32(0), int32(-1)
	for row, s := range g.tried {
		if s == last {
			continue
		}
		last = s
		bits := float64(f.rowBits[row]) + float64(k.rowBits[row])
		runs++
		byRuns += bits
		if s == next {
			bySlots += bits
			next++
		}
	}
	return min(byRuns+inverseBits(g.rows, runs, 0)+inverseTime(g.rows, true, g.nsByte),
		bySlots+inverseBits(g.rows, runs, slots)+inverseTime(g.rows, false, g.nsByte))
}
