// Package batch assembles batches from decoded stripes.
//
//	Draft     the rows of a batch, as pieces of stripes
//	  │ Quota.Make
//	  v
//	Batch     exact columns (exact.go), and Tensors: matrices (tensors.go), lists and groups (group.go, lists.go)
//	  │ Release
//	  v
//	Pool      reused batches and drafts; each Quota limits how many of them one reader has
//
// Without deduplication (DedupKJT) rows are expanded: one copy per row. Else a batch holds each slot that it uses once,
// and the inverse of its rows. slots.go finds the slots from the inverses of stripes; sharing.go finds which features
// share an inverse. With DedupPartial, partial duplicates stay slices of one run of values.
//
// Invariants:
//   - Nothing is hashed and no values are compared: duplicates are those that the segments store.
//   - A batch depends only on its pieces and the plan. Features are in the order of the plan in every batch.
//   - All memory of a batch is one block from the Allocator (block.go, schema.go; ../BATCH.md has the bytes). With the
//     build tag invariants it is overwritten when a batch is released.
//   - In a steady state Make allocates nothing, and makes no interface call per row or value.
//
// The caller owns a Batch from Quota.Give to Release. A Pool and its Quotas are safe for concurrent use, except that
// one goroutine at a time calls Draft and TryDraft of a Quota.
package batch
