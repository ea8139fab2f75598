// Package plan describes what to read: which features of which rows, in which order and form.
//
//	Options ──New──> Plan        features looked up in the schema, types after transforms, defaults set
//	                  │  ▲
//	                JSON │       the same bytes on every machine; Hash identifies them
//
// A Plan is plain data and immutable. Package reader executes it.
package plan
