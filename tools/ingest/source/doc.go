// Package source reads dumps: Parquet, Hive layouts, Hive text, JSON lines, Arrow streams and ORC.
//
//	paths ── Discover ──> File ── Open ──> Source ── Next ──> Chunk (plain vector.Columns)
//
//	format reader     parquet | arrow (orc) | text | jsonl
//	      |               each turns its bytes into batches of nested arrays, one an input column
//	      v
//	   array          leaf values, list offsets, validity; shaped by a node (the column's type)
//	      |
//	      v
//	   binding        the mapping file's word on each column: struct -> one feature a member, map -> one feature a key,
//	      |           list<number> -> sparse, list<struct<id, score>> -> weighted, fixed-size list -> embedding, ...
//	      v
//	   Chunk          rows that were bad are dropped here, whole, from every column
//
// Format readers know nothing of features, and the binding knows nothing of formats, so every rule about types holds
// for all of them. The rules are in docs/mapping.md.
//
// Inputs may be hostile. No stored length sizes an allocation before it has been checked against what is really there
// or against Limits; damage is an error that names file, row group, row and column, never a panic.
//
// A format reader hands its arrays over: whoever receives a batch owns its memory. The caller of Next owns the columns
// of a Chunk; no two share memory.
package source
