// Package ioplan plans the reads from the store: which stripes of which feature files are fetched by which requests.
// Package execution executes them.
//
//	plan ──> Segment   a segment with the feature files that the plan reads; items, the units of decoding
//	           |
//	           v
//	         IOTask    consecutive stripes of a segment that are fetched together: needs, ranges, requests
//	           |
//	           v
//	         Stripe    one stripe: stored bytes, then decoded columns, until all its batches are assembled
//	         Decoded   the memory of one decoded stripe of one feature
//
// Nothing here reads or waits. Packages reader and execution own the goroutines, the budget and the pools.
//
// Invariants:
//   - A Segment does not change once it is made, except for its Dictionaries and its Sharing, which is computed at
//     first use.
//   - The offsets of a Segment are checked: each file lies in its object, and its stripes follow each other in it.
//   - A row of a stripe has two numbers: its stored row, and its position among the selected rows. See selected.go.
//   - Decoded stripes keep slots and inverse; selecting rows gathers the inverse and leaves the slots unchanged.
//
// A Segment is safe for concurrent use. A Stripe and an IOTask belong to their run; what their tasks share is atomic,
// or guarded by Mu.
package ioplan
