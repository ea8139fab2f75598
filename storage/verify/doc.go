// Package verify checks the stored bytes of tables against each other.
//
//	snapshots ── entries of the trees ── segments: objects, index, key table ── deep: feature files and packs
//	                  └── rows: deletion vectors, layers, sample lists, branches, leases
//
//	verify.go     snapshots, trees and segments
//	entries.go    how the entries of each space of a tree are checked
//	rows.go       deletes, overlays and sample lists of segments
//	meanwhile.go  a second look at what is damaged, where snapshots expired during the first
//
// # Invariants
//
//   - Run reports what is damaged and goes on. It returns an error only for what kept it from looking.
//   - Each object, segment and entry is checked once, however many snapshots name it.
//   - What expired while Run looked is not reported.
//   - Nothing is written.
package verify
