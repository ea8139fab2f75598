// Package segment reads and writes segments: the objects that hold the rows of one partition, feature by feature.
//
//	            Writer                                        Reader
//	AddFeature ──┬─> pack-000000 ... many small files         index.sst ──> Entry: where a feature file is
//	             ├─> file-000007 ... a large file
//	             └─> key hashes ──> keys.sst                  keys.sst  ──> KeyRows: rows that may have a key
//	Finish ────────> index.sst
//
// A Store makes Writers, opens Readers and keeps key tables open.
//
//	writer.go     packs, files and the index, written by several goroutines in a fixed order
//	reader.go     the index: its records and how they are read
//	keytable.go   the key table: its bytes, writing and checking it
//	keylookup.go  the key table: looking up hashes
//
// # Invariants
//
//   - A segment is immutable. Finish returns when all its objects are durable, the index last.
//   - The bytes written depend on the order of the features, not on the timing of the calls.
//   - All stored bytes are checked before use. An error is a format.CorruptError that names the object.
//   - A key table says where a key may be, never that it is there. Without it every row is looked at.
//
// # Ownership
//
// What methods return is the caller's unless a comment says otherwise. Store and Reader are safe for concurrent use,
// Writer as its comment says.
package segment
