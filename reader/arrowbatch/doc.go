// Package arrowbatch converts batches of exact columns to Arrow records, and writes them to Parquet and Arrow IPC.
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
// # Duplicates
//
// If the plan's Dedup is not reader.DedupKJT, columns keep duplicates:
//
//	Dedup      lists                       dense, embedding, bytes, string
//	ikjt       dictionary<int32, list>     plain, or with Options.Dictionaries dictionary<int32, ...>
//	partial    list_view                   the same
//
// A dictionary has an entry for each slot of the batch, so every record has its own dictionaries: an IPC stream
// replaces them, an IPC file cannot hold them. Views share values; their starts and lengths are made for the record.
// Plain are maps (which have no view), extension types (which have no dictionary), folded columns, and everything in
// Parquet or with Options.Plain.
package arrowbatch
