// Package orc reads ORC files. No Go library does: pyarrow reads them in a child process, which writes an Arrow stream.
//
//	file ── child: pyarrow ──> Arrow stream ── arrow.Reader ──> columns
//	   └─── Tail, Timestamps ─────────────────────────────────> timestamps that pyarrow does not hold
//
// pyarrow makes nanoseconds in 64 bits of every timestamp. Columns whose statistics do not rule out others are decoded
// here.
package orc
