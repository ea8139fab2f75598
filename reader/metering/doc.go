// Package metering counts the work of readers.
//
//	Counters  of one reader: rows, batches, bytes, requests, seconds; Stats are their values
//	  └ Meter   of each feature: stripes, rows and bytes, counted for each I/O task
//
// Invariants:
//   - The sum of the features' bytes is the reader's.
//   - Counting allocates nothing in a steady state. A Meter without Begin counts nothing.
//
// Everything is safe for concurrent use.
package metering
