package dedup

import (
	"math"
	"math/bits"

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
// concurrent use. It holds 12 bytes for each run of each group, and up to some 100 for each row of the sample.
//
//	feature ── Sampler.Sample ──> Sampled ── Grouper.Add ──> Groups
//	           many at once                  one by one, in order
type Grouper struct {
	rows   int     // of the sample
	most   int64   // bytes of groups
	held   int64   // bytes of groups
	nsByte float64 // Options.NsPerByte
	groups []*candidate

	pairs  pairTable
	tried  sampledRuns // of a group with the feature
	chosen sampledRuns // of the best group so far with the feature
	first  []firstPair // by slot of the group that is tried
	quick  quick
}

// A firstPair is the feature's slot on the first row of a slot of the group, and the number of that pair.
type firstPair struct{ code, number int32 }

// A quick has bits for each of the first quickRows rows: whether it has values, whether it and the row before have, and
// whether a run begins with it.
type quick struct{ present, both, changed [quickWords]uint64 }

// set fills q from the first rows of the runs.
func (q *quick) set(starts []int32, present vector.Bitmap) {
	*q = quick{}
	copy(q.present[:], present)
	before := uint64(0)
	for i, p := range q.present {
		q.both[i] = p & (p<<1 | before>>63)
		before = p
	}
	for _, row := range starts[1:] {
		if row >= quickRows {
			break
		}
		q.changed[row>>6] |= 1 << (row & 63)
	}
}

// alike reports whether runs of q and r begin with the same rows, in at least 7/8 of those in which both have values.
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
	sampledRuns
	quick  quick
	cost   float64 // of the members with their inverse, in bits
	weight int64   // sum of the members'
}

// Reset starts a sample of rows rows. The groups hold at most maxBytes. opts are those of the Samplers.
func (g *Grouper) Reset(rows int, maxBytes int64, opts Options) {
	clear(g.groups) // their memory goes
	g.rows, g.groups, g.most, g.held, g.nsByte = rows, g.groups[:0], maxBytes, 0, opts.nsPerByte()
}

// Add adds a feature of the sample, which is borrowed for the call, under a number. A feature joins a group only if the
// sum of their weights stays within limit.
func (g *Grouper) Add(number int, f *Sampled, weight, limit int64) {
	if f.rows != g.rows || !f.apart {
		return
	}
	g.quick.set(f.starts, f.present)
	var best *candidate
	bestGain, bestCost := 0.0, 0.0
	for _, k := range g.groups {
		if k.weight+weight > limit || !g.quick.alike(&k.quick) {
			continue
		}
		apart := k.cost + f.alone
		if len(k.Members) == 1 {
			apart -= fileBits
		}
		cost, ok := g.together(&k.sampledRuns, &f.sampledRuns, apart-bestGain)
		if ok && g.held+g.tried.bytes()-k.bytes() <= g.most {
			best, bestGain, bestCost = k, apart-cost, cost
			g.tried, g.chosen = g.chosen, g.tried
		}
	}
	switch {
	case best != nil:
		if len(best.Members) == 1 {
			bestCost += fileBits
		}
		best.Members = append(best.Members, number)
		g.held += g.chosen.bytes() - best.bytes()
		best.sampledRuns.set(&g.chosen)
		for i, w := range best.quick.present {
			g.quick.present[i] |= w
		}
		best.quick.set(best.starts, g.quick.present[:])
		best.cost = bestCost
		best.weight += weight
	case len(g.groups) < maxGroups && g.held+f.bytes() <= g.most:
		k := &candidate{Group: Group{Members: []int{number}}, quick: g.quick, cost: f.alone, weight: weight}
		k.sampledRuns.set(&f.sampledRuns)
		g.held += k.bytes()
		g.groups = append(g.groups, k)
	}
}

// inverseTime returns the time of decoding an inverse of so many rows, as the number of stored bits that it is worth.
func inverseTime(rows int, monotone bool, nsPerByte float64) float64 {
	ns := float64(nsCodedRow)
	if monotone {
		ns = nsRow
	}
	return ns * float64(rows) * 8 / nsPerByte
}

// Groups returns the groups of two features or more, in the order of their first members. Copied.
func (g *Grouper) Groups() []Group {
	var out []Group
	for _, k := range g.groups {
		if len(k.Members) < 2 {
			continue
		}
		byRuns, bySlots := g.inverseCost(len(k.starts), k.slots)
		byRuns, bySlots = byRuns+k.ofRuns, bySlots+k.ofSlots
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

// inverseCost returns the cost in bits of an inverse, its size and the time of decoding it, by runs and by slots.
func (g *Grouper) inverseCost(runs, slots int) (byRuns, bySlots float64) {
	return inverseBits(g.rows, runs, 0) + inverseTime(g.rows, true, g.nsByte),
		inverseBits(g.rows, runs, slots) + inverseTime(g.rows, false, g.nsByte)
}

// together sets g.tried to the runs of rows that are equal in both a and b, and returns their cost in bits with an
// inverse: the lower of by runs and by slots. It stops early and returns false if that is not below most.
func (g *Grouper) together(a, b *sampledRuns, most float64) (cost float64, ok bool) {
	// An inverse costs least with as few runs as the larger has, or with as many as both have. (With as many slots as
	// runs it would cost less, but then by runs costs less still.)
	few, many := max(len(a.starts), len(b.starts)), min(len(a.starts)+len(b.starts), g.rows)
	slots := max(a.slots, b.slots)
	runsOfFew, slotsOfFew := g.inverseCost(few, min(slots, few-1))
	runsOfMany, slotsOfMany := g.inverseCost(many, min(slots, many-1))
	mostRuns, mostSlots := most-min(runsOfFew, runsOfMany), most-min(slotsOfFew, slotsOfMany)
	m := &g.tried
	m.reset(many)
	m.ofRuns, m.ofSlots = a.ofRuns+b.ofRuns, a.ofSlots+b.ofSlots // at least
	g.first = vector.Resize(g.first, a.slots)
	g.pairs.reset(many)
	seenA, seenB := int32(0), int32(0) // slots
	for i, j, row := 0, 0, int32(0); ; {
		if m.ofRuns >= mostRuns && m.ofSlots >= mostSlots {
			return 0, false
		}
		codeA, codeB, bitsA, bitsB := a.codes[i], b.codes[j], a.bits[i], b.bits[j]
		// Values that a run or a slot of one of them has once are there once more for each further run or slot.
		if a.starts[i] != row {
			m.ofRuns += float64(bitsA)
		}
		if b.starts[j] != row {
			m.ofRuns += float64(bitsB)
		}
		number, next := int32(0), int32(m.slots)
		switch {
		case codeA == seenA:
			number = next
			g.first[codeA] = firstPair{codeB, number}
			seenA++
			if codeB < seenB {
				m.ofSlots += float64(bitsB)
			}
		case g.first[codeA].code == codeB:
			number = g.first[codeA].number
		default:
			number = g.pairs.number(pairOf(codeA, codeB), next)
			if number == next {
				m.ofSlots += float64(bitsA)
				if codeB < seenB {
					m.ofSlots += float64(bitsB)
				}
			}
		}
		if number == next {
			m.slots++
		}
		seenB = max(seenB, codeB+1)
		m.starts, m.codes = append(m.starts, row), append(m.codes, number)
		m.bits = append(m.bits, bitsA+bitsB)
		endA, endB := a.end(i, g.rows), b.end(j, g.rows)
		row = min(endA, endB)
		if int(row) == g.rows {
			break
		}
		if endA == row {
			i++
		}
		if endB == row {
			j++
		}
	}
	byRuns, bySlots := g.inverseCost(len(m.starts), m.slots)
	cost = min(byRuns+m.ofRuns, bySlots+m.ofSlots)
	return cost, cost < most
}
