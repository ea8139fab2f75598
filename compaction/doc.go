// Package compaction makes the segments of a table into fewer, better ones, and erases rows.
//
//	Plan:  listing, deletes, layers, statistics ──> jobs, each with its reasons          (reads, writes nothing)
//
//	Run:   job ──> inputs ──writer.Rewrite──> new segments, and for each overlay the segments of its layers
//	                                |
//	                             origins: for each new row, its input and row there
//	                                |
//	       deleted rows, rows of sample lists, covered rows ──> the same sets of the new segments
//	                                |
//	                          one commit a job
//
// # Jobs
//
// A job is some segments of one partition that are rewritten together, and committed by themselves: what is committed
// stays when the process is killed, and the next plan has only the rest. What was written and not committed nobody
// names; gc takes it.
//
// Segments are merged by size, in tiers: those of about one size, when there are Options.Fanout of them, and the
// smaller ones with them, so that a row is rewritten as often as the logarithm of the table. Sessions that lie in
// several ingests come together. Too large segments are cut. A table without a session key keeps the order of its rows:
// only neighbours are merged there, and the new segments stand where the first of the old ones stood. Segments are
// rewritten by themselves when many of their rows are deleted, or much of them is features that were dropped.
//
// # What moves with the rows
//
// Deleted rows are not written. Overlays that are part of the table become part of the segments. Other overlays and
// sample lists are rewritten for the new segments, by a row-id remap. Branches name snapshots, which do not change. A
// reader sees the same rows, perhaps in another order.
//
// An overlay may say something else of rows that a layer does not cover than of segments without one. Such segments are
// merged only with those that have a layer too, or none either: see Job.
//
// # Others at work
//
// Appends go on meanwhile, and are not waited for. When rows of the inputs are deleted, or put into sample lists, these
// sets are remapped again, and the commit is tried again; when overlays or the schema change, the job is
// begun again. When an input is gone, because another compaction had it or its partition was overwritten, the job is
// left out. A lease keeps the inputs.
package compaction
