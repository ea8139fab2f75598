package batch

import (
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
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
	block  block // has all arrays of Columns and Tensors
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

// make fills b from its pieces: it adds arrays as their sizes become known, and makes memory of them twice, before the
// lengths of lists are known and after.
func (b *Batch) make(l *batchLayout) error {
	features := uint64(len(l.groupings.features))
	b.SlotRows = features * uint64(b.Rows)
	b.Slots = b.SlotRows
	b.block.reset(l.allocator, len(l.schema.Arrays))
	if l.dedup != plan.DedupKJT || l.info {
		b.maker.selectSlots(b, l)
	}
	if l.info {
		b.fillInfo(l)
	}
	if l.dedup != plan.DedupKJT {
		b.Slots = b.maker.slots(b)
	}
	f := &b.maker.filler
	f.begin(b, l)
	defer func() { clear(f.copies) }() // they keep no columns
	if err := f.measure(); err != nil {
		return err
	}
	b.block.allocate(l.allocator)
	if err := f.place(); err != nil {
		return err
	}
	b.block.allocate(l.allocator)
	f.copyValues()
	if b.Tensors != nil {
		if err := b.Tensors.fillMatrices(b, l); err != nil {
			return err
		}
	}
	b.block.writeHeader(len(l.schema.Arrays), b)
	return nil
}

// newBatch returns an empty batch with all its columns.
func (l *batchLayout) newBatch(quota *Quota) *Batch {
	b := &Batch{
		quota:   quota,
		Columns: make([]*vector.Column, len(l.plan.Features)), exact: make([]exactColumn, len(l.exact)),
	}
	for i, f := range l.exact {
		b.exact[i].feature, b.exact[i].arrays = f, l.schema.columns[i]
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
	return b
}

// Schema says what the block has. Borrowed: do not write.
func (b *Batch) Schema() *Schema { return b.quota.pool.layout.schema }

// Block returns all memory of the batch, as BATCH.md describes it. Borrowed until Release.
func (b *Batch) Block() []byte { return b.block.raw[:b.block.used] }
