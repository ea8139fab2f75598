package batch

import (
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
)

// A Batch holds consecutive rows of the order of an epoch. The caller owns it from the Next that returned it until
// Release; after Release none of its slices may be read. It may cross goroutines, one at a time.
type Batch struct {
	// Index is the batch's position in the order of the plan, or of the split that is read.
	Index uint64
	// FirstRow is the position of the batch's first row in the order of the epoch, in which the rows of a batch follow
	// each other. Where the plan shuffles, those that come from one shuffle buffer are put in the order of the table.
	FirstRow uint64
	Rows     int
	// Columns has an entry per feature of the plan: columns of the plan's types. With OutputTensors, entries are nil
	// for the features that Tensors holds, and the others are plain. With OutputColumns they are plain where the plan's
	// Dedup is DedupKJT; else those that have an inverse in a stripe of the batch hold the slots that the batch uses,
	// and features that share an inverse in each of those stripes have one Inverse here; with DedupPartial lists may be
	// slices of one another. The caller must not write to them.
	Columns []*vector.Column
	// Tensors is nil unless the plan's Output is OutputTensors.
	Tensors *Tensors
	// SlotRows are the rows of the features that may share slots, added up, and Slots the slots that they have here:
	// all features but partition keys with OutputColumns, the lists of Tensors with OutputTensors.
	SlotRows, Slots uint64
	// Info is empty without Options.Info.
	Info Info

	quota *Quota
	held  atomic.Bool // by the caller
	kept  bool        // it does not count among those that the quota made
	exact []exactColumn
	// pieces are the draft's while the batch is made: next to each other for a stripe, they ascend in its rows and do
	// not touch.
	pieces []Piece
	maker  groupMaker
	memory []memory.AnyBuffer // all that the allocator gives memory to
}

// A Piece is the rows of one stripe that a batch takes.
type Piece struct {
	Stripe *ioplan.Stripe
	Lo, Hi int // of the stripe's rows
	At     int // row of the batch where they go
}

// Release gives the batch back to its Scanner. It must be called exactly once; a second call panics.
func (b *Batch) Release() {
	if !b.held.Swap(false) {
		panic("reader: a batch is released twice") // which one is not known: it may be in the making again
	}
	b.quota.put(b)
}

// Plan returns the plan that the batch is of. Borrowed: do not write.
func (b *Batch) Plan() *plan.Plan { return b.quota.pool.layout.plan }

// make fills b from its pieces.
func (b *Batch) make(l *batchLayout) error {
	features := uint64(len(l.groupings.features))
	b.SlotRows = features * uint64(b.Rows)
	b.Slots = b.SlotRows
	if l.plan.Dedup != plan.DedupKJT || l.info {
		b.maker.selectSlots(b, l)
	}
	if l.info {
		b.fillInfo(l)
	}
	if l.plan.Dedup != plan.DedupKJT {
		b.Slots = b.maker.slots(b)
	}
	f := &b.maker.filler
	f.b, f.l, f.partial, f.viewOf = b, l, l.plan.Dedup == plan.DedupPartial, nil
	if err := b.maker.fillColumns(b, l); err != nil || b.Tensors == nil {
		return err
	}
	if err := b.Tensors.fillMatrices(b, l); err != nil {
		return err
	}
	return b.maker.fillTensors(b.Tensors, b, l)
}

// newBatch returns an empty batch with all its columns.
func (l *batchLayout) newBatch(quota *Quota) *Batch {
	b := &Batch{
		quota:   quota,
		Columns: make([]*vector.Column, len(l.plan.Features)), exact: make([]exactColumn, len(l.exact)),
	}
	for i, f := range l.exact {
		b.exact[i].feature = f
		if plan.IsPartitionKey(l.plan.Features[f]) {
			b.exact[i].partitionKey = l.plan.Features[f].Name
		}
		b.exact[i].alone = plan.IsPartitionKey(l.plan.Features[f]) || plan.IsWeight(l.plan.Features[f])
		b.exact[i].column.Type = l.plan.Features[f].Type
		b.Columns[f] = &b.exact[i].column
	}
	if l.plan.Output == plan.OutputTensors {
		b.Tensors = newTensors(l)
	}
	b.memory = b.buffers()
	return b
}

// buffers returns what the allocator gives memory to.
func (b *Batch) buffers() []memory.AnyBuffer {
	all := []memory.AnyBuffer{&b.maker.inverse}
	for i := range b.exact {
		all = append(all, b.exact[i].buffers()...)
	}
	if b.Tensors != nil {
		all = append(all, b.Tensors.buffers()...)
	}
	return all
}

// free gives the batch's memory back to the allocator.
func (b *Batch) free(a memory.Allocator) {
	for _, x := range b.memory {
		x.Free(a)
	}
}

func (b *Batch) poison() {
	for _, x := range b.memory {
		x.Poison()
	}
}
