// Package reader turns a snapshot and a projection into training batches.
//
//	PlanOptions ──NewPlan──> Plan          what to read: a value, the same bytes everywhere (package plan)
//	                          │ NewLayout
//	                          v
//	                        Layout         where the rows lie: segments, rows, splits, costs
//	                          │ Open
//	                          v
//	                        Scanner ──Next──> Batch ──Release──┐
//	                                            ^              │
//	                                            └───── pool <──┘
//
// Which rows those are, where the plan has a filter, is known before: filter.go finds them, selection.go says what follows.
//
// A scanner runs its stages side by side. Arrows are channels; everything is handed on in the canonical order of rows,
// except inside the two boxes marked with *, where requests and tasks finish as they may:
//
//	segments ──> units ──> requests* ──> tasks* ──────────┐
//	(indexes     (stripes,  (ranged       (checksum, decode,│
//	 looked up,   ranges     reads)        widen, transform │
//	 4 ahead)     joined;                  a stripe of a    │
//	              wait for                 feature)         v
//	              memory) ────────> stripes in order ──> batches cut ──> assembled* ──> Next
//	                                                     (wait for a     (kjt: one copy a row;
//	                                                      free batch)     ikjt, partial: one a slot)
//
// Without a shuffle stripes come in the order of rows, and each is cut by itself. With one they come in shuffle buffers: see package order
// for the order, shufflebuffer.go for the chunks of segments that it makes, and batcher.go for what becomes of a buffer's sessions.
//
// A Taker (take.go) returns rows by position in a plan's own order. A filter (filter.go) reads the features that it is about. Both
// fetch and decode as a scanner does, by one executor (executor.go).
//
// Invariants:
//   - What a scanner gives depends on the plan, the snapshot and the position alone: not on threads, memory or timing.
//     That includes errors: of several damaged stripes the first in order is reported, after every batch before it.
//   - A stripe of a feature is fetched, verified and decoded once, however many batches it is cut into.
//   - Memory of stripes, stored and decoded, is taken from a budget in the order of rows, and overdrawn only where the
//     batch being cut needs another stripe, or the rest of a shuffle buffer, and nothing else holds any. Memory of batches is bounded by their number.
//   - A partition key is a column that no stripe holds: its value comes with the segment's partition.
//   - Overlays are put over segments when these are looked up (overlays.go, segment_load.go), and blended when stripes are decoded (blend.go):
//     what comes after does not know of them.
//   - Decoded stripes keep slots and inverse (format/vector), also those of which rows are left out (load/selected.go, gather.go). With
//     Plan.Dedup DedupKJT rows are expanded when a batch is assembled, not before; else the batch has slots and inverse too. Nothing is
//     hashed and no values are compared: which features share an inverse is known from the segment, which slots a batch
//     uses from the inverse: see package batch.
//   - Transforms see slots, each value once, and leave Slots and Inverse as they are.
//   - With Plan.Dedup DedupIKJT or DedupPartial a batch holds a slot once, however many pieces of its stripe use it.
//     Features lie in the order of the plan in every batch, whatever their groups are there.
//   - In a steady state no stage allocates for a row, a list, a stripe or a batch; a new segment costs its look-ups.
//
// Ownership: a Batch is owned by whoever received it until Release. Plans, layouts and splits are values that nobody
// changes.
package reader
