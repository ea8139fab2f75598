// Package vectortest draws types for property tests.
package vectortest

import (
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// Elems are all element types. Bool and the integers come first, then the two floats.
var Elems = []vector.Elem{
	vector.Bool, vector.Int8, vector.Int16, vector.Int32, vector.Int64, vector.Uint8, vector.Uint16, vector.Uint32,
	vector.Uint64, vector.Float32, vector.Float64,
}

// DrawType draws a type that has values.
func DrawType(t *rapid.T) vector.Type {
	ty := vector.Type{Kind: vector.Kind(rapid.IntRange(1, 6).Draw(t, "kind"))}
	switch ty.Kind {
	case vector.Weighted:
		ty.Elem = rapid.SampledFrom(Elems[:9]).Draw(t, "elem")
		ty.Score = rapid.SampledFrom(Elems[9:]).Draw(t, "score")
	case vector.Dense, vector.Sparse, vector.Embedding:
		ty.Elem = rapid.SampledFrom(Elems).Draw(t, "elem")
	}
	if ty.Kind == vector.Embedding {
		ty.Dim = uint32(rapid.IntRange(1, 5).Draw(t, "dim"))
	}
	return ty
}
