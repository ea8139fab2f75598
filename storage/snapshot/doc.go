// Package snapshot finds, lists and reads the snapshots of a table.
//
//	Store ─── Log ───────────── Snapshot ─┬─ schema tree:  features, properties
//	 all       one table's       one      └─ listing tree: partitions, segments, overlays, sample lists, branches
//	 tables    snapshots
//
// A Store is what the tables of a store share: its objects, trees, segments, bitmaps and clocks. A Log is the snapshots
// of one table, numbered 1, 2, 3 ... Each is an object under tables/<table>/snapshots/, named so that the newest lists
// first. A Snapshot is one of them, opened: its Manifest is the decoded object, and its methods look up what the trees
// hold. A History walks everything that the snapshots of a table name, for gc and verify.
//
//	store.go, root.go   tables and their ids
//	log.go, list.go     which snapshots there are, reading one by its number
//	manifest.go         the bytes of a snapshot object
//	snapshot.go         features and segments; the other entries have a file each
//	view.go             what a branch reads
//
// # Invariants
//
//   - Opening a snapshot reads one object. What a look-up reads depends on what is asked for, not on the size of the
//     table.
//   - A Log is bound to the id of the table that it read first. If another table takes the name, its methods return
//     ErrReplaced.
//   - A snapshot that expired reads like one that never was, unless a branch or a lease holds it: then its pinned copy
//     is read.
//   - All stored bytes are checked before use. An error is a format.CorruptError that names the object.
//
// Store, Log and Snapshot are safe for concurrent use. What their methods return is the caller's unless a comment says
// otherwise.
package snapshot
