// Package source reads the files that tables are made of: Parquet, Hive layouts, delimited text, JSON lines, Arrow and
// ORC.
//
//	paths ── Discover ──> File ── Open ──> Source ── Next ──> Chunk (plain vector.Columns)
//
//	arrow  parquet  orc  text  jsonl     a package per format: bytes become batches of column.Arrays
//	      \    |     |    |    /
//	             mapping                 what a column becomes: struct -> a feature per member,
//	                |                    map -> a feature per key, list<number> -> sparse, ...
//	              Chunk                  bad rows are left out here, from every column
//
//	files     where files lie: on the disk or in a bucket
//	input     what a format is (Format), and the files that are read together (Set)
//	column    types and arrays of nested values, between formats and mapping
//	lines     text as records
//	hive      types, DDL and partitions
//	lakehouse refuses tables that have a log
//	stream    fingerprints, pipes
//
// Formats know nothing of features, and mapping knows nothing of formats, so that every rule about types holds for all
// of them. The rules are in docs/reference/types.md. A new format is a package and a line in the list formats.
//
// Inputs are untrusted. No stored length sizes an allocation before it has been checked against what is really there or
// against Limits; damage is an error that names file, row group, row and column, never a panic.
//
// A format reader hands its arrays over: the receiver of a batch owns its memory. The caller of Next owns the columns
// of a Chunk; no two share memory.
package source
