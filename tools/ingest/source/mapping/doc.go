// Package mapping decides what the columns of a source become: it reads the mapping file and binds columns to features.
//
//	column.Type ── Binder.Bind, by Mapping ──> Binding ── Emit(column.Array) ──> a vector.Column a feature
//
// It knows nothing of formats, so that every rule about types holds for all of them. The rules are in
// docs/reference/types.md.
package mapping
