// Package corpus tries dsi on files that nobody here wrote: each file of a corpus is ingested into a store of its own,
// exported again, and compared with the source by pyarrow, which reads both.
//
//	file ── dsi ingest ──> store ── dsi export --fold ──> parquet
//	  │                                                      │
//	  └───────────────── compare.py (pyarrow) ───────────────┘
//
// A file may be equal, or refused in one line that says why. It may never be wrong, panic or hang. The corpus is not
// part of the project: the test skips without it.
package corpus
