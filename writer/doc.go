// Package writer turns rows into segments: it puts them in order with bounded memory, finds what repeats, encodes and
// packs. It commits nothing. Ingest writes what sources give, compaction what is stored already; both end in the same
// steps.
//
//	sources ──> Sorter.Add ──> buffer ──(full)── sort, spill ──> runs on disk
//	                              | fits: no runs, the buffer itself     |
//	                              v                                      v
//	Sorter.Write ─────────────> records in order: merge ──> plans ──> features in parallel ──> segments ──> Target
//	                              ^                     rows of segments      stripe by stripe:
//	Rewrite.Run ── keys of segments, in order already   and stripes, as       gather pieces, find duplicates,
//	                                                    pieces of sources     encode, pack
//
// # Order
//
// The rows of a partition are ordered by session key, then time key, then by source. Sessions are in the order of their
// key, as with ORDER BY in SQL: strings by their first 8 bytes, then by a hash. That order needs no state but a row's
// own keys, does not depend on how the rows were cut into files, keeps the key's range in each stripe narrow, so that
// looking up a session reads few stripes, and spreads the sessions of one time over the partition, which is where a
// shuffle starts from. Order in time is the partitions' business.
//
//   - A row whose session key is null is a session of one row. Such rows come last, in the order of their sources.
//   - A null time comes after the others of its session.
//   - Without a session key every row is such a session: the order is kept.
//
// # Duplicates
//
// Rows that lie together repeat. Before a segment is written, a sample of its stripes says which features repeat on the
// same rows: they become dedup groups, one inverse for all (dedup.Grouper). A stripe is gathered by runs: rows are
// compared where they lie, in Arrow's own memory if that is where they came from, and what repeats is not copied. Then
// each feature's stripes are looked through for rows that are equal and lists that overlap (dedup.Finder). A form is
// taken where it is fetched and decoded sooner, by encoding a stripe in each (format.Sizer), and examined again as
// stripes go by; what was learnt of a feature outlives the segment. Where nothing repeats the bytes are those of
// Options.Dedup off. Duplicates and the segment's index say what was found.
//
// # Memory
//
// Options.Memory is shared so: one half holds the buffer (by capacity of its slices, records included), a quarter the
// stripes that are being gathered, looked through for duplicates (scratch memory included) and encoded, half of it at
// most for the groups that a sample may make, an eighth the feature files that wait for their place in a pack; the rest
// is for what sources read ahead, and garbage. The buffer is one for all
// partitions: the partition is the first part of the sort key, so that hundreds of partitions cost no more than one.
// What remains in memory of a run is 40 bytes for each of its features and 64 KiB while runs are merged; a segment's
// plan takes at most 12 bytes per row. A feature costs nothing in the rows and runs that lack it.
//
// # Failure
//
// Segments exist before they are committed: the caller discards those of a failed job (Rewrite does), and those of a
// killed process are unreferenced objects that gc finds. Spill files have no name (unlinked when opened), so nothing is
// left of them however the process ends.
package writer
