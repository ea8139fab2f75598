// Package lease keeps expired snapshots readable for a time.
//
//	Take ──> tables/<table>/leases/<snapshot>-<lease>-<number>-<milliseconds>
//	Renew ─> the same lease, number + 1; the object before goes at the next renewal
//	Release, End ─> no object
//
// A Lease is held by a reader. Its object's name says all that gc needs; its age is told by the clock that dates
// objects.
//
// # Invariants
//
//   - Readers commit nothing: a lease is an object of its own.
//   - A lease that was taken holds: Take checks, after the object is put, that the snapshot has not expired.
//   - While a lease is renewed an object of it exists all the time, so that one listing does not miss it.
package lease
