package vector

import "fmt"

// Kind is the shape of a feature's values. The numbers are written to disk and never change meaning.
type Kind uint8

const (
	Dense     Kind = 1 // one number
	Sparse    Kind = 2 // a list of numbers, usually ids
	Weighted  Kind = 3 // a list of ids with a score for each
	Embedding Kind = 4 // Dim numbers
	Bytes     Kind = 5 // a byte string
	String    Kind = 6 // a byte string that is valid UTF-8
	Inverse   Kind = 7 // no value of its own: the inverse that the features of a dedup group share
)

// Elem is the type of a number in the source and on disk. The numbers are written to disk and never change meaning.
type Elem uint8

const (
	NoElem  Elem = 0
	Bool    Elem = 1
	Int8    Elem = 2
	Int16   Elem = 3
	Int32   Elem = 4
	Int64   Elem = 5
	Uint8   Elem = 6
	Uint16  Elem = 7
	Uint32  Elem = 8
	Uint64  Elem = 9 // held in an int64 bit for bit
	Float32 Elem = 10
	Float64 Elem = 11
)

// Physical is the Go slice that holds an Elem in memory.
type Physical uint8

const (
	NoPhysical    Physical = 0
	Int64Values   Physical = 1 // every integer and bool
	Float32Values Physical = 2
	Float64Values Physical = 3
	ByteValues    Physical = 4 // bytes and strings
)

// Physical returns the slice type that holds e.
func (e Elem) Physical() Physical {
	switch e {
	case Float32:
		return Float32Values
	case Float64:
		return Float64Values
	case NoElem:
		return NoPhysical
	}
	return Int64Values
}

// IsInteger reports whether e is an integer or bool.
func (e Elem) IsInteger() bool { return e >= Bool && e <= Uint64 }

var elemNames = [...]string{
	NoElem: "none", Bool: "bool", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64", Float32: "float32", Float64: "float64",
}

func (e Elem) String() string {
	if int(e) < len(elemNames) {
		return elemNames[e]
	}
	return fmt.Sprintf("elem(%d)", uint8(e))
}

var kindNames = [...]string{
	Dense: "dense", Sparse: "sparse", Weighted: "weighted", Embedding: "embedding",
	Bytes: "bytes", String: "string", Inverse: "inverse",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind returns the Kind that String prints as s.
func ParseKind(s string) (Kind, error) {
	for k, n := range kindNames {
		if n == s && n != "" {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("kind %q: want dense, sparse, weighted, embedding, bytes or string", s)
}

// ParseElem returns the Elem that String prints as s.
func ParseElem(s string) (Elem, error) {
	for e, n := range elemNames {
		if n == s && e != 0 {
			return Elem(e), nil
		}
	}
	return 0, fmt.Errorf("element type %q: want bool, int8 to int64, uint8 to uint64, float32 or float64", s)
}

// MaxDim is the largest dimension of an embedding.
const MaxDim = 1 << 16

// A Type is the complete type of a feature's values. It is comparable.
type Type struct {
	Kind  Kind
	Elem  Elem   // the numbers; NoElem for Bytes, String and Inverse
	Score Elem   // Weighted only: Float32 or Float64
	Dim   uint32 // Embedding only: 1 to MaxDim
}

// Validate returns an error naming the first part of t that does not fit its Kind.
func (t Type) Validate() error {
	badElem := t.Elem == NoElem || t.Elem > Float64
	switch t.Kind {
	case Dense, Sparse:
		if badElem || t.Score != NoElem || t.Dim != 0 {
			return fmt.Errorf("type %v: a %v feature has an element type and neither score nor dimension", t, t.Kind)
		}
	case Weighted:
		if badElem || !t.Elem.IsInteger() || (t.Score != Float32 && t.Score != Float64) || t.Dim != 0 {
			return fmt.Errorf("type %v: a weighted feature has integer ids and float32 or float64 scores", t)
		}
	case Embedding:
		if badElem || t.Score != NoElem || t.Dim == 0 || t.Dim > MaxDim {
			return fmt.Errorf("type %v: an embedding has an element type and a dimension of 1 to %d", t, MaxDim)
		}
	case Bytes, String, Inverse:
		if t.Elem != NoElem || t.Score != NoElem || t.Dim != 0 {
			return fmt.Errorf("type %v: a %v feature has neither element type, score nor dimension", t, t.Kind)
		}
	default:
		return fmt.Errorf("type %v: unknown kind %d", t, uint8(t.Kind))
	}
	return nil
}

func (t Type) String() string {
	switch t.Kind {
	case Dense:
		return t.Elem.String()
	case Sparse:
		return "list<" + t.Elem.String() + ">"
	case Weighted:
		return "list<" + t.Elem.String() + ":" + t.Score.String() + ">"
	case Embedding:
		return fmt.Sprintf("%v[%d]", t.Elem, t.Dim)
	}
	return t.Kind.String()
}

// Physical returns the slice type that holds the type's values: ByteValues for Bytes and String.
func (t Type) Physical() Physical {
	if t.Kind == Bytes || t.Kind == String {
		return ByteValues
	}
	return t.Elem.Physical()
}

// IsList reports whether a slot is a range of the values (Sparse, Weighted, Bytes, String) rather than a fixed number
// of them.
func (t Type) IsList() bool {
	switch t.Kind {
	case Sparse, Weighted, Bytes, String:
		return true
	}
	return false
}

// Width returns how many values a slot holds: Dim for an embedding, 1 for dense, 0 for lists.
func (t Type) Width() int {
	switch t.Kind {
	case Embedding:
		return int(t.Dim)
	case Dense:
		return 1
	}
	return 0
}

// ValueBytes returns the bytes in memory of one value with its score; 1 for Bytes and String.
func (t Type) ValueBytes() int {
	n := 0
	switch t.Physical() {
	case Int64Values, Float64Values:
		n = 8
	case Float32Values:
		n = 4
	case ByteValues:
		n = 1
	}
	switch t.Score {
	case Float32:
		n += 4
	case Float64:
		n += 8
	}
	return n
}
