// Package lines splits text into records: it decompresses and decodes files, finds the ends of lines, and cuts a line
// into the fields of a row as Hive's text or CSV has them.
//
//	bytes ── gzip, zstd, bzip2, deflate ──> ── charset ──> Reader: lines ──> Splitter: fields ──> Rows: batches
//
// A line is borrowed until the next one is read, and so are its fields.
package lines
