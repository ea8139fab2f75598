// Package lakehouse refuses files of tables that have a log: Delta Lake, Iceberg, Hudi, and Hive's transactional
// tables. Their files keep rows that were deleted or replaced.
//
//	a directory, and those above it    Marked, Ancestors
//	a file                             CheckName; FileMeta: the names and ids of its columns, its metadata
package lakehouse
