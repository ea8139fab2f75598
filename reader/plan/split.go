package plan

import "errors"

// A Position is the position of a reader in the order of a plan's batches. It does not depend on the number of ranks or
// threads.
type Position struct {
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"` // the next batch, from 0
}

// A Split is an independently readable part of a plan that does not shuffle: consecutive rows of its order. Its
// encoding is JSON of less than 1 KiB.
type Split struct {
	Plan     uint64 // Plan.Hash of the plan that it is a part of
	FirstRow uint64 // in the plan's order
	Rows     uint64
}

// ErrSplitShuffled is returned when splits of a plan that shuffles are made or read.
var ErrSplitShuffled = errors.New("split: the plan shuffles, and a split is rows of the plan's own order: make " +
	"splits of a plan without shuffle")
