// Package encoding turns values into bytes and back.
//
// A stream is encoded into one chunk: a codec id and what that codec needs, often further chunks. SPEC.md fixes the
// bytes.
//
//	            AppendInts(dst, stream, vals)
//	vals ──> Chooser ── scan all, sample some ──> codec ──> chunk ──> dst
//	            │                                   │
//	            └── remembers by stream <── size ───┘
//
//	chunk  ┌────┬─────────────────────────────────────────┐
//	       │ id │ payload                                 │
//	       └────┴─────────────────────────────────────────┘
//	e.g.   ┌────┬───┬─────┬──────────────┬────────────────┐
//	       │ 6  │ k │ len │ values chunk │ codes chunk    │    dict(delta(for:49), for:14)
//	       └────┴───┴─────┴──────────────┴────────────────┘
//
//	chunk ──> Decoder ──> dst, whose length the caller knows
//
// There are four families of chunk: ints (all integers, lengths, the inverse), floats and doubles, bits (presence), and
// strings. A chunk holds neither its family nor its count of values: both follow from where it is stored.
//
// The loops that run for every value, with their kernels in assembly, are packages of their own: bitpack (frame of
// reference, patched), gather (dictionaries), rans (entropy-coded classes). They know neither codecs nor errors.
//
// The invariants:
//   - A codec id keeps its meaning for ever.
//   - Decoding writes exactly the values asked for, from exactly all of the bytes, or fails; whatever the bytes are, it
//     does not panic, and its memory is bounded by the lengths of both.
//   - Floats come back bit for bit.
//   - A chunk is borrowed by a decoder for the call only; appended bytes are the caller's.
package encoding
