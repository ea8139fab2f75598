// Package engine is what the Python package is linked to, without C: calls as JSON, batches as addresses.
//
//	Python                    C shared library (package cshared)        Engine
//	------                    ----------------------------------        ------
//	open, features, plan ───> dsi_call(JSON), dsi_wait, dsi_end ──────> Run, Begin    answers with JSON
//	ingest of a stream   ───> dsi_begin_stream, dsi_wait, dsi_end ────> BeginStream
//	scan, take           ───> dsi_stream(ArrowArrayStream) ───────────> Records   a record reader over pooled C memory
//	torch, numpy         ───> dsi_next(block) ────────────────────────> Next      all of a batch: reader/BATCH.md
//	                          dsi_release(batch), dsi_close(loader)
//
// Whatever Python may still read after a call lies in memory of the Allocator that the Engine was given, which is C's.
// Nothing that Go's collector owns crosses. A batch is pooled, and stays where it is until Python releases it, also
// when the loader is closed before.
//
// Every call that may wait has a time after which it returns with nothing done, so that an interpreter can look for
// signals between two calls.
//
// To add a method: a struct of its parameters (params.go), a function that takes it, and an entry in methods
// (engine.go).
package engine
