// Package metering counts what readers do.
//
//	Counters  of one reader: rows, batches, bytes, requests, seconds; Stats are their values
//	  └ Meter   of each feature: stripes, rows and bytes, an I/O task at a time
//
// Invariants:
//   - The bytes of all features add up to those of the reader.
//   - Counting allocates nothing in a steady state. A Meter that nobody asked for counts nothing.
//
// All is safe for concurrent use.
package metering
