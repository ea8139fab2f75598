// Package storage is the store: tables, snapshots, segments and commits.
//
//	Store ─── Table ─── Snapshot ─┬─ schema:  feature name -> Feature          (a tree)
//	 root     name      version   └─ listing: partition -> SegmentDescriptor   (a tree)
//	                                                         |
//	                                            Segment: index.sst: feature id -> where its file is, its directory
//	                                                         |  keys.sst:  hash of a key -> stripes that may have it
//	                                                         |
//	                                            packs and single feature files (package format)
//
// Store, Table, Snapshot and View are handles. The packages below do the work, each importing only those above it here:
//
//	object    blobs: a local directory, memory, S3, GCS, Azure
//	names     names of objects                  wire      reading bytes, errors of damage
//	sst       sorted tables                     bitmap    row bitmaps
//	catalog   entries of the two trees          lsm       the trees
//	segment   segments and their key tables     snapshot  the snapshots of a table
//	lease     keeping an expired snapshot       commit    the next snapshot
//	gc        expiry and garbage collection     verify    checking what is stored
//	repair    a snapshot without damaged parts
//
// The listing also has deleted rows, layers of overlays and rows of sample lists of a segment (decision 23). A Branch
// names snapshots, overlays and a list that are read together; a View is what a branch reads.
//
// A Snapshot is one object under tables/<table>/snapshots/, and creating it, if absent, is the commit. It holds what
// opening needs: totals, and the two trees. A tree is a sorted map kept as a few immutable tables (runs) of growing
// size and a small memtable inside the snapshot object; a commit adds to the memtable, and moves it into a run when it
// is large, merging runs so that their number grows with the logarithm of the table. Opening reads the snapshot;
// looking up ten features reads ten blocks of the schema; opening a partition reads that partition's part of the
// listing.
//
// # Invariants
//
//   - Nothing is ever overwritten, except that expired snapshots are truncated. An object that a snapshot names exists
//     and is durable before the snapshot is, and gc removes nothing that was acknowledged: PROTOCOL.md.
//   - Snapshots of a table are numbered 1, 2, 3 ... without gaps, and their times never go back. A number is never used
//     again.
//   - Ages are told by the clock that dates objects, and by no other.
//   - Readers take no lock and need no local disk.
//   - Object names are made in package names, those of leases in package lease. Names of tables, features and partition
//     values are data: only the table's becomes part of an object name, escaped.
//   - All stored bytes are checked before use. An error is a format.CorruptError that names the object.
//
// # Layout of a store
//
// The main objects; SPEC.md has all of them, byte by byte:
//
//	dsistore                                 the marker: this is a store
//	tables/<table>/table                     the root: the table's id
//	tables/<table>/snapshots/<8>/<10>.<n>    snapshot n: named so that the newest lists first
//	tables/<table>/leases/...                a lease
//	tables/<table>/usage/...                 usage records: package usage
//	<2 hex>/<32 hex>/listing.sst, schema.sst a run of a tree
//	<2 hex>/<32 hex>/rows.roaring            a row bitmap
//	<2 hex>/<32 hex>/index.sst, keys.sst     a segment's index and key table
//	<2 hex>/<32 hex>/pack-*, file-*          many small feature files; one large feature file
//
// # Ownership
//
// Values that methods return are the caller's unless a comment says otherwise. Store, Table and
// Snapshot are safe for concurrent use.
package storage
