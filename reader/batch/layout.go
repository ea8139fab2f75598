package batch

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
)

// Options say what batches contain and where their memory comes from. They are comparable.
type Options struct {
	Allocator memory.Allocator
	Presence  bool // tensors have presence bitmaps
	Round     bool // integers that float32 cannot represent are rounded
	Info      bool // batches have an Info
	Sessions  bool // the Info counts sessions
	Batches   int  // the largest number of batches
	Keep      bool // batches that the caller owns do not count towards Batches
	// KeepSlots makes batches of a plan with DedupKJT as with DedupIKJT, for a caller that expands them later, and adds
	// Jagged.RowValues.
	KeepSlots bool
}

// A batchLayout says in which part of a batch each feature is. It is immutable.
type batchLayout struct {
	plan      *plan.Plan
	dedup     plan.Dedup
	rowValues bool
	allocator memory.Allocator
	presence  bool
	round     bool // Options.Round
	info      bool // batches have an Info
	sessions  bool // the Info counts sessions

	exact      []int32 // positions of the features that become exact columns
	dense      []int32
	labels     []int32
	embeddings []int32
	sparse     []int32
	weighted   []int32
	floats     []int32

	groupings *groupings
	schema    *Schema
}

func newBatchLayout(p *plan.Plan, o *Options) *batchLayout {
	l := &batchLayout{plan: p, allocator: o.Allocator, presence: o.Presence, round: o.Round, info: o.Info,
		sessions: o.Sessions, dedup: p.Dedup}
	if o.KeepSlots && p.Dedup == plan.DedupKJT {
		l.dedup, l.rowValues = plan.DedupIKJT, true
	}
	for i := range p.Features {
		f := &p.Features[i]
		to := &l.exact
		if p.Output == plan.OutputTensors && !f.Role.IsKey() && !p.IsExact(i) {
			switch t := f.Type; {
			case t.Kind == vector.Dense:
				to = &l.dense
				if plan.IsLabel(f.Role) {
					to = &l.labels
				}
			case plan.IsLabel(f.Role):
			case t.Kind == vector.Embedding:
				to = &l.embeddings
			case t.Kind == vector.Weighted:
				to = &l.weighted
			case t.Kind == vector.Sparse && t.Elem.IsInteger():
				to = &l.sparse
			case t.Kind == vector.Sparse:
				to = &l.floats
			}
		}
		*to = append(*to, int32(i))
	}
	l.groupings = newGroupings(l)
	l.schema = newSchema(l)
	return l
}
