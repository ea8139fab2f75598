// Package memory limits and reuses the memory of readers.
//
//	Allocator  provides the memory of batches: Go's heap, or the embedding program's
//	BytePool   buffers of fetched ranges, by size class
//	Budget     limit of the bytes of stripes in memory; Take waits for free bytes
//	FreeList   idle values for reuse
//
// Invariants:
//   - In a steady state no type here allocates: released memory is reused.
//   - With the build tag invariants released memory is overwritten, so that a read after a release is noticed.
//
// An Allocator, a BytePool and a Budget are safe for concurrent use.
package memory
