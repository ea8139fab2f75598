package transform

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// Op says what a Transform does. The numbers never change meaning, and neither do the names, which are written
// into plans.
type Op uint8

const (
	// First keeps the first N values of a list, with their scores.
	First Op = 1
	// Mod is the remainder of an integer by N, from 0 to N-1 also for negative integers, as in Python.
	Mod Op = 2
	// Hash is xxHash64 of an integer's 8 bytes (little-endian, sign-extended) or of a string, with Seed, modulo N:
	// int64 from 0 to N-1.
	Hash Op = 3
	// SigridHash is TorchArrow's sigrid_hash of an integer, with salt Seed, to [0, N).
	SigridHash Op = 4
	// Clamp makes what is below Values[0] that, and what is above Values[1] that. NaN stays NaN, -0 counts as 0.
	Clamp Op = 5
	// Log1p is the natural logarithm of 1 + x: -Inf for -1, NaN below. float64 of float64, else float32.
	Log1p Op = 6
	// Bucketize is the number of Values below x, as int32: x is in bucket i when Values[i-1] < x <= Values[i], as
	// in torch.bucketize and numpy.searchsorted by default. NaN is in the last bucket.
	Bucketize Op = 7
	// Cast converts to Elem. To integers: towards zero, to the nearest end of the range from beyond it, NaN to 0.
	// To bool: whether it is not 0. To float32 and float64: to the nearest, to infinity beyond the range.
	Cast Op = 8
	// Fill makes null present: one value for dense and embedding, a list of the Values, perhaps none, for sparse,
	// the empty list for weighted. Empty lists and NaN are not null and stay.
	Fill Op = 9
	// List makes of a dense value a list that holds it alone; null stays null.
	List Op = 10
)

// A Transform is what the reader does to the values of a feature. It sees a stripe's slots, each value once however
// many rows share it, and makes one value of one value, or a shorter list of a list: which rows share a slot stays as
// it is. Null stays null but for Fill. Constants are taken as values of the feature's type: for float32 rounded to it.
// Features with a Logical (dates, decimals) are transformed as the numbers that are stored. It is a value: nobody
// writes to its Values.
type Transform struct {
	Op Op
	// Scores: of a weighted feature the scores are meant, not the ids.
	Scores bool
	N      uint64      // of First, Mod, Hash and SigridHash
	Seed   uint64      // of Hash; of SigridHash the salt, as an int64's bits
	Values []Number    // of Clamp (two), Bucketize (ascending) and Fill
	Elem   vector.Elem // of Cast
}

// A Chain is the transforms of a feature, first to last.
type Chain []Transform

const (
	// MaxTransforms bounds the transforms of a Chain.
	MaxTransforms = 32
	// MaxBorders bounds the borders of Bucketize.
	MaxBorders = 1 << 16
	// MaxFillValues bounds the list that Fill makes of null.
	MaxFillValues = 64
)

// A parameter says what a function takes between its parentheses.
type parameter uint8

const (
	noParameter parameter = iota
	countParameter
	rangeParameter
	boundsParameter
	bordersParameter
	elemParameter
	fillParameter
)

// function is the text form of a Op.
type function struct {
	name   string
	takes  parameter
	seed   string // the name of Seed
	scores bool   // there is a form for scores
	usage  string
}

// functions is by Op.
var functions = [...]function{
	First: {name: "first", takes: countParameter, usage: "first(20)"},
	Mod:   {name: "mod", takes: rangeParameter, usage: "mod(1000000)"},
	Hash:  {name: "hash", takes: rangeParameter, seed: "seed", usage: "hash(1000000) or hash(1000000, seed=7)"},
	SigridHash: {name: "sigrid_hash", takes: rangeParameter, seed: "salt",
		usage: "sigrid_hash(1000000) or sigrid_hash(1000000, salt=7)"},
	Clamp: {name: "clamp", takes: boundsParameter, scores: true,
		usage: "clamp(0, 10), with -inf or inf for no bound"},
	Log1p:     {name: "log1p", scores: true, usage: "log1p"},
	Bucketize: {name: "bucketize", takes: bordersParameter, usage: "bucketize(1, 5, 10)"},
	Cast:      {name: "cast", takes: elemParameter, scores: true, usage: "cast(float32)"},
	Fill:      {name: "fill", takes: fillParameter, usage: "fill(0), or fill for an empty list"},
	List:      {name: "list", usage: "list"},
}

// function returns the text form of o; nil: there is no such op.
func (o Op) function() *function {
	if o == 0 || int(o) >= len(functions) {
		return nil
	}
	return &functions[o]
}

func (o Op) String() string {
	if f := o.function(); f != nil {
		return f.name
	}
	return fmt.Sprintf("transform(%d)", uint8(o))
}

// Validate names the first part of t that no Transform of its Op can have. Whether it fits a feature is for the plan to
// say.
func (t Transform) Validate() error {
	f := t.Op.function()
	if f == nil {
		return fmt.Errorf("unknown transform %d", uint8(t.Op))
	}
	if t.Scores && !f.scores {
		return fmt.Errorf("%s: scores have clamp, log1p and cast only", f.name)
	}
	switch {
	case t.N != 0 && f.takes != countParameter && f.takes != rangeParameter,
		t.Seed != 0 && f.seed == "",
		len(t.Values) != 0 && f.takes != boundsParameter && f.takes != bordersParameter && f.takes != fillParameter,
		t.Elem != vector.NoElem && f.takes != elemParameter:
		return fmt.Errorf("%s: it is given what it does not take: want %s", f.name, f.usage)
	}
	for _, v := range t.Values {
		if !v.valid() {
			return fmt.Errorf("%s: a value is no Number", f.name)
		}
	}
	if err := t.validateArguments(f); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

func (t Transform) validateArguments(f *function) error {
	switch f.takes {
	case countParameter:
		if t.N < 1 || t.N > vector.MaxElements {
			return fmt.Errorf("%d values: want 1 to %d", t.N, vector.MaxElements)
		}
	case rangeParameter:
		if t.N < 1 {
			return errors.New("range 0: want 1 or more")
		}
		if t.Op != Mod && t.N > 1<<63 {
			return fmt.Errorf("range %d: want at most 2^63, for the result is an int64", t.N)
		}
	case boundsParameter:
		if len(t.Values) != 2 {
			return fmt.Errorf("%d bounds: want 2", len(t.Values))
		}
		lo, hi := t.Values[0], t.Values[1]
		if lo.isNaN() || hi.isNaN() || hi.less(lo) {
			return fmt.Errorf("bounds %v and %v: want two numbers, the lower one first", lo, hi)
		}
	case bordersParameter:
		if len(t.Values) < 1 || len(t.Values) > MaxBorders {
			return fmt.Errorf("%d borders: want 1 to %d", len(t.Values), MaxBorders)
		}
		for i, v := range t.Values {
			if v.isNaN() || i > 0 && !t.Values[i-1].less(v) {
				return fmt.Errorf("border %v: want ascending numbers", v)
			}
		}
	case elemParameter:
		if t.Elem == vector.NoElem || t.Elem > vector.Float64 {
			return fmt.Errorf("to %v: want bool, int8 to int64, uint8 to uint64, float32 or float64", t.Elem)
		}
	case fillParameter:
		if len(t.Values) > MaxFillValues {
			return fmt.Errorf("%d values: want at most %d", len(t.Values), MaxFillValues)
		}
	}
	return nil
}

// String gives the text that ParseChain reads as t.
func (t Transform) String() string { return string(t.appendText(nil)) }

func (t Transform) appendText(b []byte) []byte {
	f := t.Op.function()
	if f == nil {
		return append(b, t.Op.String()...)
	}
	if t.Scores {
		b = append(b, scoresPrefix...)
	}
	b = append(b, f.name...)
	switch f.takes {
	case countParameter, rangeParameter:
		b = strconv.AppendUint(append(b, '('), t.N, 10)
		if t.Seed != 0 {
			b = append(append(append(b, ", "...), f.seed...), '=')
			if t.Op == SigridHash {
				b = strconv.AppendInt(b, int64(t.Seed), 10)
			} else {
				b = strconv.AppendUint(b, t.Seed, 10)
			}
		}
		return append(b, ')')
	case elemParameter:
		return append(append(append(b, '('), t.Elem.String()...), ')')
	}
	for i, v := range t.Values {
		if i == 0 {
			b = append(b, '(')
		} else {
			b = append(b, ", "...)
		}
		b = v.appendText(b)
	}
	if len(t.Values) > 0 {
		b = append(b, ')')
	}
	return b
}

// Validate names the first Transform that is not valid, or too many of them.
func (c Chain) Validate() error {
	if len(c) > MaxTransforms {
		return fmt.Errorf("%d transforms: want at most %d", len(c), MaxTransforms)
	}
	for _, t := range c {
		if err := t.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// String gives the text that ParseChain reads as c.
func (c Chain) String() string {
	var b []byte
	for i, t := range c {
		if i > 0 {
			b = append(b, " | "...)
		}
		b = t.appendText(b)
	}
	return string(b)
}

// fills reports whether c makes null present.
func (c Chain) fills() bool {
	return slices.ContainsFunc(c, func(t Transform) bool { return t.Op == Fill })
}

// scoresPrefix stands before a function that is meant for scores.
const scoresPrefix = "scores."

// A Number is a constant: an integer from -2^63 to 2^64-1, or a float64. A float64 that is such an integer is the same
// Number as the integer, but for -0. It is comparable: equal numbers, and NaN, are ==. The zero Number is none.
type Number struct {
	kind numberKind
	bits uint64
}

type numberKind uint8

const (
	signedNumber   numberKind = 1
	unsignedNumber numberKind = 2 // from 2^63 on
	floatNumber    numberKind = 3
)

// Int returns v as a Number.
func Int(v int64) Number { return Number{signedNumber, uint64(v)} }

// Uint returns v as a Number.
func Uint(v uint64) Number {
	if v <= math.MaxInt64 {
		return Int(int64(v))
	}
	return Number{unsignedNumber, v}
}

// Float returns v as a Number.
func Float(v float64) Number {
	switch {
	case v != v:
		v = math.NaN()
	case v != math.Trunc(v) || v == 0 && math.Signbit(v):
	case v >= -1<<63 && v < 1<<63:
		return Int(int64(v))
	case v >= 0 && v < 1<<64:
		return Uint(uint64(v))
	}
	return Number{floatNumber, math.Float64bits(v)}
}

// valid reports whether n is what one of the functions above returns.
func (n Number) valid() bool {
	switch n.kind {
	case signedNumber:
		return true
	case unsignedNumber:
		return n.bits > math.MaxInt64
	case floatNumber:
		return Float(n.float64()) == n
	}
	return false
}

func (n Number) isNaN() bool { return n.kind == floatNumber && math.IsNaN(n.float64()) }

// float64 returns the nearest float64.
func (n Number) float64() float64 {
	switch n.kind {
	case signedNumber:
		return float64(int64(n.bits))
	case unsignedNumber:
		return float64(n.bits)
	}
	return math.Float64frombits(n.bits)
}

// float32 returns the nearest float32.
func (n Number) float32() float32 {
	switch n.kind {
	case signedNumber:
		return float32(int64(n.bits))
	case unsignedNumber:
		return float32(n.bits)
	}
	return float32(math.Float64frombits(n.bits))
}

// less reports whether n is less than o, exactly; neither is NaN.
func (n Number) less(o Number) bool {
	if n.kind == floatNumber || o.kind == floatNumber {
		a, b := n.float64(), o.float64()
		if a != b {
			return a < b
		}
		// They are equal, or the integer was rounded to a float that is no integer of the range: 2^64.
		return n.kind == unsignedNumber && o.kind == floatNumber && b == 1<<64
	}
	if n.kind != o.kind {
		return n.kind == signedNumber
	}
	if n.kind == signedNumber {
		return int64(n.bits) < int64(o.bits)
	}
	return n.bits < o.bits
}

// floor returns the greatest integer that is not above n, as e holds it (a uint64 bit for bit). below and above: it
// lies outside the integers of 64 bits with e's sign. n is not NaN.
func (n Number) floor(e vector.Elem) (v int64, below, above bool) {
	if n.kind == floatNumber {
		f := math.Floor(n.float64())
		if f == 0 {
			return 0, false, false
		}
		if n = Float(f); n.kind == floatNumber {
			return 0, f < 0, f > 0
		}
	}
	if e == vector.Uint64 {
		return int64(n.bits), n.kind == signedNumber && int64(n.bits) < 0, false
	}
	return int64(n.bits), false, n.kind == unsignedNumber
}

// String gives the text that the parser reads as n.
func (n Number) String() string { return string(n.appendText(nil)) }

func (n Number) appendText(b []byte) []byte {
	switch n.kind {
	case signedNumber:
		return strconv.AppendInt(b, int64(n.bits), 10)
	case unsignedNumber:
		return strconv.AppendUint(b, n.bits, 10)
	case floatNumber:
		switch f := n.float64(); {
		case f != f:
			return append(b, "nan"...)
		case f == 0:
			return append(b, "-0.0"...)
		case math.IsInf(f, 0):
			if f < 0 {
				b = append(b, '-')
			}
			return append(b, "inf"...)
		default:
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
	}
	return append(b, "none"...)
}

// parseNumber reads what String writes, and any other decimal spelling.
func parseNumber(s string) (Number, bool) {
	switch sign, digits := "", s; {
	case s == "":
		return Number{}, false
	default:
		if s[0] == '-' || s[0] == '+' {
			sign, digits = s[:1], s[1:]
		}
		switch strings.ToLower(digits) {
		case "nan":
			return Float(math.NaN()), sign == ""
		case "inf":
			if sign == "-" {
				return Float(math.Inf(-1)), true
			}
			return Float(math.Inf(1)), true
		}
		if digits == "" || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') ||
			strings.ContainsAny(digits, "xX_pP") {
			return Number{}, false
		}
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Int(v), true
	}
	if v, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64); err == nil {
		return Uint(v), true
	}
	v, err := strconv.ParseFloat(s, 64)
	return Float(v), err == nil
}
