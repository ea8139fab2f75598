// Package engine is what the Python package is linked to, without C: calls as JSON, batches as addresses.
//
//	Python                    C shared library (package cshared)        Engine
//	------                    ----------------------------------        ------
//	open, features, plan ───> dsi_begin(JSON), dsi_wait, dsi_end ─────> Begin     answers with JSON
//	ingest of a stream   ───> dsi_ingest_stream, dsi_wait, dsi_end ───> BeginIngest
//	scan                 ───> dsi_stream(ArrowArrayStream) ───────────> Records   a record reader over pooled C memory
//	torch                ───> dsi_next(words) ────────────────────────> Loader    a batch is a list of 64-bit words:
//	                          dsi_release(batch), dsi_close(loader)               addresses and counts, see words.go
//
// Whatever Python may still read after a call lies in memory of the Allocator that the Engine was given, which is C's;
// nothing that Go's collector owns crosses. A batch is pooled, and stays where it is until Python gives it back, also when
// the loader is closed before.
//
// Every call that may wait has a time after which it returns with nothing done, so that an interpreter can look for
// signals between two calls.
package engine
