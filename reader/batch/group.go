package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/plan"
)

// A Group is a set of features that share an inverse in a batch. In every stripe of the batch they are in one dedup
// group, or all have no inverse, or all are missing. This follows from how features are stored; no values are compared.
// A feature with an inverse of its own is a group of one. A feature without an inverse in any stripe of the batch is in
// no group, and neither is one that the plan expands.
//
//	rows      0 1 2 3 4 5                     of the batch
//	Inverse   0 0 1 1 1 2                     the slot of each row
//	lists     f0: s0 s1 s2   f1: s0 s1 s2     Slots lists per feature
type Group struct {
	Features []int32 // positions in Plan.Features, ascending, of all kinds of lists
	Slots    int
	Inverse  []int32 // [B]: the slot of each row, 0 to Slots-1; each slot is that of some row
	// Monotone: Inverse starts at 0 and each row has its predecessor's slot or the next one.
	Monotone bool

	from, to int     // its spans are slotSelector.spans[from:to]
	slotRows []int32 // number of rows of each slot, if countSlotRows was called
}

// A groupMaker makes the groups of one batch. It is scratch memory of the batch.
type groupMaker struct {
	selector slotSelector
	filler   listFiller
	groups   []Group
	groupOf  []int32 // by position in the plan: its position in groups; len(groups): none
	inverse  []int32 // memory of the groups' inverses if they are only counted, and not in the block
}

// selectSlots sets groups and groupOf, and the slots of each group.
func (x *groupMaker) selectSlots(b *Batch, l *batchLayout) error {
	x.selector.sort(b.pieces)
	x.selector.spans, x.selector.listed = x.selector.spans[:0], x.selector.listed[:0]
	all := x.selector.grouping(l.groupings)
	var inverse []int32
	if n := len(all) * b.Rows; l.dedup == plan.DedupKJT {
		x.inverse = vector.Resize(x.inverse, n)
		inverse = x.inverse
	} else {
		add[int32](&b.block, l.schema.groups.inverses, n)
		if err := b.block.allocate(l.allocator); err != nil {
			return err
		}
		inverse = arrayOf[int32](&b.block, l.schema.groups.inverses)
	}
	x.groups = x.groups[:0]
	for _, features := range all {
		if !x.selector.hasInverse(b.pieces, features[0]) {
			continue
		}
		g := Group{Features: features, from: len(x.selector.spans)}
		g.Inverse, inverse = cut(inverse, b.Rows)
		g.Slots, g.Monotone = x.selector.selectSlots(b.pieces, features[0], g.Inverse)
		g.to = len(x.selector.spans)
		x.groups = append(x.groups, g)
	}
	if l.dedup != plan.DedupKJT {
		b.block.shorten(l.schema.groups.inverses, len(x.groups)*b.Rows)
	}
	x.groupOf = vector.Resize(x.groupOf, len(l.plan.Features))
	for i := range x.groupOf {
		x.groupOf[i] = int32(len(x.groups))
	}
	for i := range x.groups {
		for _, f := range x.groups[i].Features {
			x.groupOf[f] = int32(i)
		}
	}
	return nil
}

// slots returns the number of slots of all features that may be in groups.
func (x *groupMaker) slots(b *Batch) uint64 {
	n := b.SlotRows
	for i := range x.groups {
		g := &x.groups[i]
		n -= uint64(len(g.Features)) * uint64(b.Rows-g.Slots)
	}
	return n
}

// selectAlone returns a Group for the features that are in no group: their rows are slots.
func (x *groupMaker) selectAlone(b *Batch) Group {
	g := Group{Slots: b.Rows, from: len(x.selector.spans)}
	x.selector.selectRows(b.pieces)
	g.to = len(x.selector.spans)
	return g
}
