// Package gc makes snapshots expire, and removes what no snapshot names.
//
//	Expire ── a commit: snapshots below a number have expired
//	Run ────── objects ── tables ── condemn ── fence ── look ── delete
//	Purge ──── the same for the data that only expired snapshots of one table name, whatever its age
//
//	expire.go  which snapshots expire
//	gc.go      Run: the objects of a store, and removing them
//	table.go   which snapshots of a table stay, what they name, and the fence
//	purge.go   Purge
//
// # Invariants
//
//   - Nothing that a committed snapshot names is removed, however slow its writer was: PROTOCOL.md says why.
//   - Objects are listed before tables, condemned before the fence, and looked for in snapshots after it.
//   - All ages are told by the clock that dates the objects.
//   - What cannot be read is left alone, with all that it may name, and reported.
package gc
