// Package repair takes what is damaged out of a table, and says first what that loses.
//
//	verify ── damage ──> plan: of each thing that is damaged, what becomes of it         (writes nothing)
//	                       |
//	                       ├─ whole without it   copied to new ids, nothing is lost       index, key table, pack
//	                       ├─ lost               taken out of the listing                 rows, lists, branches
//	                       └─ not its business   left, and named
//	                       |
//	                     one commit of operation "repair"
//
//	repair.go     options, report, the order of things
//	snapshots.go  which snapshots can be read, and which one a repair builds on
//	segments.go   which parts of segments, their deletes, overlays and lists can be read
//	apply.go      copies and the commit
//
// # Invariants
//
//   - Only what is certainly damaged is taken out: bytes that are wrong, or objects that are not there, when they are
//     looked at twice. What could not be looked at for another reason ends the repair.
//   - No value becomes another one, and no deleted row comes back, unless Options say so.
//   - Nothing is deleted or overwritten. What is taken out stays where it is, named by the snapshots before.
//   - A repair is one commit: before it the table is as it was.
package repair
