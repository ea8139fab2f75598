// Package plan says what to read: which features of which rows, in which order, in what form.
//
//	Options ──New──> Plan        features found in the schema, types after transforms, defaults filled in
//	                  │  ▲
//	                JSON │       the same bytes everywhere; Hash names them
//
// A Plan is a pure value and is immutable once made. Package reader executes it.
package plan
