// Package batch makes batches of decoded stripes.
//
//	Draft     what a batch takes: pieces, the rows of stripes
//	  │ Quota.Make
//	  v
//	Batch     exact columns (exact.go), and Tensors: matrices (tensors.go), lists and groups (group.go, lists.go)
//	  │ Release
//	  v
//	Pool      batches and drafts kept for the next use; each Quota says how many of them one reader has
//
// Without deduplication (KJT) rows are expanded: one copy per row. Else a batch holds each slot that it uses once, and
// the inverse of its rows: slots.go finds the slots from the inverses of stripes, sharing.go which features share an
// inverse. Partial duplicates stay slices of one run of values where the plan asks for that.
//
// Invariants:
//   - Nothing is hashed and no values are compared: duplicates are those that the segments have.
//   - A batch follows from its pieces and the plan alone. Features lie in the order of the plan in every batch.
//   - All memory of a batch is one block from the Allocator (block.go, schema.go; ../BATCH.md has the bytes). It is
//     written over when a batch is released, with the build tag invariants.
//   - In a steady state Make allocates nothing, and makes no interface call for a row or a value.
//
// A Batch is owned by its caller from Quota.Give to Release. A Pool and its Quotas are safe for concurrent use; one
// goroutine drafts of a Quota.
package batch
