// Package execution fetches and decodes stripes. All readers use it:
//
//	Scanner          whole stripes, or the selected rows of stripes, as a pipeline; the single batch of a small read
//	Taker            rows of stripes, or whole stripes to be kept
//	filter executor  whole stripes of the filter's features
//
//	I/O task ──Load──> bytes and dictionaries ──DecodeStripes──> stripes
//
// A pipeline does both steps request by request (ReadRequests) and task by task (Decode), on goroutines of its own.
//
//	fetch.go          requests of I/O tasks
//	decode.go         items of stripes: decode, widen, transform
//	overlaymerge.go   items whose rows come from overlays; mergevalues.go decodes parts to where their values go
//	gather.go         stripes reduced to the selected rows; gatherpieces.go the same for the rows of a take
//	pools.go          buffer pools; reuse.go keeps those of closed readers for the next reader
//
// Invariants:
//   - A stripe of a feature is fetched, verified and decoded once by each call.
//   - Decoded stripes keep slots and inverse. Transforms see each slot once.
//   - In a steady state nothing is allocated per stripe: its memory comes from the pools and returns to them.
//   - Of several errors the first in order is returned, whatever the timing of goroutines.
//
// An Executor and its Pools are safe for concurrent use. Users release stripes and I/O tasks.
package execution
