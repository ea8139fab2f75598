// Package usage keeps usage records: what jobs read of a table, and what it cost them.
//
//	reader ── Begin, End ──> Writer ──> records of one process, rewritten as they grow ─┐
//	                         in the                                                     ├─ Rollup ──> one rollup a day
//	                         background      those of others ───────────────────────────┘                 |
//	                                                                                                      |
//	dsistat, compaction <── Summary <── Load: rollups, and the records that none of them has yet <────────┘
//
// A reader (Source) counts anyway what it does; a Writer takes the counters over when the reader is closed, and every
// five minutes while it is open. It adds up what the readers of its process do that read alike (tally, sum), and writes
// it as one object beside the table, which it replaces as long as it grows, for half an hour. So a job that opens a
// reader an epoch, or a thousand a minute, costs as many requests as any other.
//
// A Rollup merges the records that nobody writes any more, by day, job and user, and removes them. Load reads the
// rollups, and the records that are not in them.
//
// # Invariants
//
//   - Recording never hurts a read: nothing waits for it, no error of it is told to a reader, and what it holds in
//     memory is bounded. What cannot be written is counted (Totals) and in the end forgotten.
//   - No record is counted twice, whichever process dies or runs at the same time: a rollup names what is in it, and
//     there is one of each number. A record may be lost.
//   - Records are of no importance to the table: nothing that reads or changes it looks at them. Damaged ones are
//     passed over, and counted.
//   - Records hold no values of rows. Names of features, branches and sample lists, of jobs, users and hosts are in
//     them; a filter, which may hold values, is there as a hash. So erasing rows leaves them as they are.
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
