// Package parquet reads Parquet files, a batch of rows of all columns at a time.
//
//	footer    FileMetaData: the schema, the row groups and their column chunks
//	page      the pages of a column chunk: headers, decompression, levels and values
//	thrift    the encoding of both
//
//	footer ── schemaWalker ──> levelNode: a column.Type with its levels
//	pages ── leafReader ──> values of a leaf ── assemble, by levels ──> column.Array
//
// arrow-go has the schema's nodes and decodes the pages in the rarer encodings; docs/decisions/0039 says why the rest
// is ours.
package parquet
