// Package arrowbatch turns batches of exact columns into Arrow records, and writes them to Parquet and Arrow IPC.
//
//	reader.Batch.Columns ── Converter ──> arrow.RecordBatch ── Write ──> Parquet (zstd), IPC file, IPC stream
//
//	feature                   Arrow                                        memory
//	dense, embedding          the element's type, fixed_size_list of it    shared: 64-bit integers, float32, float64
//	sparse                    list of it                                   offsets, presence and such values shared
//	weighted                  list<struct<id, score>>, or map<id, score>   the same
//	bytes, string             binary, string                               shared
//	a partition key         string                                       shared
//	any with a Logical        that type: timestamp, decimal, uuid, ...     shared where it is as wide
//	with Options.Fold:
//	  struct's members        struct                                       as its members
//	  map's keys              map                                          copied, row by row
//
// Element types narrower than 64 bits are copied, for batches hold every integer as int64. A record shares its batch's
// memory where it can: release the record before the batch.
//
// Duplicates are expanded: a column has a value a row. The types that keep them (dictionary, list-view) belong beside
// leaf in this package: they need the slots and the inverse that a batch of decoded stripes still has.
package arrowbatch
