// Package reader turns a snapshot and a projection into training batches.
//
//	PlanOptions ──NewPlan──> Plan          what to read: plain data that can be sent to other machines (package plan)
//	                          │ NewLayout
//	                          v
//	                        Layout         where the rows are: segments, rows, splits, costs
//	                          │ Open
//	                          v
//	                        Scanner ──Next──> Batch ──Release──┐
//	                                            ^              │
//	                                            └───── pool <──┘
//
// The rows of a plan with a filter are found when the layout is made: filter.go finds them, selection.go restricts the
// layout to them.
//
// A scanner runs its stages side by side. Arrows are channels. Everything is passed on in the row order of the plan,
// except inside the two stages marked with *, where requests and tasks finish in any order:
//
//	segments ──> I/O tasks ─> requests* ──> tasks* ─────────┐
//	(indexes     (stripes,    (ranged       (checksum,      │
//	 looked up,   ranges       reads)        decode, widen, │
//	 some         joined;                    transform a    │
//	 ahead)       wait for                   stripe of a    │
//	              memory)                    feature)       v
//	                 └────────────────> stripes in order ──> batches cut ──> assembled* ──> Next
//	                                                         (wait for a     (kjt: one copy for each row;
//	                                                          free batch)     ikjt, partial: one for each slot)
//
// Without a shuffle stripes come in row order. With one they come in shuffle buffers: package order has the order,
// shufflebuffer.go reads it in chunks of segments, and batcher.go interleaves the sessions of a buffer.
//
// A Taker (take.go) returns rows by their positions in a plan's own order. A filter (filter.go) reads the features that
// its expression names. Both fetch and decode as a scanner does, with package execution.
//
// Memory, all of it from Options.MemoryBudget, a share for each use:
//
//	what                       bound                       owner, and rule
//	stripes, stored, decoded   the budget; each a part of  memory.Budget; taken in row order
//	                           it from an object store
//	batches                    MaxBatches, AheadBytes      batch.Pool and Quota
//	idle buffers               half the budget             memory.BytePool; idle values in memory.FreeList
//	of closed readers          the budget, for a minute    execution.Pools; Options.Reuse
//	segments of a shuffle      a quarter                   LRU (shufflebuffer.go)
//	segments of a Taker        a quarter                   LRU (takecache.go)
//	decoded stripes of a Taker half                        LRU with an admission rule (takecache.go)
//	selections of filters      64 MiB for the process      LRU (package cache)
//
// A shuffle and a Taker have different caches of segments. A shuffle knows the size of a segment before it is loaded,
// loads ahead, and frees dictionaries in row order. A Taker removes a segment together with its stripes. Selections are
// shared by the process, because they serve every plan with the same filter.
//
// Invariants:
//   - What a scanner returns depends only on the plan, the snapshot and the position, not on threads, memory or timing.
//     This includes errors: of several damaged stripes the first in order is reported, after every batch before it.
//   - A stripe of a feature is fetched, verified and decoded once, however many batches have rows of it.
//   - The budget, or the part of it, is exceeded only if the batch being cut needs another stripe or I/O task, or the
//     rest of a shuffle buffer, and nothing else holds memory.
//   - A partition key is a column that is not stored in stripes: its value is that of the segment's partition.
//   - Overlays are looked up with the segments (overlays.go, segment_load.go) and merged when stripes are decoded:
//     later stages do not see them.
//   - Decoded stripes keep slots and inverse (format/vector), with or without row selection. With DedupKJT rows are
//     expanded when a batch is assembled. Nothing is hashed and no values are compared.
//   - Transforms see each slot once, and leave Slots and Inverse as they are.
//   - With DedupIKJT or DedupPartial a batch holds a slot once. Features have the order of the plan in every batch.
//   - In a steady state no stage allocates per row, list, stripe or batch, only for each new segment.
//
// Ownership: a Batch is owned by its receiver until Release. Plans, layouts and splits are immutable.
package reader
