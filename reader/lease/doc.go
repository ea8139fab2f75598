// Package lease keeps the snapshots of open readers from gc.
//
// A Hold belongs to one open reader. It has a Renewer for each snapshot; readers of one process share them. A Renewer
// takes a lease in the background once a reader is open for long enough, renews it at half of its time, and gives it
// back after the last reader.
//
// Invariants:
//   - New makes no request and does not wait. An error of a lease is never one of the reader.
//   - A lease that somebody ended is neither renewed nor taken anew by the readers that had it.
//   - Every timer has an owner: it stops when the last Hold ends, or a minute later where another reader is to come.
//
// All is safe for concurrent use.
package lease
