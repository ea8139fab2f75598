// Package overlay makes overlays: features over the rows that a table has, joined to them from files by a key or
// computed from features that are there. It writes the new columns and nothing else, in one commit.
//
//	files ── source.Source ──> rows by key ─┐ fits: a table by hash in memory (held.go)
//	                                        │ else: runs on disk, by hash of the key (sort.go, join.go)
//	table ── reader.Scanner ──> keys ───────┴─> matches in the order of rows ─┐
//	      └─ reader.Scanner ──> features ── expression (expression.go) ───────┴─> layer (layer.go) ──> Commit
//	                                        a segment at a time                  a segment's features, in its stripes,
//	                                                                             and which of its rows are covered
//
// # Rows and keys
//
// The rows are those that a reader of the newest snapshot, or of a branch, sees. Deleted rows are ignored: no layer
// covers them, they are null in a layer, and a layer without them still covers its whole segment.
//
// A key is one feature or several: integers, strings and bytes, compared by value, whatever their widths. Where hashes
// are equal, keys are compared. A key may come once in the files: the second is an error that names both rows. A null
// key is an error, too. If several rows of the table have a key, all of them get its values. A row whose key is null,
// in any part, is not covered. Keys that the table does not have are counted, and the first few are named.
//
// # Types
//
// The types of a feature in several files are widened to one that holds every value exactly, as ingest does it. A
// feature that the table has keeps its id, role and logical type, and its type must widen with the table's. Keys and
// partition keys cannot be replaced. A condition gives 1 where it is true, 0 where it is false, and null where it is
// unknown in SQL. Other expressions give numbers, as expr.Value has them.
//
// # Memory
//
// Options.Memory is shared in halves.
//
// One half holds the files. If they fit, they stay in memory as columns, under a hash table of their keys. The table's
// keys stream past it; of the table's rows only the matches of one segment are held (8 bytes each). If the key is one
// feature, and the files have fewer rows than an eighth of a segment, only the stripes that the segment's key table
// names are read. If the files do not fit, their rows and the keys of the table are each sorted by (hash, place), in
// runs on disk. Merging the two gives matches, which are sorted by (segment, row) in the same way, and turned into
// columns segment by segment. Memory then holds a bit per row of the files, 24 bytes per row of a sorter's buffer, and
// a block per run that is merged.
//
// The other half is for the reader, whose batches have the keys, and for the stripes that are encoded. Of the segment
// that is written, a bit or two per row are held, and 8 bytes per row of an expression that gives numbers.
//
// # Failure
//
// Nothing is visible before the commit. Layers written before an error are deleted; those of a killed process are
// unreferenced objects that gc removes. Spill files have no name. Where segments were compacted or ingested meanwhile,
// layers are written for the new ones, and the commit is made again.
package overlay
