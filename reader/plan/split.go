package plan

import "errors"

// A Position is where a reader stands in the order that a plan gives its batches. It is small, and the same however
// many ranks or threads read.
type Position struct {
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"` // the next batch to give, from 0
}

// A Split is an independently readable part of a plan that does not shuffle: consecutive rows of its order. Its
// encoding is JSON of less than 1 KiB.
type Split struct {
	Plan     uint64 // Plan.Hash of the plan that it is a part of
	FirstRow uint64 // in the plan's order
	Rows     uint64
}

// ErrSplitShuffled says why a plan that shuffles has no splits.
var ErrSplitShuffled = errors.New("split: the plan shuffles, and a split is rows of the plan's own order: make " +
	"splits of a plan without shuffle")
