// Package workload makes training tables of the published shape ("The workload" in bench/README.md) from a seed, as
// Parquet files, and says what every row of them is without reading a file.
//
// Every value is a pure function of (seed, feature, session, sample) or of (seed, feature, item): nothing depends on
// what was generated before, so rows can be made in any order, any number of times, in memory bounded by one window.
//
//	table ─┬─ partition 0 ─┬─ window 0   at most 131,072 rows, whole sessions
//	       │  (ds=/hr=)    └─ window 1      sessions   s0 s0 s0 | s1 | s2 s2 ...   the clustered order
//	       └─ partition 1 ── ...            arrival    s2 s0 s1 s2 s0 ...          the interleaved order
//
//	user features     one value a session and version; the features of a change group take new versions together
//	histories         one stream of ids per session; a row's list is a range of it that slides as new ids arrive
//	item features     a function of the item that the row shows; items are Zipf-distributed
//	context features  a value of its own for each row
//
// The interleaved and the clustered table of one seed hold the same rows. The same Options give the same bytes for a
// given Version of this package.
package workload
