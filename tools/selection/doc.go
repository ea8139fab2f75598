// Package selection says which rows of a table are meant, and deletes them or keeps them as a sample list.
//
//	Query ─┬─ Partition, Where   reader.Matching: statistics, then the filter's features
//	       ├─ Lists              "a AND NOT b": bitmaps that the table has, joined
//	       └─ Keys               files of keys ──> keySet ──> segments' tables of keys: stripes that may have them
//	            │                                         ──> the key feature's slots of those, scanned ──> rows
//	            │
//	            v
//	        Selection: a bitmap per segment ──> Delete: deleted rows, in a new snapshot
//	                                     ├──> Create: rows of a sample list
//	                                     └──> Lookup: segments, rows, and positions for a reader.Taker
//
// A row is meant when it is in all that the query says, and not deleted. Both commits commute with appends, and deletes
// with each other; where one loses against a commit that took segments away (a compaction, an overwrite) the query is
// run again on what there is then.
//
// # Memory
//
// Keys are held as they are, in a hash table of at most KeySource.Memory bytes. Where more are given, they are taken in
// parts, told apart by hash: the files and the key feature are read once per part. Rows are held as Roaring bitmaps,
// those of all segments at once.
package selection
