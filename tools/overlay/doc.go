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
// The rows are those that a reader of the newest snapshot, or of a branch, sees. Deleted rows are not looked at: they
// are covered by nothing, hold null in a layer, and do not keep a layer from covering its segment whole.
//
// A key is one feature or several: integers, strings and bytes, compared by value, whatever their widths. Two hashes
// that are equal say nothing; keys are compared. Each key comes once in the files: the second is an error that names
// both rows, and so is a null. A key that several rows of the table have gives its values to all of them; a row whose
// key is null, in any part, is not covered. Keys that the table does not have are counted, and the first few are named.
//
// # Types
//
// Those of a feature in several files are widened to one that holds every value exactly, as ingest does it. A feature
// that the table has keeps its id, role and logical type, and its type must widen with the table's; keys and partition
// keys are not replaced. A condition gives 1 where it is true, 0 where it is false, and null where SQL leaves it
// unknown; other expressions numbers, as expr.Value has them.
//
// # Memory
//
// Options.Memory bounds what is held, by halves. While the files fit one half they stay there as columns, under a hash
// table of their keys; the table's keys stream past it, and no row of the table is kept but the matches of one segment
// (8 bytes each). Of a key of one feature, and files with fewer rows than an eighth of a segment's, the stripes alone
// that the segment's table of keys names are read. Beyond that the rows of the files and the keys of the table are each
// sorted by (hash, place), in runs on disk; merging the two gives matches, which are sorted by (segment, row) in the
// same way, and turned into columns segment by segment. What stays in memory is a bit for each row of the files, 24
// bytes for each row of a sorter's buffer, and a block for each run that is merged.
//
// The other half is the reader's, whose batches the keys come in, and the stripes' that are encoded. Of a segment at
// hand a bit or two per row are held, and of an expression that gives numbers 8 bytes per row.
//
// # Failure
//
// Until the commit nothing can be seen. Layers written before an error are deleted; those of a killed process are
// unreferenced objects that gc finds. Spill files have no name. Where segments were compacted away meanwhile, or
// ingested, the commit is made again with layers for the new ones; the others stay as they are.
package overlay
