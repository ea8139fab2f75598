package expr

import "strings"

// Contains is true when the list holds the value.
type Contains struct {
	List  *Name
	Value *Literal
}

func (e *Contains) String() string { return text(e) }

func (e *Contains) print(b *strings.Builder, _ precedence) {
	b.WriteString("contains(" + e.List.String() + ", " + e.Value.String() + ")")
}

func (p *parser) contains(int) Expr {
	list := p.name(" in contains(name, value)")
	p.symbol(",", "in contains(name, value)")
	value := p.literal(" in contains(name, value)")
	p.symbol(")", "after contains(name, value")
	return &Contains{list, value}
}

func (e *Contains) operands(visit func(Operand)) { visit(e.List) }

func (e *Contains) bind(b *binder) (node, error) {
	if b.fields[e.List.Name].Partition {
		return nil, b.fail(e.List.Offset, "contains(...) is about lists, and a partition value is none")
	}
	return b.in(&Quantified{List: e.List}, []*Literal{e.Value}, false)
}
