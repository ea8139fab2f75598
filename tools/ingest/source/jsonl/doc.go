// Package jsonl reads JSON lines: an object a line. The types are inferred from all files before the first row is read,
// from the first 4 MiB of a stream; a line that does not agree with them is a bad row.
package jsonl
