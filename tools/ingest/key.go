package ingest

import "github.com/dsistore/dsistore/format/vector"

// A keyClass tells apart keys whose order forms do not compare.
type keyClass uint8

const (
	noClass    keyClass = 0
	intClass   keyClass = 1
	floatClass keyClass = 2
	bytesClass keyClass = 3
)

func classOf(t vector.Type) keyClass {
	switch {
	case t.Kind == vector.Bytes || t.Kind == vector.String:
		return bytesClass
	case t.Kind != vector.Dense:
		return noClass
	case t.Elem.IsInteger():
		return intClass
	}
	return floatClass
}
