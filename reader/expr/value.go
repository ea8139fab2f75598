package expr

import (
	"github.com/dsistore/dsistore/format/vector"
)

// A Value is a number of each row: an expression that is no condition, typed against what its names stand for.
// It is immutable and safe for concurrent use.
//
//	clicks / shows        float64, null where shows is 0 or either is null
//	clicks + 2 * shows    int64 of integers, float64 with a float
//	len(history)          int64
//	clicks                what clicks is
//
// It is computed as Arithmetic says. An integer beyond what Type holds is null.
type Value struct {
	operand  Operand
	features []string
	of       *scalar
	elem     vector.Elem
}

// ParseValue is ParseFilter for text that may say a number as well as a condition: of the two that it returns
// one is nil.
func ParseValue(text string, resolve func(names []string) ([]Field, error)) (*Value, *Filter, error) {
	o, read, failed := parseOperand(text)
	if o == nil {
		e, readToo, err := parse(text)
		if err != nil && failed != nil && read > 0 && read >= readToo {
			err = failed // it has read as far, and so its error says what is missing
		}
		if err != nil {
			return nil, nil, err
		}
		b, err := bindExpr(text, e, resolve)
		if err != nil {
			return nil, nil, err
		}
		f, err := b.filter(e)
		return nil, f, err
	}
	b, err := bind(text, o.names, resolve)
	if err != nil {
		return nil, nil, err
	}
	if n, ok := o.(*Name); ok {
		if f := b.fields[n.Name]; f.Partition || f.Type == (vector.Type{Kind: vector.Dense, Elem: vector.Bool}) {
			f, err := b.filter(n)
			return nil, f, err
		}
	}
	o.names(func(n *Name) {
		if err == nil && b.fields[n.Name].Partition {
			err = b.fail(n.Offset, "%s is a partition key: only features are computed with", n)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	v := &Value{operand: o, features: b.features}
	if v.of, err = b.number(o); err != nil {
		return nil, nil, err
	}
	v.elem = v.of.elem()
	return v, nil, nil
}

// parseOperand returns the whole text as one operand with a name in it; nil: it is none. read is the offset of
// the token that it ended with, and an error says why the text up to there is not even the beginning of one.
func parseOperand(text string) (o Operand, read int, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, 0, err
	}
	o = p.operand()
	if p.err != nil || p.token.kind != tokenEnd {
		return nil, p.token.offset, p.err
	}
	switch o.(type) {
	case *Name, *Len, *Arithmetic:
		return o, p.token.offset, nil
	}
	return nil, p.token.offset, nil // a constant, or elements of a list: wrong as a condition is wrong here
}

// String returns the expression in its canonical form.
func (v *Value) String() string { return v.operand.String() }

// Features returns the names of the features that v is computed from, each once. Columns are given in their
// order. Borrowed: do not write.
func (v *Value) Features() []string { return v.features }

// Type returns the type of what v gives: that of the feature which v is, else int64 of integers and float64.
func (v *Value) Type() vector.Type { return vector.Type{Kind: vector.Dense, Elem: v.elem} }

// Append appends what v is in rows [lo, hi) of columns to dst, a plain column of a type that Type widens to.
// columns are those of Features, of the type of their Field; nil: null in every row. They are borrowed until
// Append returns.
func (v *Value) Append(dst *vector.Column, columns []*vector.Column, lo, hi int) {
	in := input{columns: columns}
	for row := lo; row < hi; row++ {
		n, ok := v.of.number(&in, row)
		if !ok {
			dst.AppendNulls(1)
			continue
		}
		switch dst.Type.Physical() {
		case vector.Float32Values:
			dst.Floats = append(dst.Floats, float32(n.float()))
		case vector.Float64Values:
			dst.Doubles = append(dst.Doubles, n.float())
		default:
			i, ok := n.stored(dst.Type.Elem == vector.Uint64)
			if !ok {
				dst.AppendNulls(1)
				continue
			}
			dst.Ints = append(dst.Ints, i)
		}
		dst.AddSlot()
	}
}

// elem returns the type of a number.
func (s *scalar) elem() vector.Elem {
	switch {
	case s.subject != nil:
		return s.subject.elem
	case s.op == Divide || s.op != "" && !(s.left.elem().IsInteger() && s.right.elem().IsInteger()),
		s.constant != nil && !s.constant.Number.Integer:
		return vector.Float64
	}
	return vector.Int64
}
