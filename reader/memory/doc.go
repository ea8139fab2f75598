// Package memory bounds and reuses the memory of readers.
//
//	Allocator  where the memory of batches comes from: Go's heap, or what the embedding program provides
//	BytePool   buffers of fetched ranges, by size class
//	Budget     bytes of stripes that may be in memory at once; who takes from it waits
//
// Invariants:
//   - In a steady state no type here allocates: what comes back is used again.
//   - With the build tag invariants released memory is overwritten, so that a read after a release shows.
//
// An Allocator, a BytePool and a Budget are safe for concurrent use.
package memory
