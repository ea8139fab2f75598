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
	// FirstRow is the position of the batch's first row in the order of the epoch. The batch has the next Rows rows of
	// that order. If the plan shuffles, rows of one shuffle buffer are in the order of the table within the batch.
	FirstRow uint64
	Rows     int
	// Columns has an element for each feature of the plan, with the plan's type. The caller must not write to them.
	//
	// With OutputTensors, elements of features that are in Tensors are nil, and the others are plain columns. With
	// OutputColumns and DedupKJT all are plain. With OutputColumns and another Dedup, a feature that has an inverse in
	// a stripe of the batch has the slots that the batch uses, and an Inverse; features that share the inverse in all
	// these stripes share it here. With DedupPartial lists may be slices of each other.
	Columns []*vector.Column
	// Tensors is nil unless the plan's Output is OutputTensors.
	Tensors *Tensors
	// NullLabels is how many values of Tensors.Labels are null. They are 0 there.
	NullLabels int
	// SlotRows is Rows times the number of features that may share slots; Slots is the number of slots that these have
	// in the batch. They are all features except partition keys with OutputColumns, the lists with OutputTensors.
	SlotRows, Slots uint64
	// Info is empty without Options.Info.
	Info Info

	quota *Quota
	held  atomic.Bool // the caller owns it
	kept  bool        // it does not count towards the pool's made batches
	exact []exactColumn
	// pieces are the draft's while the batch is assembled. The pieces of a stripe are next to each other, ascending in
	// the stripe's rows, and not adjacent.
	pieces []Piece
	maker  groupMaker
	block  block // has all arrays of Columns and Tensors
}

// A Piece is consecutive rows of one stripe in a batch.
type Piece struct {
	Stripe *ioplan.Stripe
	Lo, Hi int // rows [Lo, Hi) of the stripe
	At     int // the row of the batch that is row Lo
}

// Release returns the batch's memory to its reader. It must be called exactly once; a second call panics.
func (b *Batch) Release() {
	if !b.held.Swap(false) {
		panic("reader: a batch is released twice") // its Index is not known: it may already be another batch
	}
	b.quota.put(b)
}

// Plan returns the plan that the batch is of. Borrowed: do not write.
func (b *Batch) Plan() *plan.Plan { return b.quota.pool.layout.plan }

// make fills b from its pieces. It allocates the block in two steps: first arrays whose sizes are known before the
// lengths of lists, then the others.
func (b *Batch) make(l *batchLayout) error {
	features := uint64(len(l.groupings.features))
	b.SlotRows = features * uint64(b.Rows)
	b.Slots = b.SlotRows
	if err := b.block.reset(l.allocator, len(l.schema.Arrays)); err != nil {
		return err
	}
	if l.dedup != plan.DedupKJT || l.info {
		if err := b.maker.selectSlots(b, l); err != nil {
			return err
		}
	}
	if l.info {
		b.fillInfo(l)
	}
	if l.dedup != plan.DedupKJT {
		b.Slots = b.maker.slots(b)
	}
	f := &b.maker.filler
	f.begin(b, l)
	defer func() { clear(f.copies) }() // so that they do not keep columns alive
	if err := f.measure(); err != nil {
		return err
	}
	if err := b.block.allocate(l.allocator); err != nil {
		return err
	}
	if err := f.place(); err != nil {
		return err
	}
	if err := b.block.allocate(l.allocator); err != nil {
		return err
	}
	f.copyValues()
	if b.Tensors != nil {
		if err := b.Tensors.fillMatrices(b, l); err != nil {
			return err
		}
		b.NullLabels = b.Tensors.Labels.nulls(b)
	}
	b.block.writeHeader(len(l.schema.Arrays), b)
	return nil
}

// newBatch returns an empty batch.
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

// Schema describes the arrays of the block. Borrowed: do not write.
func (b *Batch) Schema() *Schema { return b.quota.pool.layout.schema }

// Block returns the memory of the batch, in the layout of BATCH.md. Borrowed until Release.
func (b *Batch) Block() []byte { return b.block.raw[:b.block.used] }
