// Package column holds columns of nested values between the readers of formats and what becomes of them: an Array has
// the values of a Type, as Arrow's arrays have, with few shapes.
//
//	format readers ── Batch: an Array an input column ──> mapping ──> features
//
// A Reader is what each format has: it gives batches and owns none of them. Readers append values one by one (NewArray,
// AppendText, AppendNull) or fill the slices of an Array themselves; Check verifies those that came from untrusted
// offsets. A value that cannot be stored is a Fault of its entry and makes its row bad; what no table holds is refused
// by name (Refuse).
//
// No length from an input sizes an allocation before it is checked against Limits or against the bytes that are there.
package column
