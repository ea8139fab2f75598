// Package arrow reads Arrow: IPC streams and files, and records that are in memory (Records).
//
//	stream or file ── messageReader ──> messages ── arrow-go ──> record ── converter ──> column.Batch
//	RecordReader ── a goroutine ──────────────────────────────> record ── converter ──> column.Batch that borrows
//
// Lengths in messages are checked before arrow-go sees them, which allocates what they say. A stream that ends without
// its end marker was cut short.
package arrow
