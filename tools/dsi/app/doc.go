// Package app is what the commands of dsi share: the arguments and flags that several of them have, how they open
// stores and tables, and how they show progress.
//
//	StoreArg ─> TableArgs ── Open* ──> storage.Store, Table, Snapshot, View     closed when the command ends
//	AtFlag, UsageFlags, KeyFlags, RowFlags, PopularFlag, MetricsFlag           embedded by the commands that have them
//	Size, Moment, Dedup                                                         values of flags, as users write them
//	Env ──> standard input and output, --json, Progress, metrics
package app
