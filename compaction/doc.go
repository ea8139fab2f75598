// Package compaction rewrites the segments of a table into fewer, better ones, and erases rows.
//
//	Plan:  listing, deletes, layers, statistics ──> jobs, each with its reasons          (writes nothing)
//
//	Run:   job ──> inputs ──writer.Rewrite──> new segments, and for each overlay the segments of its layers
//	                                |
//	                             origins: for each new row, its input and row there
//	                                |
//	       deleted rows, rows of sample lists, covered rows ──> the same rows of the new segments
//	                                |
//	                          one commit per job
//
// # Jobs
//
// A job rewrites some segments of one partition together and commits them. Each job has a commit of its own: when the
// process is killed, committed jobs stay and the next plan has only the rest. gc removes segments that were written but
// not committed.
//
// Segments are merged by size, in tiers: Options.Fanout segments of about one size together, and smaller ones with
// them. So the number of times that a row is rewritten grows with the logarithm of the table's size. Sessions that are
// spread over several ingests come together. Segments that are too large are cut. A segment is rewritten by itself when
// many of its rows are deleted, or when dropped features take much of its bytes.
//
// A table without a session key keeps the order of its rows: only neighbours are merged, and the new segments take the
// position of the first input.
//
// # Deletes, overlays, sample lists and branches
//
// Deleted rows are not written. Overlays that are part of the table become part of the segments. Other overlays and
// sample lists are rewritten for the new segments, by a row-id remap. Branches name snapshots, which do not change. A
// reader sees the same rows, perhaps in another order.
//
// The missing-value policy of an overlay can differ between rows that a layer does not cover and segments without a
// layer. Segments with a layer of such an overlay are merged only with each other, and so are those without: see Job.
//
// # Concurrent changes
//
// Appends do not conflict. When rows of the inputs are deleted or put into sample lists meanwhile, these sets are
// remapped again and the commit is retried. When overlays or the schema change, the job starts again. When an input is
// gone, because another compaction rewrote it or its partition was overwritten, the job is left out. A lease protects
// the inputs from gc.
package compaction
