package transform

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// A Bound is a Chain with the stored type of its feature.
type Bound struct {
	Chain         Chain
	StoredType    vector.Type
	StoredLogical string
}

// Output returns the type and the Logical after the chain, or an error that names the first transform that cannot be
// applied to its input.
func (f *Bound) Output() (vector.Type, string, error) {
	x, err := f.Compile()
	if err != nil {
		return vector.Type{}, "", err
	}
	return x.out, x.logical, nil
}

// A Program is a Chain compiled for a type. It is immutable.
type Program struct {
	in, out vector.Type
	logical string
	steps   []step
	// Fills: it replaces null by a value, also if a segment does not have the feature.
	Fills bool
}

// A step is a transform compiled for the type of its input: its constants are of that type.
type step struct {
	Transform
	in, out vector.Type
	rows    bool // it needs whole rows (lists, or nulls), not single values

	reciprocal uint64     // Mod, Hash, SigridHash: (2^64 - 1) / N
	lo, hi     int64      // Clamp and Cast of integers: the range; uint64 with the same bits
	floats     [2]float64 // Clamp of floats: the range
	// Bucketize: the borders, mapped to unsigned integers in the same order. Borders below all values of the type are
	// only counted in base.
	borders []uint64
	base    int64
	// Fill: the values, in one of these.
	ints    []int64
	singles []float32
	doubles []float64
}

// Compile returns the Program of the chain, or an error that names the first transform that cannot be applied to its
// input.
func (f *Bound) Compile() (*Program, error) {
	if err := f.Chain.Validate(); err != nil {
		return nil, err
	}
	x := &Program{in: f.StoredType, out: f.StoredType, logical: f.StoredLogical, Fills: f.Chain.fills()}
	for _, t := range f.Chain {
		s, err := t.compile(x.out)
		if err != nil {
			return nil, fmt.Errorf("%v of %v: %w", t.Op, x.out, err)
		}
		x.logical = t.logical(x.out, s.out, x.logical)
		x.steps = append(x.steps, s)
		x.out = s.out
	}
	return x, nil
}

// ExtraBytes estimates the memory that x needs for a stripe, in addition to the decoded column.
func (x *Program) ExtraBytes(values, slots uint64) uint64 {
	n := uint64(0)
	for i := range x.steps {
		s := &x.steps[i]
		switch {
		case s.Op == Fill && s.in.IsList():
			values += uint64(len(s.Values)) * slots
			n += 8 * values
		case s.in.IsList() != s.out.IsList():
			values = slots
			n += 12 * slots
		case s.in.Physical() != s.out.Physical(), s.in.Score != s.out.Score:
			n += 8 * values
		}
	}
	return n
}

// compile compiles t, which is valid, for an input type.
func (t Transform) compile(in vector.Type) (step, error) {
	s := step{Transform: t, in: in, out: in}
	text := in.Physical() == vector.ByteValues
	if t.Scores {
		if in.Kind != vector.Weighted {
			return s, errors.New("only weighted features have scores")
		}
		return s, s.compileScores()
	}
	if text && t.Op != Hash {
		return s, errors.New("strings and bytes take hash only")
	}
	switch t.Op {
	case First:
		s.rows = true
		if in.Kind != vector.Sparse && in.Kind != vector.Weighted {
			return s, errors.New("it takes lists")
		}
	case Mod, Hash, SigridHash:
		return s, s.compileRange()
	case Clamp:
		return s, s.compileClamp(in.Elem)
	case Log1p:
		if in.Kind == vector.Weighted {
			return s, errors.New("ids are integers: write scores.log1p for the scores")
		}
		if in.Elem != vector.Float64 {
			s.out.Elem = vector.Float32
		}
	case Bucketize:
		s.out.Elem = vector.Int32
		return s, s.compileBorders()
	case Cast:
		if in.Kind == vector.Weighted && !t.Elem.IsInteger() {
			return s, errors.New("ids are integers: write scores.cast for the scores")
		}
		s.out.Elem = t.Elem
		if t.Elem.IsInteger() {
			s.lo, s.hi = integerRange(t.Elem)
		}
	case Fill:
		s.rows = true
		return s, s.compileFill()
	case List:
		s.rows = true
		if in.Kind != vector.Dense {
			return s, errors.New("it takes dense features")
		}
		s.out.Kind = vector.Sparse
	}
	return s, nil
}

func (s *step) compileScores() error {
	e := s.in.Score
	switch s.Op {
	case Clamp:
		return s.compileClamp(e)
	case Cast:
		if s.Elem.IsInteger() {
			return errors.New("scores are float32 or float64")
		}
		s.out.Score = s.Elem
	}
	return nil
}

func (s *step) compileRange() error {
	if s.in.Physical() == vector.ByteValues {
		s.out = vector.Type{Kind: vector.Dense, Elem: vector.Int64}
		s.rows = true
	} else if !s.in.Elem.IsInteger() {
		return errors.New("it takes integers")
	}
	if s.Op != Mod {
		s.out.Elem = vector.Int64
	} else if _, hi := integerRange(s.in.Elem); isSigned(s.in.Elem) && s.N-1 > uint64(hi) {
		// The remainder of a negative integer does not fit.
		if s.N-1 > math.MaxInt64 {
			return fmt.Errorf("the range %d goes beyond int64", s.N)
		}
		s.out.Elem = vector.Int64
	}
	s.reciprocal = math.MaxUint64 / s.N
	return nil
}

// compileClamp converts the bounds to values of e.
func (s *step) compileClamp(e vector.Elem) error {
	lo, hi := s.Values[0], s.Values[1]
	if !e.IsInteger() {
		s.floats = [2]float64{lo.float64(), hi.float64()}
		if e == vector.Float32 {
			s.floats = [2]float64{float64(lo.float32()), float64(hi.float32())}
		}
		return nil
	}
	for _, v := range s.Values {
		if f := v.float64(); v.kind == floatNumber && f != math.Trunc(f) {
			return fmt.Errorf("the bound %v is no integer", v)
		}
	}
	least, most := integerBounds(e)
	if most.less(lo) || hi.less(least) {
		return fmt.Errorf("no %v lies between %v and %v", e, lo, hi)
	}
	s.lo, s.hi = integerRange(e)
	if least.less(lo) {
		s.lo, _, _ = lo.floor(e)
	}
	if hi.less(most) {
		s.hi, _, _ = hi.floor(e)
	}
	return nil
}

// compileBorders converts the borders to values of the input's type.
func (s *step) compileBorders() error {
	for i, v := range s.Values {
		if s.in.Elem.IsInteger() {
			// A border is below an integer when its floor is.
			f, below, above := v.floor(s.in.Elem)
			if s.in.Elem != vector.Uint64 {
				f ^= math.MinInt64
			}
			if below {
				s.base++
			} else if !above {
				s.borders = append(s.borders, uint64(f))
			}
			continue
		}
		f := v.float64()
		if s.in.Elem == vector.Float32 {
			f = float64(v.float32())
		}
		k := orderOf(f)
		if i > 0 && k <= s.borders[i-1] {
			return fmt.Errorf("the borders %v and %v are one %v", s.Values[i-1], v, s.in.Elem)
		}
		s.borders = append(s.borders, k)
	}
	return nil
}

func (s *step) compileFill() error {
	switch n := len(s.Values); s.in.Kind {
	case vector.Weighted:
		if n > 0 {
			return errors.New("an id comes with a score: want fill alone, which makes empty lists")
		}
	case vector.Sparse:
	default:
		if n != 1 {
			return fmt.Errorf("%d values: want one, as in fill(0)", n)
		}
	}
	least, most := integerBounds(s.in.Elem)
	for _, v := range s.Values {
		switch s.in.Physical() {
		case vector.Int64Values:
			if v.kind == floatNumber || v.less(least) || most.less(v) {
				return fmt.Errorf("%v is no %v", v, s.in.Elem)
			}
			s.ints = append(s.ints, int64(v.bits))
		case vector.Float32Values:
			s.singles = append(s.singles, v.float32())
		case vector.Float64Values:
			s.doubles = append(s.doubles, v.float64())
		}
	}
	return nil
}

func isSigned(e vector.Elem) bool { return e >= vector.Int8 && e <= vector.Int64 }

// integerRange returns the smallest and largest value of an integer type or bool; uint64 with the same bits.
func integerRange(e vector.Elem) (lo, hi int64) {
	switch e {
	case vector.Bool:
		return 0, 1
	case vector.Int8:
		return math.MinInt8, math.MaxInt8
	case vector.Int16:
		return math.MinInt16, math.MaxInt16
	case vector.Int32:
		return math.MinInt32, math.MaxInt32
	case vector.Uint8:
		return 0, math.MaxUint8
	case vector.Uint16:
		return 0, math.MaxUint16
	case vector.Uint32:
		return 0, math.MaxUint32
	case vector.Uint64:
		return 0, -1
	}
	return math.MinInt64, math.MaxInt64
}

// integerBounds is integerRange as Numbers.
func integerBounds(e vector.Elem) (least, most Number) {
	lo, hi := integerRange(e)
	if e == vector.Uint64 {
		return Int(0), Uint(math.MaxUint64)
	}
	return Int(lo), Int(hi)
}

// logical returns the Logical of t's result. in and out are the types before and after, logical is that before.
func (t Transform) logical(in, out vector.Type, logical string) string {
	if logical == "" || t.Scores || t.Op == First {
		return logical
	}
	if in.Kind == vector.Weighted {
		if logical == "map" && t.Op != Fill && (t.Op != Cast || in != out) {
			return "" // keys may have become equal
		}
		return logical
	}
	switch t.Op {
	case List:
		return logical
	case Cast:
		if in == out {
			return logical
		}
	case Clamp, Fill:
		// Any number is a date, a timestamp or a duration; few are a decimal, a time of day or a float16.
		name, _, _ := strings.Cut(logical, "[")
		if slices.Contains([]string{"date32", "timestamp", "duration"}, name) || t.Op == Fill && len(t.Values) == 0 {
			return logical
		}
	}
	return ""
}
