// Package selection finds rows of a table, and deletes them or keeps them as a sample list.
//
//	Query ─┬─ Partition, Where   reader.Matching: statistics, then the filter's features
//	       ├─ Lists              "a AND NOT b": bitmaps that the table has, joined
//	       └─ Keys               files of keys ──> keySet ──> segments' key tables: stripes that may have them
//	            │                                         ──> the key feature's slots of those, scanned ──> rows
//	            │
//	            v
//	        Selection: a bitmap per segment ──> Delete: deleted rows, in a new snapshot
//	                                     ├──> Create: rows of a sample list
//	                                     └──> Lookup: segments, rows, and positions for a reader.Taker
//
// A query selects the rows that match all its parts and are not deleted. Both commits commute with appends, and deletes
// with each other. Where one conflicts with a commit that removed segments (a compaction, an overwrite), the query runs
// again on the new snapshot.
//
// # Memory
//
// Keys are held whole, in a hash table of at most KeySource.Memory bytes. More keys are split into parts by hash, and
// the files and the key feature are read once per part. Rows are held as Roaring bitmaps, those of all segments at
// once.
package selection
