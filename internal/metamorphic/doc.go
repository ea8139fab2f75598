// Package metamorphic runs random operations, from a seed, on a table and on a model. After every step it compares what
// is read.
//
//	operation (operations.go, and a file a family) ──┬──> the table: ingest, samples, storage
//	     drawn by weight                            └──> the model: a state a snapshot (model.go)
//	after each: reads (read.go) of the newest snapshot, of older ones, of branches, in random ways,
//	            each row compared with the model's
//
// The model has rows as Go maps and sets of row numbers. It shares no code with what it tests: it has its own
// predicates, its own hash for samples, its own algebra. It says which rows are read and what each holds. The order
// must be the same when the same plan is read again, in parts, by ranks or at row positions. A third of the tables has
// no session key; their rows must stay in the order in which they were ingested, whatever is compacted.
//
// A row has a number in the feature "row", which nothing changes. It identifies the row.
//
// # Known failures of other systems
//
// Besides random operations, tests replay known failures of other systems, by name:
//
//	type change then pruning          TestTypeChangeThenPruning
//	delete + compaction + overlay     TestDeleteCompactionOverlay
//	overlay of snapshot n, committed  TestOverlayOfBeforeTheCompaction; tools/overlay: TestConflicts
//	after compaction n+1
//	partial back-fill visible early   TestBackFillIsSeenWhole; tools/overlay: TestInterrupted
//	gc under a running reader         TestGCUnderARunningReader; storage: TestGCUnderReaders
//	row ids wrong after merge         TestRowsAfterAMerge, TestPositionsAfterDeletes; compaction: TestCarried
//	equality deletes with null keys   TestDeletesAndNullKeys
//	duplicate keys in overlay's file  TestKeysThatComeTwice; tools/overlay: TestDuplicateKeys
//	integers compared as floats       TestKeysBeyondFloats
//
// # Adding an operation
//
// Write a func(w *world) error that draws what to do from w, does it through the packages' own interfaces, and brings
// the model along:
//
//	next := w.latest().clone()     the newest state, to be changed
//	...                            change it; rows are replaced, never written to
//	w.commit(snapshot, next)       what the snapshot's number stands for from now on
//
// and put it into operations with a weight. It returns errSkip when there is nothing to do it to. An error of any other
// kind, and any difference, ends the run: it is printed with the seed, the step and all that was done before.
package metamorphic
