package expr

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// A Field is the meaning of a name in a filter: a feature or a partition key.
type Field struct {
	// Partition: the name is a partition key. Type and Logical are ignored.
	Partition bool
	Type      vector.Type
	Logical   string // as in storage.Feature
	// Err is the error for a name that is neither.
	Err error
}

// A binder types an expression against the Fields of its names.
type binder struct {
	text     string // of the expression, for errors
	fields   map[string]Field
	features []string       // among the names, in order
	index    map[string]int // in features
}

// bind resolves the names that visit is called with. Without names it does not call resolve.
func bind(text string, each func(visit func(*Name)), resolve func([]string) ([]Field, error)) (*binder, error) {
	b := &binder{text: text, fields: map[string]Field{}, index: map[string]int{}}
	var first []*Name // each once
	var list []string
	each(func(n *Name) {
		if _, seen := b.fields[n.Name]; !seen {
			b.fields[n.Name] = Field{}
			first, list = append(first, n), append(list, n.Name)
		}
	})
	if len(list) == 0 {
		return b, nil
	}
	fields, err := resolve(list)
	if err != nil {
		return nil, err
	}
	for i, n := range first {
		f := fields[i]
		if f.Err != nil {
			reason := f.Err.Error()
			before := strings.TrimRight(text[:min(n.Offset, len(text))], " \t\n")
			switch {
			case n.Offset < len(text) && text[n.Offset] == '"':
				reason += " (double quotes are for names, single quotes for text)"
			case before != "" && strings.ContainsRune("=<>(,", rune(before[len(before)-1])):
				reason += fmt.Sprintf(" (text stands in single quotes: '%s')", n.Name)
			}
			return nil, &Error{Text: text, Offset: n.Offset, Reason: reason, Cause: f.Err}
		}
		if !f.Partition {
			b.index[n.Name] = len(b.features)
			b.features = append(b.features, n.Name)
		}
		b.fields[n.Name] = f
	}
	return b, nil
}

// bindExpr is bind for the names of a condition.
func bindExpr(text string, e Expr, resolve func([]string) ([]Field, error)) (*binder, error) {
	return bind(text, func(visit func(*Name)) {
		e.operands(func(o Operand) { o.names(visit) })
	}, resolve)
}

func (b *binder) fail(offset int, format string, args ...any) error {
	return &Error{Text: b.text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// filter types a whole expression.
func (b *binder) filter(e Expr) (*Filter, error) {
	root, err := b.condition(e)
	if err != nil {
		return nil, err
	}
	return &Filter{expr: e, features: b.features, root: root}, nil
}

// condition types an expression.
func (b *binder) condition(e Expr) (node, error) {
	switch e.(type) {
	case *And, *Or, *Not:
		return e.bind(b)
	}
	var key, feature *Name
	e.operands(func(o Operand) {
		o.names(func(n *Name) {
			switch {
			case !b.fields[n.Name].Partition && feature == nil:
				feature = n
			case b.fields[n.Name].Partition && key == nil:
				key = n
			}
		})
	})
	if key != nil && feature != nil {
		return nil, b.fail(key.Offset, "%s is a partition key and %s a feature: they are not compared with each other",
			key, feature)
	}
	return e.bind(b)
}

func (b *binder) chain(terms []Expr, any bool) (node, error) {
	n := &chainNode{any: any}
	for _, t := range terms {
		x, err := b.condition(t)
		if err != nil {
			return nil, err
		}
		n.terms = append(n.terms, x)
	}
	return n, nil
}

// A class is a group of types whose values can be compared with each other.
type class uint8

const (
	numberClass   class = iota + 1
	boolClass           // 0 and 1
	textClass           // strings and bytes
	decimalClass        // integers, in units of 10^-scale
	temporalClass       // integers, since 1970-01-01 in UTC
	keyClass            // text that is converted to the class of the other side
)

// A form says which part of a feature is compared.
type form uint8

const (
	wholeForm  form = iota // the value of a dense feature, a string
	lengthForm             // how many elements a list has
	anyForm                // an element of a list
	allForm                // each element
)

// A subject is the operand that a condition tests: a feature, or its length or elements.
type subject struct {
	feature int // in Filter.features
	field   Field
	form    form
	class   class
	elem    vector.Elem // of what is compared
	logical logicalUnit
}

// isFeature reports whether an operand is a feature, or the length or elements of one.
func (b *binder) isFeature(o Operand) bool {
	switch o := o.(type) {
	case *Name:
		return !b.fields[o.Name].Partition
	case *Len, *Quantified:
		return true
	}
	return false
}

// subject returns the subject of an operand, or an error if its type cannot be compared.
func (b *binder) subject(o Operand) (*subject, error) {
	var name *Name
	s := &subject{}
	switch o := o.(type) {
	case *Name:
		name = o
	case *Len:
		name, s.form = o.List, lengthForm
	case *Quantified:
		name, s.form = o.List, anyForm
		if o.All {
			s.form = allForm
		}
	default:
		return nil, b.fail(o.offset(), "%s is no feature", o)
	}
	s.feature, s.field = b.index[name.Name], b.fields[name.Name]
	t := s.field.Type
	list := t.Kind == vector.Sparse || t.Kind == vector.Weighted
	switch {
	case s.field.Partition:
		return nil, b.fail(o.offset(), "%s is about lists, and a partition value is none", o)
	case s.form != wholeForm && !list:
		return nil, b.fail(name.Offset, "%s is about lists, and %s is %v", o, name, t)
	case s.form == wholeForm && list:
		return nil, b.fail(name.Offset, "%s is %v: compare len(%s), any(%s) or all(%s), or ask contains(%s, id)",
			name, t, name, name, name, name)
	case t.Kind == vector.Embedding:
		return nil, b.fail(name.Offset, "%s is an embedding, which is only compared with IS NULL", name)
	case s.form == lengthForm:
		s.class, s.elem = numberClass, vector.Int64
		return s, nil
	case !list && t.Kind != vector.Dense:
		s.class = textClass
		if u, _ := parseLogical(s.field.Logical); u.class == decimalClass {
			return nil, b.fail(name.Offset, "%s is %s, which is stored as bytes and only compared with IS NULL", name,
				s.field.Logical)
		}
		return s, nil
	}
	s.class, s.elem = numberClass, t.Elem
	if t.Elem == vector.Bool {
		s.class = boolClass
	}
	if u, ok := parseLogical(s.field.Logical); ok && t.Elem.IsInteger() && t.Elem != vector.Bool {
		s.class, s.logical = u.class, u
	}
	return s, nil
}

// typeName returns the name of the subject's type, for errors.
func (s *subject) typeName() string {
	switch {
	case s.form == lengthForm:
		return "a length"
	case s.logical.class != 0:
		return s.field.Logical
	}
	return s.field.Type.String()
}

// leaf returns the condition that the subject passes a test. negated: that it fails; for elements, each by itself.
func (s *subject) leaf(negated bool, t test) node {
	return &leafNode{feature: s.feature, form: s.form, negated: negated, test: t.compact()}
}

// matches types a condition about the bytes of a string; what names it for errors.
func (b *binder) matches(what string, x Operand, negated bool, match func([]byte) bool) (node, error) {
	if b.isFeature(x) {
		s, err := b.subject(x)
		if err != nil {
			return nil, err
		}
		if s.class != textClass {
			return nil, b.fail(x.offset(), "%s is about strings, and %s is %v", what, x, s.field.Type)
		}
		return s.leaf(negated, &textTest{match: match}), nil
	}
	s, err := b.scalar(x)
	if err != nil {
		return nil, err
	}
	if s.class != textClass && s.class != keyClass {
		return nil, b.fail(x.offset(), "%s is about strings, and %s is none", what, x)
	}
	return negate(negated, newScalarNode(isUnknown, func(in *input, _ int) truth {
		v, ok := s.text(in)
		if !ok {
			return isUnknown
		}
		return truthOf(match(v))
	}, s)), nil
}

// values returns the test for values for which the comparison with a literal is true.
func (b *binder) values(s *subject, op Op, l *Literal) (test, error) {
	if op == NotEqual {
		panic("expr: != is not =")
	}
	if s.class == textClass {
		if l.Kind != StringLiteral {
			return nil, b.fail(l.Offset, "%s is compared with a feature of type %v: quote it as '...'", l, s.field.Type)
		}
		return newTextTest(op, l.Text), nil
	}
	n := l.Number
	switch {
	case l.Kind == BoolLiteral:
		if s.class != boolClass {
			return nil, b.fail(l.Offset, "%s is compared with %v, which is not true or false", l, s.field.Type)
		}
		n = boolNumber(l.Bool)
	case l.Kind == StringLiteral && s.class == temporalClass:
		r, err := s.logical.parseTime(l.Text)
		if err != nil {
			return nil, b.fail(l.Offset, "%v", err)
		}
		return s.integers(op, r), nil
	case l.Kind == StringLiteral:
		return nil, b.fail(l.Offset, "%s is text, and is compared with %v", l, s.field.Type)
	}
	if !s.elem.IsInteger() {
		return floatsWhere(op, n), nil
	}
	return s.integers(op, s.logical.stored(n)), nil
}

// integers returns the test for stored integers for which the comparison with r is true.
func (s *subject) integers(op Op, r *big.Rat) test {
	if s.elem == vector.Uint64 {
		return uintsWhere(op, r)
	}
	return intsWhere(op, r)
}

func boolNumber(b bool) Number {
	n := Number{Integer: true}
	if b {
		n.Abs = 1
	}
	return n
}
