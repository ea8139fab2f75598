package reader

import "github.com/dsistore/dsistore/format/vector"

// A Batch holds consecutive rows of the plan's order. The caller owns it from the Next that returned it until Release;
// after Release none of its slices may be read. It may cross goroutines, one at a time.
type Batch struct {
	// Index is the batch's place in the order of the plan, or of the split that is read.
	Index uint64
	// FirstRow is the place of the first row in the plan's order.
	FirstRow uint64
	Rows     int
	// Columns has an entry a feature of the plan, plain columns of the plan's types. With OutputTensors, entries are nil
	// for the features that Tensors holds.
	Columns []*vector.Column
	// Tensors is nil unless the plan's Output is OutputTensors.
	Tensors *Tensors
}

// Release gives the batch back. It must be called exactly once.
func (b *Batch) Release() {}

// Tensors are a batch as a trainer takes it. Rows is written B.
type Tensors struct {
	Dense      Matrix   // the dense features that are neither label nor key
	Labels     Matrix   // the dense labels
	Embeddings []Matrix // one an embedding feature, [B, dim]
	Sparse     Jagged   // id lists: Values
	Weighted   Jagged   // id lists with scores: Values and Weights
	Floats     Jagged   // lists of numbers that are no ids: FloatValues
}

// A Matrix is [B, Width] float32, row-major. Null is 0.
type Matrix struct {
	Features []int // places in Plan.Features: one a column, or one in all for an embedding
	Width    int
	Values   []float32
	// Present, when Options.Presence asks for it, has a bit a row and feature, feature by feature, each beginning a word.
	Present []uint64
}

// A Jagged is the parts of a keyed jagged tensor: for each feature in turn, B lists.
type Jagged struct {
	Features []int   // places in Plan.Features, in order
	Lengths  []int32 // [F * B]; 0 for null and for empty
	Offsets  []int32 // [F * B + 1], from 0: list (f, b) is [Offsets[f*B+b], Offsets[f*B+b+1]) of the values
	// Values are ids of Sparse and Weighted; FloatValues are the numbers of Floats.
	Values      []int64
	FloatValues []float32
	Weights     []float32 // Weighted only, one a value
	// Present, when Options.Presence asks for it, tells null (0) from empty, feature by feature, each beginning a word.
	Present []uint64
}
