package expr

import (
	"math/big"

	"github.com/dsistore/dsistore/format/vector"
)

// A class says with what values of a subject are compared.
type class uint8

const (
	numberClass   class = iota + 1
	boolClass           // 0 and 1
	textClass           // strings and bytes
	decimalClass        // integers, in units of 10^-scale
	temporalClass       // integers, since 1970-01-01 in UTC
)

// A form says what of a feature is compared.
type form uint8

const (
	wholeForm  form = iota // the value of a dense feature, a string
	lengthForm             // how many elements a list has
	anyForm                // an element of a list
	allForm                // each element
)

// A subject is what a condition is about: a feature, or the length or elements of one.
type subject struct {
	feature int // in Filter.features
	field   Field
	form    form
	class   class
	domain  domain
	logical logicalUnit
}

// A domain is the type in which values are compared.
type domain uint8

const (
	intDomain   domain = iota + 1
	uintDomain         // uint64
	floatDomain        // both widths
)

func domainOf(e vector.Elem) domain {
	switch {
	case e == vector.Uint64:
		return uintDomain
	case e.IsInteger():
		return intDomain
	}
	return floatDomain
}

// anySubject is subject for what is no comparison: nothing is asked of the feature's type.
func (b *binder) anySubject(o Operand) (*subject, error) {
	switch o := o.(type) {
	case *Name:
		return &subject{feature: b.places[o.Name], field: b.fields[o.Name]}, nil
	case *Len:
		return b.subject(o)
	}
	return nil, b.fail(o.offset(), "%s is no feature", o)
}

// subject returns what an operand is about, refusing what nothing can be compared with.
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
	s.feature, s.field = b.places[name.Name], b.fields[name.Name]
	t := s.field.Type
	list := t.Kind == vector.Sparse || t.Kind == vector.Weighted
	switch {
	case s.form != wholeForm && !list:
		return nil, b.fail(name.Offset, "%s is about lists, and %s is %v", o, name, t)
	case s.form == wholeForm && list:
		return nil, b.fail(name.Offset, "%s is %v: compare len(%s), any(%s) or all(%s), or ask contains(%s, id)", name, t, name, name, name, name)
	case t.Kind == vector.Embedding:
		return nil, b.fail(name.Offset, "%s is an embedding, which is only compared with IS NULL", name)
	case s.form == lengthForm:
		s.class, s.domain = numberClass, intDomain
		return s, nil
	case !list && t.Kind != vector.Dense:
		s.class = textClass
		if u, _ := parseLogical(s.field.Logical); u.class == decimalClass {
			return nil, b.fail(name.Offset, "%s is %s, which is stored as bytes and only compared with IS NULL", name, s.field.Logical)
		}
		return s, nil
	}
	s.class, s.domain = numberClass, domainOf(t.Elem)
	if t.Elem == vector.Bool {
		s.class = boolClass
	}
	if u, ok := parseLogical(s.field.Logical); ok && t.Elem.IsInteger() && t.Elem != vector.Bool {
		s.class, s.logical = u.class, u
	}
	return s, nil
}

// leaf returns the condition that the subject passes a test. negated: that it does not, each element by itself.
func (s *subject) leaf(negated bool, t test) node {
	return &leafNode{feature: s.feature, form: s.form, negated: negated, test: t.compact()}
}

// values returns the test for what compares so with a literal.
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
		n = Number{Integer: true}
		if l.Bool {
			n.Abs = 1
		}
	case l.Kind == StringLiteral && s.class == temporalClass:
		r, err := s.logical.parseTime(l.Text)
		if err != nil {
			return nil, b.fail(l.Offset, "%v", err)
		}
		return s.integers(op, r), nil
	case l.Kind == StringLiteral:
		return nil, b.fail(l.Offset, "%s is text, and is compared with %v", l, s.field.Type)
	}
	if s.domain == floatDomain {
		return numberTest{domain: s.domain, floats: floatsWhere(op, n)}, nil
	}
	return s.integers(op, s.logical.stored(n)), nil
}

// integers returns the test for what, as it is stored, compares so with r. The subject's values are integers.
func (s *subject) integers(op Op, r *big.Rat) test {
	t := numberTest{domain: s.domain}
	if s.domain == uintDomain {
		t.uints = uintsWhere(op, r)
	} else {
		t.ints = intsWhere(op, r)
	}
	return t
}
