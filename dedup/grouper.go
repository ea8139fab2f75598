package dedup

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// A Group is a set of features that share an inverse.
type Group struct {
	// Members are the numbers of the features, in the order in which they were added.
	Members []int
	// ByRuns: only neighbouring rows share slots.
	ByRuns bool
}

const (
	// maxGroups is how many groups a feature is compared with.
	maxGroups = 512
	// The first quickRows rows are compared first. A group that differs in more than an eighth of them is not compared
	// in full.
	quickRows  = 1024
	quickWords = quickRows / 64
	// fileBits is the size of the additional file for a group's inverse.
	fileBits = 60 * 8
	// slotsOverRuns is how much larger a group may be by runs than by slots: its inverse is monotone, so it reads
	// faster.
	slotsOverRuns = 1.03
)

// A Grouper finds the features that repeat on the same rows, from a sample: the same rows of each feature. Features are
// added one after the other, large ones first. Each joins the group with which it saves most, or starts a new one. Two
// rows share a slot of a group's inverse if they are equal in every member, so features that repeat on nearly the same
// rows can be in one group: a row that differs in one member costs the values of the others again. Not safe for
// concurrent use. It holds 8 bytes for each row of the sample and each group.
//
//	feature ── Sampler.Sample ──> Sampled ── Grouper.Add ──> Groups
//	           many at once                  one by one, in order
type Grouper struct {
	rows   int     // of the sample
	most   int     // groups that memory allows
	nsByte float64 // Options.NsPerByte
	groups []*candidate

	pairs pairTable
	byRow []int32 // the feature's slots
	tried []int32 // slots of a group with the feature
	quick quick
}

// A quick has two bits for each of the first quickRows rows: whether it and the row before have values, and whether
// they are in different slots.
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

// alike reports whether q and r change on the same rows, in at least 7/8 of the rows in which both have values.
func (q *quick) alike(r *quick) bool {
	both, differ := 0, 0
	for i := range q.both {
		b := q.both[i] & r.both[i]
		both += bits.OnesCount64(b)
		differ += bits.OnesCount64(b & (q.changed[i] ^ r.changed[i]))
	}
	return 8*differ <= both
}

// A candidate is a possible group of one or more features.
type candidate struct {
	Group
	inverse []int32       // by row; slots are numbered in the order in which they first occur
	present vector.Bitmap // rows in which some member has values
	quick   quick
	slots   int
	rowBits []float32 // by row: size of its values in all members, in bits
	cost    float64   // of the members with their inverse, in bits
	weight  int64     // sum of the members'
}

// Reset starts a sample of rows rows. The groups hold at most maxBytes. opts are those of the Samplers.
func (g *Grouper) Reset(rows int, maxBytes int64, opts Options) {
	g.rows, g.groups, g.nsByte = rows, g.groups[:0], opts.nsPerByte()
	g.most = int(min(maxGroups, maxBytes/(8*int64(max(rows, 1)))))
}

// Add adds a feature of the sample, which is borrowed for the call, under a number. A feature joins a group only if the
// sum of their weights stays within limit.
func (g *Grouper) Add(number int, f *Sampled, weight, limit int64) {
	if f.rows != g.rows || !f.apart {
		return
	}
	g.byRow = vector.Resize(g.byRow, g.rows)
	fillRuns(g.byRow, f.starts, f.codes)
	g.add(number, f, weight, limit)
}

// inverseTime returns the time of decoding an inverse of so many rows, as the number of stored bits that it is worth.
func inverseTime(rows int, monotone bool, nsPerByte float64) float64 {
	ns := float64(nsCodedRow)
	if monotone {
		ns = nsRow
	}
	return ns * float64(rows) * 8 / nsPerByte
}

// add adds the feature, whose inverse is g.byRow, to the best group or to a new one.
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

// inverseBits estimates the size of an inverse. slots is 0 if it is monotone.
func inverseBits(rows, runs, slots int) float64 {
	n := float64(rows)*entropy(runs, rows) + streamBits
	if slots > 0 && slots < runs {
		n += float64(runs)*math.Log2(float64(slots)+1) + streamBits
	}
	return n
}

// together returns the cost in bits of k with the feature added, whose slots are g.tried: the lower of by runs and by
// slots.
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
