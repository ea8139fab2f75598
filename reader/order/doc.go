// Package order says in which order an epoch of a shuffled plan gives its rows.
//
// An Epoch is a pure function of the rows of the plan's segments, the shuffle and the epoch's number. It permutes
// segments, cuts them into groups, permutes the stripes of a group, cuts them into shuffle buffers, and ShuffleRuns
// permutes the sessions or rows of one buffer. Opening an epoch costs a number for each segment; the rows of stripes
// and the sessions are asked for where they are needed.
//
// Invariants:
//   - The order is the same on every machine, for any number of threads and any amount of memory.
//   - Each stripe with selected rows is in exactly one shuffle buffer. Rows of groups and of buffers follow each other
//     without a gap, so that the batch of a position is found by search.
//   - What one buffer does depends on no other buffer.
//   - Nothing here ever changes for one plan.OrderVersion: saved positions depend on it.
//
// An Epoch is safe for concurrent use.
package order
