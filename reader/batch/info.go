package batch

import (
	"sort"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/plan"
)

// An Info describes the mix of rows in a batch. It shows the trade-off of a shuffle: the more sessions a batch has rows
// of, the fewer duplicates it has, and the more representative of the table it is.
type Info struct {
	// Sessions is how many sessions the batch has rows of; 0 if the session key is not read, because neither the
	// features nor the shuffle need it.
	Sessions int
	// SlotRows and Slots are those of the Batch; with DedupKJT, what they would be with DedupIKJT.
	SlotRows, Slots uint64
	// Labels has an element for each dense label of the plan, in its order.
	Labels []LabelMean
}

// A LabelMean has the sum and count of a label over the rows of a batch where it is not null.
type LabelMean struct {
	Feature int32 // its position in Plan.Features
	Rows    int   // rows where the label is not null
	Sum     float64
}

// Mean returns the mean; NaN when every row is null.
func (m LabelMean) Mean() float64 { return m.Sum / float64(m.Rows) }

// DedupeFactor returns the rows of lists over their slots; 1 without duplicates.
func (i *Info) DedupeFactor() float64 {
	if i.Slots == 0 {
		return 1
	}
	return float64(i.SlotRows) / float64(i.Slots)
}

// fillInfo sets b.Info, after selectSlots.
func (b *Batch) fillInfo(l *batchLayout) {
	x := &b.Info
	x.SlotRows, x.Slots = b.SlotRows, b.maker.slots(b)
	x.Sessions = 0
	if l.sessions {
		x.Sessions = countSessions(b.pieces)
	}
	x.Labels = x.Labels[:0]
	for i := range l.plan.Features {
		f := &l.plan.Features[i]
		if plan.IsLabel(f.Role) && f.Type.Kind == vector.Dense {
			x.Labels = append(x.Labels, labelMean(b.pieces, int32(i)))
		}
	}
}

// countSessions returns how many sessions have rows in pieces.
func countSessions(pieces []Piece) int {
	n, next := 0, 0 // next: the first session of the stripe that is not counted
	for i := range pieces {
		p := &pieces[i]
		if i == 0 || p.Stripe != pieces[i-1].Stripe {
			next = 0
		}
		s := p.Stripe
		// The session that holds a row is the one before the first that starts after it.
		at := func(row int) int {
			rest := s.Sessions[next : len(s.Sessions)-1]
			return next + sort.Search(len(rest), func(k int) bool { return s.At(int(rest[k])) > row }) - 1
		}
		first := max(at(p.Lo), next)
		last := at(p.Hi - 1)
		n += max(last+1-first, 0)
		next = max(next, last+1)
	}
	return n
}

// labelMean returns the LabelMean of a dense label.
func labelMean(pieces []Piece, feature int32) LabelMean {
	m := LabelMean{Feature: feature}
	for i := range pieces {
		p := &pieces[i]
		c := p.Column(feature)
		if c == nil {
			continue
		}
		switch {
		case c.Type.Elem == vector.Uint64:
			addLabels(&m, c, p, func(s int) float64 { return float64(uint64(c.Ints[s])) })
		case c.Type.Physical() == vector.Int64Values:
			addLabels(&m, c, p, func(s int) float64 { return float64(c.Ints[s]) })
		case c.Type.Physical() == vector.Float32Values:
			addLabels(&m, c, p, func(s int) float64 { return float64(c.Floats[s]) })
		default:
			addLabels(&m, c, p, func(s int) float64 { return c.Doubles[s] })
		}
	}
	return m
}

func addLabels(m *LabelMean, c *vector.Column, p *Piece, value func(slot int) float64) {
	for row := p.Lo; row < p.Hi; row++ {
		if s := c.Slot(row); c.Present == nil || c.Present.Get(s) {
			m.Rows++
			m.Sum += value(s)
		}
	}
}
