// Package load has what fetching, decoding and the making of batches share: the segments of a plan, their stripes, and
// the I/O tasks that fetch them.
//
//	Segment   one segment put against a plan: feature files, checked against each other; items, the units of decoding
//	IOTask    consecutive stripes of a segment that are fetched together: needs, ranges, requests
//	Stripe    one stripe on its way to batches: stored bytes, then decoded columns, then used up
//	Decoded   the memory of one decoded stripe of one feature
//
// Who runs them is package reader: it owns the goroutines, the budget and the pools. Nothing here reads or waits.
//
// Invariants:
//   - A Segment does not change once it is made, but for its Dictionaries, and the Sharing that is found when first
//     asked for.
//   - A Segment's offsets were checked: each file lies in its object, and its stripes lie in it one after the other.
//   - Rows of a stripe have two numbers, the row as it is stored and the position among the selected rows: see
//     selected.go.
//   - Decoded stripes keep slots and inverse; selecting rows gathers the inverse and leaves the slots where they are.
//
// A Segment is safe for concurrent use. A Stripe and an IOTask belong to their run; what their tasks share is atomic,
// or guarded by Mu.
package load
