// Package writer turns rows into segments: it sorts them in bounded memory, finds duplicates, encodes and packs. It
// commits nothing. Ingest writes the rows of sources, compaction those of stored segments; both end in the same steps.
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
// The rows of a partition are ordered by session key, then time key, then position in the sources. Sessions are in the
// order of their key, as with ORDER BY in SQL: strings by their first 8 bytes, then by a hash.
//
// This order depends on a row's own keys only, not on how the rows were cut into files. It keeps the key range of each
// stripe narrow, so that the lookup of a session reads few stripes. It spreads the sessions of one time over the
// partition, which is a good start for a shuffle. To order rows by time, partition by time.
//
//   - A row whose session key is null is a session of one row. Such rows come last, in the order of their sources.
//   - A null time comes after the others of its session.
//   - Without a session key every row is such a session: the rows keep their order.
//
// # Duplicates
//
// Neighbouring rows repeat values. Before a segment is written, a sample of its stripes says which features repeat on
// the same rows. They become a dedup group, with one inverse for all of them (dedup.Grouper).
//
// A stripe is gathered by runs. Rows are compared where they are stored, which may be Arrow's own memory, and repeated
// values are not copied. Then the stripes of each feature are searched for equal rows and overlapping lists
// (dedup.Finder). The writer tries each technique on a stripe (format.Sizer) and keeps the one with the lowest cost of
// fetching and decoding. It repeats the trial every few stripes and starts the next segment with the last choice
// (dedup.Choice). Without repeated values the bytes are those of DedupOff. Duplicates and the segment's index hold the
// figures.
//
// # Memory
//
// Options.Memory is divided:
//
//   - one half: the buffer, by the capacity of its slices, records included. There is one buffer for all partitions:
//     the partition is the first part of the sort key, so that hundreds of partitions cost no more than one;
//   - one quarter: stripes that are gathered, searched for duplicates and encoded, with their scratch memory. While
//     groups are found, which is before, half of it is for samples and half for the groups;
//   - one eighth: feature files that wait for their turn in a pack;
//   - the rest: the sources' read-ahead, and garbage.
//
// A worker holds the rows of one stripe, whatever the number of runs or inputs that the segment is made of, and memory
// for as many more at most; and of each run a block of its feature of which it has read some rows, about
// 64 KiB.
//
// A dedup group holds the files of its features until it ends. With its stripes they take at most half of Memory: then
// no other unit is written, and a feature more begins another group.
//
// A run keeps 40 bytes per feature in memory, and 64 KiB more while runs are merged. The plan of a segment takes at
// most 12 bytes per row, and as much again where rows between them are left out. A feature costs nothing in chunks and
// runs that lack it.
//
// # Failure
//
// Segments exist before they are committed. When a job fails, the caller discards its segments (Rewrite does it
// itself). When the process is killed, gc deletes them as unreferenced objects. Spill files are unlinked when they are
// opened, so they disappear with the process.
package writer
