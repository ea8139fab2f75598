package ingest

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

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

// checkSessionType returns an error unless a column of type t can be a session key.
func checkSessionType(name string, t vector.Type) error {
	if classOf(t) == noClass {
		return fmt.Errorf("session key %q is %v: want a number or a string", name, t)
	}
	return nil
}

// checkTimeType returns an error unless a column of type t can be a time key.
func checkTimeType(name string, t vector.Type) error {
	if c := classOf(t); c != intClass && c != floatClass {
		return fmt.Errorf("time key %q is %v: want a number, a date or a timestamp", name, t)
	}
	return nil
}
