// Package order computes the order of rows in an epoch of a shuffled plan.
//
// An Epoch is a pure function of the rows of the plan's segments, the shuffle and the epoch's number. It permutes the
// segments and cuts them into groups, permutes the stripes of a group and cuts them into shuffle buffers, and
// ShuffleRuns permutes the sessions or rows of one buffer. An Epoch takes 4 bytes per segment. It does not need the
// rows of stripes and the sessions of other buffers.
//
// Invariants:
//   - The order is the same on every machine, for any number of threads and any amount of memory.
//   - Each stripe with selected rows is in exactly one shuffle buffer. The rows of groups and of buffers are contiguous
//     in the epoch's order, so that the batch of a position is found by binary search.
//   - The permutation within a buffer does not depend on other buffers.
//   - The order never changes for one plan.OrderVersion: saved positions depend on it.
//
// An Epoch is safe for concurrent use.
package order
