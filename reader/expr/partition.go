package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage"
)

// truth is SQL's three-valued logic.
type truth int8

const (
	isFalse   truth = -1
	isUnknown truth = 0
	isTrue    truth = 1
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// Partition returns the predicate that e is over partition values: true for the partitions that e selects. keys are the
// partition keys of the table; a name that is not one of them is an error naming the nearest.
//
// A partition value is text. It is compared as a number with a number (03 equals 3), as true or false with TRUE or FALSE,
// and character by character with a string; a value that is no number is neither equal nor unequal to one. Two keys are
// compared as numbers when both are. Null, Hive's default partition, is SQL's null, and so is a key that a partition does
// not have.
func Partition(e Expr, keys []string) (func(storage.Partition) bool, error) {
	return (&compiler{keys: keys}).partition(e)
}

// ParsePartition is Parse and Partition in one, so that every error points into the text.
func ParsePartition(text string, keys []string) (func(storage.Partition) bool, error) {
	e, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return (&compiler{text: text, keys: keys}).partition(e)
}

// compiler turns an expression into closures, so that names are looked at once and not for each partition.
type compiler struct {
	text string // of the expression, for errors; may be empty
	keys []string
}

func (c *compiler) fail(offset int, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if c.text == "" {
		return fmt.Errorf("expression: %s", reason)
	}
	return &Error{Text: c.text, Offset: offset, Reason: reason}
}

func (c *compiler) partition(e Expr) (func(storage.Partition) bool, error) {
	eval, err := c.condition(e)
	if err != nil {
		return nil, err
	}
	return func(p storage.Partition) bool { return eval(p) == isTrue }, nil
}

type condition func(storage.Partition) truth

// value is what an operand is for one partition.
type value struct {
	kind   LiteralKind // 0: null
	text   string
	number Number
	bool   bool
	// key: text comes from a partition and is whatever it is compared with.
	key bool
}

type valueOf func(storage.Partition) value

func (c *compiler) condition(e Expr) (condition, error) {
	switch e := e.(type) {
	case *Or:
		return c.chain(e.Terms, isTrue)
	case *And:
		return c.chain(e.Terms, isFalse)
	case *Not:
		x, err := c.condition(e.X)
		if err != nil {
			return nil, err
		}
		return func(p storage.Partition) truth { return -x(p) }, nil
	case *Compare:
		return c.compare(e.Left, e.Op, e.Right)
	case *In:
		x, err := c.operand(e.X)
		if err != nil {
			return nil, err
		}
		var list []value
		for _, l := range e.List {
			list = append(list, literalValue(l))
		}
		return negate(e.Negated, func(p storage.Partition) truth {
			v, result := x(p), isFalse
			for _, l := range list {
				result = max(result, compareValues(v, Equal, l))
			}
			return result
		}), nil
	case *Between:
		low, err := c.compare(e.X, GreaterEqual, e.Low)
		if err != nil {
			return nil, err
		}
		high, err := c.compare(e.X, LessEqual, e.High)
		if err != nil {
			return nil, err
		}
		return negate(e.Negated, func(p storage.Partition) truth { return min(low(p), high(p)) }), nil
	case *Like:
		x, err := c.operand(e.X)
		if err != nil {
			return nil, err
		}
		if l, ok := e.X.(*Literal); ok && l.Kind != StringLiteral {
			return nil, c.fail(l.Offset, "LIKE is about strings, and %s is none", l)
		}
		pattern := parsePattern(e.Pattern)
		return negate(e.Negated, func(p storage.Partition) truth {
			v := x(p)
			if v.kind == 0 {
				return isUnknown
			}
			return truthOf(pattern.matches(v.text))
		}), nil
	case *IsNull:
		x, err := c.operand(e.X)
		if err != nil {
			return nil, err
		}
		return negate(e.Negated, func(p storage.Partition) truth { return truthOf(x(p).kind == 0) }), nil
	case *Contains:
		return nil, c.fail(e.List.Offset, "contains(...) is about lists, and a partition value is none")
	case *Sample:
		return nil, c.fail(e.Offset, "sample(...) takes rows by a feature, and %s is a partition key", e.Key)
	case *Name:
		x, err := c.operand(e)
		if err != nil {
			return nil, err
		}
		yes := value{kind: BoolLiteral, bool: true}
		return func(p storage.Partition) truth { return compareValues(x(p), Equal, yes) }, nil
	case *Literal:
		result := truthOf(e.Bool)
		return func(storage.Partition) truth { return result }, nil
	}
	return nil, fmt.Errorf("expression: %T is no condition", e)
}

// chain joins conditions: the result is decisive as soon as one of them is, else unknown if one is.
func (c *compiler) chain(terms []Expr, decisive truth) (condition, error) {
	var all []condition
	for _, t := range terms {
		x, err := c.condition(t)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return func(p storage.Partition) truth {
		result := -decisive
		for _, x := range all {
			switch x(p) {
			case decisive:
				return decisive
			case isUnknown:
				result = isUnknown
			}
		}
		return result
	}, nil
}

func negate(negated bool, x condition) condition {
	if !negated {
		return x
	}
	return func(p storage.Partition) truth { return -x(p) }
}

func (c *compiler) compare(left Operand, op Op, right Operand) (condition, error) {
	l, err := c.operand(left)
	if err != nil {
		return nil, err
	}
	r, err := c.operand(right)
	if err != nil {
		return nil, err
	}
	a, okA := left.(*Literal)
	b, okB := right.(*Literal)
	if okA && okB && a.Kind != b.Kind {
		return nil, c.fail(b.Offset, "%s and %s are of different types", a, b)
	}
	return func(p storage.Partition) truth { return compareValues(l(p), op, r(p)) }, nil
}

func (c *compiler) operand(o Operand) (valueOf, error) {
	switch o := o.(type) {
	case *Literal:
		v := literalValue(o)
		return func(storage.Partition) value { return v }, nil
	case *Name:
		if !slices.Contains(c.keys, o.Name) {
			if len(c.keys) == 0 {
				return nil, c.fail(o.Offset, "unknown partition key %q: the table has no partitions", o.Name)
			}
			hint := suggest.Hint(o.Name, c.keys)
			if hint == "" {
				hint = ": the keys are " + strings.Join(c.keys, ", ")
			}
			return nil, c.fail(o.Offset, "unknown partition key %q%s", o.Name, hint)
		}
		key := o.Name
		return func(p storage.Partition) value {
			for _, kv := range p {
				if kv.Key == key && !kv.Null {
					return value{kind: StringLiteral, text: kv.Value, key: true}
				}
			}
			return value{}
		}, nil
	case *Arithmetic:
		return nil, c.fail(o.offset(), "nothing is computed from partition values, which are text: %s", shorten(o.String()))
	}
	return nil, c.fail(o.offset(), "%s is about lists, and a partition value is none", o)
}

func literalValue(l *Literal) value {
	return value{kind: l.Kind, text: l.Text, number: l.Number, bool: l.Bool}
}

// compareValues is unknown when a side is null or is not of the other's type.
func compareValues(a value, op Op, b value) truth {
	switch {
	case a.kind == 0 || b.kind == 0:
		return isUnknown
	case a.key && b.key:
		x, okX := readNumber(a.text)
		y, okY := readNumber(b.text)
		if okX && okY {
			return truthOf(op.holds(compareNumbers(x, y)))
		}
	case a.key:
		if a = a.as(b.kind); a.kind == 0 {
			return isUnknown
		}
	case b.key:
		if b = b.as(a.kind); b.kind == 0 {
			return isUnknown
		}
	}
	switch {
	case a.kind != b.kind:
		return isUnknown
	case a.kind == NumberLiteral:
		return truthOf(op.holds(compareNumbers(a.number, b.number)))
	case a.kind == BoolLiteral:
		return truthOf(op.holds(order(!a.bool && b.bool, a.bool && !b.bool)))
	}
	return truthOf(op.holds(strings.Compare(a.text, b.text)))
}

// as reads a partition's text as a value of the kind; null when it is none.
func (v value) as(kind LiteralKind) value {
	switch kind {
	case NumberLiteral:
		if n, ok := readNumber(v.text); ok {
			return value{kind: kind, number: n}
		}
		return value{}
	case BoolLiteral:
		if strings.EqualFold(v.text, "true") || strings.EqualFold(v.text, "false") {
			return value{kind: kind, bool: strings.EqualFold(v.text, "true")}
		}
		return value{}
	}
	return v
}

// readNumber reads text that is a number as a whole: a sign, digits, a fraction, an exponent.
func readNumber(text string) (Number, bool) {
	unsigned := strings.TrimLeft(text, "+-")
	if len(text)-len(unsigned) > 1 || unsigned == "" || strings.Trim(unsigned, "0123456789.eE+-") != "" {
		return Number{}, false
	}
	negative := text[0] == '-'
	if n, err := parseNumber(unsigned, negative); err == nil {
		return n, true
	}
	// An integer beyond 64 bits is compared as a float.
	f, err := strconv.ParseFloat(text, 64)
	return Number{Float: f}, err == nil && !math.IsInf(f, 0)
}
