// Package usage keeps usage records: what jobs read of a table, and what it cost them.
//
//	reader ── Begin, End ──> Writer ──> records of one process, rewritten as they grow ─┐
//	                         in the                                                     ├─ Rollup ──> one rollup a day
//	                         background      those of others ───────────────────────────┘                 |
//	                                                                                                      |
//	dsistat, compaction <── Summary <── Load: rollups, and the records that none of them has yet <────────┘
//
// A reader (Source) counts what it does. A Writer takes the counters over when the reader is closed, and every five
// minutes while it is open. It adds up the readers of its process that read the same (tally, sum), and writes the sums
// as one object beside the table. For half an hour it replaces that object as the sums grow. So a job that opens a
// reader per epoch, or a thousand per minute, costs as many requests as any other.
//
// A Rollup merges the records that no process writes any more, by day, job and user, and removes them. Load reads the
// rollups, and the records that are not in them.
//
// # Invariants
//
//   - Recording never hurts a read: no read waits for it, no reader gets its errors, and its memory is bounded.
//     Records that cannot be written are counted (Totals) and dropped in the end.
//   - No record is counted twice, whichever process dies or runs at the same time: a rollup names the records in it,
//     and there is one rollup of each number. A record may be lost.
//   - The table does not depend on its records: nothing that reads or changes it reads them. Damaged ones are passed
//     over, and counted.
//   - Records hold no values of rows. They hold names of features, branches, sample lists, jobs, users and hosts, and a
//     hash of a filter, which may hold values. So erasing rows leaves records as they are.
//
// # Objects (SPEC.md is byte-exact)
//
//	tables/<table>/usage/<day>/<32 hex>-<6 digits>   records of one process, and how often they were replaced
//	tables/<table>/usage/rollup/<day>-<10 digits>    a day's rollup; of several the one with the largest number counts
//
// # Ownership
//
// Writers are safe for concurrent use. What Load returns is the caller's.
package usage
