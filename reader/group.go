package reader

import "slices"

// A Group is features whose rows share slots alike: in every stripe that the batch takes rows of, they are of one dedup
// group, or of none and each row is its own slot, or missing. That is known from where features are stored; no contents
// are compared. A feature with an inverse of its own is a group of one. A feature without any inverse in the batch's
// stripes is in no group.
//
//	rows      0 1 2 3 4 5                     of the batch
//	Inverse   0 0 1 1 1 2                     the slot of each row
//	Sparse    f0: s0 s1 s2   f1: s0 s1 s2     Slots lists a feature, each stored, read and emitted once
type Group struct {
	Features []int32 // places in Plan.Features, ascending, of all kinds
	Slots    int
	Inverse  []int32 // [B]: the slot of each row, 0 to Slots-1; each slot is some row's
	// Monotone: Inverse starts at 0 and each row has its predecessor's slot or the next one.
	Monotone bool
	// Sparse, Weighted and Floats are the group's features as those of Tensors are, with Slots lists in place of B.
	Sparse, Weighted, Floats Jagged

	from, to int // its spans
}

// list returns the Jagged of a kind.
func (g *Group) list(k listKind) *Jagged {
	return [...]*Jagged{&g.Sparse, &g.Weighted, &g.Floats}[k]
}

// set makes g a group of features without its memory.
func (g *Group) set(f *sharedFeatures) {
	*g = Group{Features: f.features}
	for k := range listKind(listKinds) {
		g.list(k).Features = f.lists[k]
	}
}

// A groupMaker makes the groups of one batch. It is scratch memory of the batch.
type groupMaker struct {
	picker  slotPicker
	filler  listFiller
	groups  []Group
	alone   sharedFeatures // in no group
	inverse buffer[int32]  // of all groups
}

// pick sets b's groups, and b.alone, and finds the slots of each.
func (x *groupMaker) pick(b *Batch, l *batchLayout) {
	x.picker.sort(b.pieces)
	x.picker.spans, x.picker.listed = x.picker.spans[:0], x.picker.listed[:0]
	all := x.picker.grouping(l.groupings)
	inverse := x.inverse.resize(l.allocator, len(all.groups)*b.Rows)
	x.groups = x.groups[:0]
	x.alone.features = append(x.alone.features[:0], all.alone...)
	for i := range all.groups {
		f := &all.groups[i]
		if !x.picker.hasInverse(b.pieces, f.features[0]) {
			x.alone.features = append(x.alone.features, f.features...)
			continue
		}
		g := x.add(f)
		g.Inverse, inverse = cut(inverse, b.Rows)
		g.from = len(x.picker.spans)
		g.Slots, g.Monotone = x.picker.pick(b.pieces, f.features[0], g.Inverse)
		g.to = len(x.picker.spans)
	}
	slices.Sort(x.alone.features)
	for k := range x.alone.lists {
		x.alone.lists[k] = x.alone.lists[k][:0]
	}
	for _, f := range x.alone.features {
		if k := l.groupings.kinds[f]; k != noList {
			x.alone.lists[k] = append(x.alone.lists[k], f)
		}
	}
}

// slots returns how many slots the features that may be in groups have in b, added up.
func (x *groupMaker) slots(b *Batch) uint64 {
	n := b.SlotRows
	for i := range x.groups {
		g := &x.groups[i]
		n -= uint64(len(g.Features)) * uint64(b.Rows-g.Slots)
	}
	return n
}

// pickAlone returns the features that are in no group as if they were a group without an inverse. Borrowed until pick.
func (x *groupMaker) pickAlone(b *Batch) *Group {
	g := x.add(&x.alone)
	g.Slots = b.Rows
	g.from = len(x.picker.spans)
	x.picker.pickRows(b.pieces)
	g.to = len(x.picker.spans)
	return g
}

// add appends a group.
func (x *groupMaker) add(f *sharedFeatures) *Group {
	if len(x.groups) < cap(x.groups) {
		x.groups = x.groups[:len(x.groups)+1]
	} else {
		x.groups = append(x.groups, Group{})
	}
	g := &x.groups[len(x.groups)-1]
	g.set(f)
	return g
}

// fillTensors makes the lists of t.
func (x *groupMaker) fillTensors(t *Tensors, b *Batch, l *batchLayout) error {
	x.pickAlone(b)
	x.filler.b, x.filler.l, x.filler.windowed = b, l, l.plan.Dedup == DedupWindowed
	for k := range listKind(listKinds) {
		if err := x.filler.fill(x.groups, k, &t.memory[k]); err != nil {
			return err
		}
	}
	n := len(x.groups) - 1
	rest := &x.groups[n]
	t.Groups = x.groups[:n:n]
	t.Inverses = x.inverse.view[: n*b.Rows : n*b.Rows]
	t.Sparse, t.Weighted, t.Floats = rest.Sparse, rest.Weighted, rest.Floats
	return nil
}
