// Package lease protects the snapshots of open readers from gc.
//
// A Hold belongs to one open reader. It has a Renewer for each snapshot; readers of one process share them. A Renewer
// takes a lease in the background when a reader has been open for Options.After, renews it after half of Options.For,
// and releases it after the last reader.
//
// Invariants:
//   - New makes no request and does not wait. An error of a lease is never an error of the reader.
//   - The readers of a lease that somebody ended neither renew it nor take another one.
//   - Every timer has an owner: it stops when the last Hold ends or, with reuse, a minute later, or at EndAll.
//   - After EndAll the process has no lease, and takes none.
//
// Everything is safe for concurrent use.
package lease
