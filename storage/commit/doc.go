// Package commit makes the next snapshot of a table.
//
//	Change{Base, Ops} ── Run ─┬─> newest snapshot, or nothing         read
//	                          ├─> what it builds on and adds exists    checks.go
//	                          ├─> operations, phase by phase ── edit   op_*.go
//	                          ├─> runs of the two trees                put
//	                          └─> snapshot n+1, if absent              put: this is the commit
//	                                     └─ taken: try again on top of it
//
// An Operation is one thing that a commit does. Each has a file of its own, named op_*.go: its type, how it is checked
// and how it is applied. To add an operation, add such a file.
//
// # Invariants
//
//   - Creating the snapshot object, if absent, is the commit. Everything that it names is durable before.
//   - Operations are applied in the order of their phases: what is defined comes before what names it.
//   - An operation that does not commute with a commit after the base returns an error that matches ErrConflict.
//     Nothing is changed then.
//   - The order of the steps of Run is what keeps commits and gc apart: PROTOCOL.md.
//   - A retried commit deletes the runs that it made, unless the outcome of its put is not known.
package commit
