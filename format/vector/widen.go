package vector

import "fmt"

// Widen returns the narrowest Type that holds every value of both a and b exactly, or an error when there is none.
// Integers widen to larger integers and to floats whose mantissa holds them; float32 widens to float64. Kinds do not
// mix, except that String widens to Bytes.
func Widen(a, b Type) (Type, error) {
	if a == b {
		return a, nil
	}
	none := fmt.Errorf("no type holds both %v and %v exactly", a, b)
	if (a.Kind == Bytes && b.Kind == String) || (a.Kind == String && b.Kind == Bytes) {
		return Type{Kind: Bytes}, nil
	}
	if a.Kind != b.Kind || a.Dim != b.Dim {
		return Type{}, none
	}
	out := a
	e, ok := widenElem(a.Elem, b.Elem)
	if !ok || (a.Kind == Weighted && !e.IsInteger()) {
		return Type{}, none
	}
	out.Elem = e
	if a.Kind == Weighted && a.Score != b.Score {
		out.Score = Float64
	}
	return out, nil
}

// elemBits returns the range of an integer type: its bits without the sign, and whether it has a sign. bits is 0 for
// other types.
func elemBits(e Elem) (bits int, signed bool) {
	switch e {
	case Bool:
		return 1, false
	case Int8:
		return 7, true
	case Int16:
		return 15, true
	case Int32:
		return 31, true
	case Int64:
		return 63, true
	case Uint8:
		return 8, false
	case Uint16:
		return 16, false
	case Uint32:
		return 32, false
	case Uint64:
		return 64, false
	}
	return 0, false
}

func widenElem(a, b Elem) (Elem, bool) {
	if a == b {
		return a, true
	}
	if !a.IsInteger() && !b.IsInteger() {
		return Float64, true
	}
	if a.IsInteger() && b.IsInteger() {
		for _, e := range [...]Elem{Uint8, Int8, Uint16, Int16, Uint32, Int32, Int64, Uint64} {
			if holds(e, a) && holds(e, b) {
				return e, true
			}
		}
		return 0, false
	}
	if !a.IsInteger() {
		a, b = b, a
	}
	bits, _ := elemBits(a)
	switch {
	case b == Float32 && bits <= 24:
		return Float32, true
	case bits <= 53:
		return Float64, true
	}
	return 0, false
}

// holds reports whether integer type outer holds every value of inner.
func holds(outer, inner Elem) bool {
	ob, os := elemBits(outer)
	ib, is := elemBits(inner)
	return ib <= ob && (os || !is)
}

// Convert returns c as a column of type t. It returns c itself if the types are equal, and an error unless Widen of
// c.Type and t is t. The result borrows c's slices, except those whose element type changes: these are owned.
func Convert(c *Column, t Type) (*Column, error) {
	if c.Type == t {
		return c, nil
	}
	if w, err := Widen(c.Type, t); err != nil || w != t {
		return nil, fmt.Errorf("%v does not widen to %v", c.Type, t)
	}
	out := new(Column)
	ConvertInto(out, c, t)
	return out, nil
}

// ConvertInto is Convert into the memory of out, which must not be c, for a type t that Convert accepts.
func ConvertInto(out, c *Column, t Type) {
	floats, doubles, scores := out.Floats, out.Doubles, out.ScoreDoubles
	*out = *c
	out.Type = t
	out.InverseBorrowed = out.Inverse != nil
	switch from, to := c.Type.Physical(), t.Physical(); {
	case from == Int64Values && to == Float32Values:
		out.Ints, out.Floats = nil, ConvertValues(floats, c.Ints)
	case from == Int64Values && to == Float64Values:
		out.Ints, out.Doubles = nil, ConvertValues(doubles, c.Ints)
	case from == Float32Values && to == Float64Values:
		out.Floats, out.Doubles = nil, ConvertValues(doubles, c.Floats)
	}
	if c.Type.Score == Float32 && t.Score == Float64 {
		out.ScoreFloats, out.ScoreDoubles = nil, ConvertValues(scores, c.ScoreFloats)
	}
}

// ConvertValues returns in converted to To, in the memory of out, which grows if it is too small.
func ConvertValues[From, To int64 | float32 | float64](out []To, in []From) []To {
	out = Resize(out, len(in))
	for i, v := range in {
		out[i] = To(v)
	}
	return out
}

// Resize returns s with length n and unspecified contents, never nil. If s has memory but too little, Resize allocates
// an eighth more than n, because callers reuse the memory for stripes of slightly different sizes.
func Resize[S ~[]E, E any](s S, n int) S {
	switch {
	case s != nil && n <= cap(s):
		return s[:n]
	case cap(s) > 0:
		return make(S, n, n+n/8)
	}
	return make(S, n)
}
