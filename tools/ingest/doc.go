// Package ingest lands dumps in a table: it puts the rows of each partition in order with bounded memory and writes them
// as segments, in one commit.
//
//	files ── source.Source ──> chunks ──> buffer ──(full)── sort, spill ──> runs on disk
//	         a few at once               (columns           one after         |
//	                                      as they came)     the other         | fits: no runs, the buffer itself
//	                                                                          v
//	         target (table) <── segments <── features in parallel <── plans <── merge of records
//	         one commit                      stripe by stripe          rows of segments and stripes,
//	                                         gather pieces             as pieces of runs or chunks
//
// # Order
//
// The rows of a partition are ordered by session key, then time key, then as in the dump (files in the order in which
// source.Discover lists them). Sessions are in the order of their key, as with ORDER BY in SQL: strings by their first 8
// bytes, then by a hash. That order needs no state but a row's own keys, does not depend on how the dump was cut into
// files, keeps the key's range in each stripe narrow, so that looking up a session reads few stripes, and spreads
// the sessions of one time over the partition, which is where a shuffle starts from. Order in time is the partitions' business.
//
//   - A row whose session key is null is a session of one row. Such rows come last, in the dump's order.
//   - A null time comes after the others of its session.
//   - Without a session key every row is such a session: the dump's order is kept.
//   - Keys keep their role in the table: later ingests cluster by it without being told.
//
// # Duplicates
//
// Rows that lie together repeat. Before a segment is written, a sample of its stripes says which features repeat on the same
// rows: they become dedup groups, one inverse for all (dedup.Grouper). A stripe is gathered by runs: rows are compared where they lie, in
// Arrow's own memory if that is where they came from, and what repeats is not copied. Then each feature's stripes are looked through for rows that
// are equal and lists that overlap (dedup.Finder). A form is taken where it is fetched and decoded sooner, by encoding a stripe in
// each (format.Sizer), and examined again as stripes go by; what was learnt of a feature outlives the segment. Where nothing repeats
// the bytes are those of Options.Dedup off. The Report and the segment's index say what was found.
//
// # Memory
//
// Options.Memory is shared so: one half holds the buffer (by capacity of its slices, records included), a quarter the
// stripes that are being gathered, looked through for duplicates (scratch memory included) and encoded, half of it at most for the
// groups that a sample may make, an eighth the feature files that wait for their place in a pack; the rest
// is for chunks under way, the open pages of Parquet files (a sixteenth) and garbage. The buffer is one for all
// partitions: the partition is the first part of the sort key, so that hundreds of partitions cost no more than one. While an
// ingest runs, the Go runtime's soft memory limit is lowered to Memory (64 MiB at least), unless it is lower already. What remains
// in memory of a run is 40 bytes for each of its features and 64 KiB while runs are merged; a segment's plan takes
// at most 12 bytes a row. A feature costs nothing in the chunks and runs that lack it.
//
// # Schema
//
// The types of a feature in all files, and in the table, are widened to one that holds every value exactly; where there
// is none the ingest is refused, naming the feature and both files. New features are added; a feature that a file lacks is null there.
// The column of Options.PartitionBy becomes a partition value and is no feature, as in Hive. A table that has partitions remembers their keys.
//
// # Failure
//
// Until the commit nothing of an ingest can be seen; segments written before an error are deleted, and those of a killed
// process are unreferenced objects that gc finds. Spill files have no name (unlinked when opened), so nothing is left of
// them however the process ends. The table's ledger of sources refuses what was ingested before; a source is the
// bytes of a file and the partition that its path gives it. Files without rows are not in the ledger.
//
// Overwriting replaces the partitions that the dump has rows of, and no others.
package ingest
