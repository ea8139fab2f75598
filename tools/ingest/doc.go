// Package ingest reads dumps into a table: it reads files, merges their schemas, and has the writer put the rows of
// each partition in order and write them as segments, in one commit.
//
//	files ── source.Source ──> chunks ──> writer.Sorter ──> segments ──> target (table)
//	         a few at once     bound to                                  one commit
//	                           features
//
// Package writer says in what order rows are, how duplicates are found, and what memory is for. The keys keep their
// role in the table: later ingests cluster by them without being told. The order of sources is that of files, as
// source.Discover lists them, and of the rows in each. Open pages of Parquet files take a sixteenth of Options.Memory,
// chunks under way another, and row groups of Parquet files in object stores one more. Other files there take up to
// 24 MiB each besides. While an ingest runs, the Go runtime's soft memory limit is lowered to Memory (64 MiB at
// least), unless it is lower already.
//
// # Schema
//
// The types of a feature in all files, and in the table, are widened to one that holds every value exactly; where there
// is none the ingest is refused, naming the feature and both files. New features are added; a feature that a file lacks
// is null there. The column of Options.PartitionBy becomes a partition value and is no feature, as in Hive. A table
// that has partitions remembers their keys.
//
// # Failure
//
// Until the commit nothing of an ingest can be seen; segments written before an error are deleted, and those of a
// killed process are unreferenced objects that gc finds. Spill files have no name (unlinked when opened), so nothing is
// left of them however the process ends. The table's ledger of sources refuses what was ingested before; a source is
// the bytes of a file and the partition that its path gives it. Files without rows are not in the ledger.
//
// Overwriting replaces the partitions that the dump has rows of, and no others.
package ingest
