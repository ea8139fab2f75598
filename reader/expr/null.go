package expr

import "strings"

// IsNull is true when X is null; with Negated, when it is not. It is never unknown.
type IsNull struct {
	X       Operand
	Negated bool
}

func (e *IsNull) String() string { return text(e) }

func (e *IsNull) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(" IS" + not(e.Negated) + " NULL")
}

// isNull takes what follows IS.
func (p *parser) isNull(x Operand) Expr {
	negated := p.accept("NOT")
	if !p.accept("NULL") {
		p.fail("want NULL or NOT NULL after IS, found %s", p.token.describe())
	}
	return &IsNull{x, negated}
}

func (e *IsNull) operands(visit func(Operand)) { visit(e.X) }

func (e *IsNull) bind(b *binder) (node, error) {
	if q, ok := e.X.(*Quantified); ok && b.isFeature(q) {
		return nil, b.fail(q.offset(), "no element of a list is null: write %s IS NULL for the list", q.List)
	}
	switch x := e.X.(type) {
	case *Name:
		if b.isFeature(x) { // of any type
			return &nullNode{feature: b.index[x.Name], negated: e.Negated}, nil
		}
	case *Len:
		s, err := b.subject(x)
		if err != nil {
			return nil, err
		}
		return &nullNode{feature: s.feature, negated: e.Negated}, nil
	}
	x, err := b.scalar(e.X)
	if err != nil {
		return nil, err
	}
	return newScalarNode(truthOf(!e.Negated), func(in *input, at int) truth {
		return truthOf(x.isNull(in, at) != e.Negated)
	}, x), nil
}

// A nullNode is IS NULL of a feature.
type nullNode struct {
	feature int
	negated bool
}

func (n *nullNode) eval(x *Evaluator) ternary {
	t := x.get()
	null, present := t.yes, t.no
	if n.negated {
		null, present = present, null
	}
	switch c := x.in.columns[n.feature]; {
	case c == nil:
		null.SetRange(0, x.rows)
	case c.Present == nil:
		present.SetRange(0, x.rows)
	default:
		spread(present, c, c.Present)
		complement(null, present, x.rows)
	}
	return t
}

func (n *nullNode) outcomes(x *pruner) outcomes {
	o := presence(x.stats(n.feature))
	var out outcomes
	if o&canBeUnknown != 0 {
		out |= canBeTrue
	}
	if o&canBeTrue != 0 {
		out |= canBeFalse
	}
	if n.negated {
		return out.not()
	}
	return out
}
