package mapping

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Field is a feature that a source offers. Fields are compared by pointer within one Source: the same feature of one
// Source is always the same *Field, but its Type may differ between Sources (files); the engine widens.
type Field struct {
	Name    string
	Type    vector.Type
	Role    catalog.Role
	Logical string
	// NoValue: the source's type for the field says nothing (Arrow's null type, JSON keys that were only ever null).
	// Every row is null and Type is a placeholder that any other file's type replaces.
	NoValue bool
	// Set on features that came out of a map or struct column. A marker (the feature that tells a null map or struct
	// from an empty one) has an OriginColumn, an empty OriginKey, and the Logical StructMarker or a MapMarker.
	OriginColumn, OriginKey string

	Path string // the source's own name, which the mapping file uses
}
