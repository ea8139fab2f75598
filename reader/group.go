package reader

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
}
