// Package encoding encodes streams of values to bytes and decodes them.
//
// A stream is encoded as one chunk: a codec id and the codec's payload, which often has nested chunks. SPEC.md
// specifies the bytes.
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
// The hot loops with kernels in assembly are in packages of their own: bitpack (frame of reference, patched), gather
// (dictionaries), rans (entropy-coded classes). These packages do not depend on this one.
//
// Invariants:
//   - A codec id never changes meaning.
//   - Decoding uses all bytes of a chunk and writes all values asked for, or returns an error. For any bytes, it does
//     not panic, and its memory is bounded by the lengths of source and destination.
//   - Floats are preserved bit for bit.
//   - A decoder borrows a chunk for the call only.
package encoding
