package expr

import (
	"fmt"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// A Field is what a name in a filter stands for.
type Field struct {
	// Partition: a partition key. Type and Logical say nothing then.
	Partition bool
	Type      vector.Type
	Logical   string // as in storage.Feature
	// Err is why the name stands for nothing.
	Err error
}

// A Filter is a predicate over rows: an expression whose names are features and partition keys, typed against them. It is
// immutable and safe for concurrent use.
//
//	                 partition  statistics  columns
//	click = 1 AND        -          x          x      leaf:  yes, no or unknown a slot, spread to the rows
//	len(hist) > 3 AND    -          x          x
//	ds > '2026-11-01'    x          -          -      the same in all rows of a segment
//
// What is compared:
//   - Numbers exactly, whatever their types: an int64 with 9007199254740993.0, a float32 with 0.1, which none equals. What is written with a
//     point or an exponent means the float64 next to it where floats are compared, and else itself.
//   - NaN as IEEE 754 has it, and numpy, torch and pyarrow: it is neither equal to, below nor above anything, so that != and NOT are
//     true of it. -0.0 equals 0.
//   - Strings and bytes by their bytes. LIKE's _ is one character.
//   - true and false as 1 and 0. Only they are a condition by themselves.
//   - Decimals (Field.Logical) by their value; dates and timestamps with '2026-11-01' and '2026-11-01 12:00:00', in UTC unless
//     the text ends in an offset, or with the number that is stored.
//   - What is computed, as Arithmetic says.
//   - Nothing with null: a comparison with null is unknown, and so is one about the elements of a list that is null. Of an empty list
//     any(...) is false and all(...) true.
type Filter struct {
	expr     Expr
	features []string
	root     node
}

// ParseFilter is Parse, and types what it gives. resolve is called at most once, with the names in the text, and returns a Field for
// each. Every error that has a place in the text is an *Error.
func ParseFilter(text string, resolve func(names []string) ([]Field, error)) (*Filter, error) {
	e, err := Parse(text)
	if err != nil {
		return nil, err
	}
	b, err := bind(text, namesOf(e), resolve)
	if err != nil {
		return nil, err
	}
	return b.filter(e)
}

// filter types a condition.
func (b *binder) filter(e Expr) (f *Filter, err error) {
	f = &Filter{expr: e, features: b.features}
	if f.root, err = b.condition(e); err != nil {
		return nil, err
	}
	return f, nil
}

// bind resolves names, unless there is none.
func bind(text string, names []*Name, resolve func([]string) ([]Field, error)) (*binder, error) {
	b := &binder{compiler: compiler{text: text}, fields: map[string]Field{}, places: map[string]int{}}
	if len(names) == 0 {
		return b, nil
	}
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = n.Name
	}
	fields, err := resolve(list)
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		x := fields[i]
		switch {
		case x.Err != nil:
			return nil, &Error{Text: text, Offset: n.Offset, Reason: x.Err.Error(), Cause: x.Err}
		case x.Partition:
			b.keys = append(b.keys, n.Name)
		default:
			b.places[n.Name] = len(b.features)
			b.features = append(b.features, n.Name)
		}
		b.fields[n.Name] = x
	}
	return b, nil
}

// String returns the expression in its canonical form: equal filters over equal features select the same rows.
func (f *Filter) String() string { return f.expr.String() }

// Features returns the names of the features that the filter reads, each once. Columns and statistics are given in their order.
// Borrowed: do not write.
func (f *Filter) Features() []string { return f.features }

// A Verdict says what of some rows a filter can select, from what is known without their values.
type Verdict uint8

// The verdicts.
const (
	Some   Verdict = iota // perhaps some: their values say which
	Never                 // none
	Always                // all
)

// FieldStats are what is known of a feature in some rows: a stripe's or a whole segment's. A nil Stats stands for a feature that is null
// in every row.
type FieldStats struct {
	Unknown bool        // nothing is
	Type    vector.Type // as it is stored, which the Field's type may be wider than
	Rows    uint64
	Stats   *format.Stats
}

// Prune returns the verdict over rows of a partition. stats returns what is known of one of Features.
func (f *Filter) Prune(p storage.Partition, stats func(feature int) FieldStats) Verdict {
	switch f.root.outcomes(&pruner{partition: p, stats: stats}) {
	case canBeTrue:
		return Always
	case canBeTrue | canBeFalse, canBeTrue | canBeUnknown, canBeTrue | canBeFalse | canBeUnknown:
		return Some
	}
	return Never
}

// An Evaluator is memory for evaluating one filter after another. The zero value is ready; it is used from one goroutine.
type Evaluator struct {
	idle    []vector.Bitmap
	rows    int
	columns []*vector.Column
	present [2]vector.Bitmap // of slots
	part    storage.Partition
}

// Select sets dst to the rows for which f is true. columns are those of Features, of rows rows each and of the type of their
// Field; nil: null in every row. They are borrowed until Select returns. dst has room for rows bits.
func (x *Evaluator) Select(dst vector.Bitmap, f *Filter, rows int, p storage.Partition, columns []*vector.Column) {
	x.evaluate(f, rows, p, columns, func(t ternary) { copy(dst, t.yes) })
}

// Evaluate is Select for who tells false from unknown: it sets yes to the rows for which f is true and no to those for which it is
// false.
func (x *Evaluator) Evaluate(yes, no vector.Bitmap, f *Filter, rows int, p storage.Partition, columns []*vector.Column) {
	x.evaluate(f, rows, p, columns, func(t ternary) { copy(yes, t.yes); copy(no, t.no) })
}

// evaluate calls take with what f is in each row.
func (x *Evaluator) evaluate(f *Filter, rows int, p storage.Partition, columns []*vector.Column, take func(ternary)) {
	x.rows, x.columns, x.part = rows, columns, p
	t := f.root.eval(x)
	take(t)
	x.put(t)
	x.columns, x.part = nil, nil
}

// A ternary is what a condition is in each row: bit set in yes, in no, or in neither where it is unknown.
type ternary struct{ yes, no vector.Bitmap }

// get returns a ternary that is unknown in all rows.
func (x *Evaluator) get() ternary { return ternary{x.bitmap(), x.bitmap()} }

func (x *Evaluator) bitmap() vector.Bitmap {
	n := vector.BitmapWords(x.rows)
	if k := len(x.idle) - 1; k >= 0 {
		b := x.idle[k]
		x.idle = x.idle[:k]
		if cap(b) >= n {
			b = b[:n]
			clear(b)
			return b
		}
	}
	return make(vector.Bitmap, n)
}

func (x *Evaluator) put(t ternary) { x.idle = append(x.idle, t.yes, t.no) }

// constant returns a ternary that is the same in all rows.
func (x *Evaluator) constant(v truth) ternary {
	t := x.get()
	switch v {
	case isTrue:
		t.yes.SetRange(0, x.rows)
	case isFalse:
		t.no.SetRange(0, x.rows)
	}
	return t
}

// A node is a part of a typed filter.
type node interface {
	eval(x *Evaluator) ternary
	outcomes(x *pruner) outcomes
}

// outcomes are the truths that a condition may have in some rows.
type outcomes uint8

const (
	canBeTrue    outcomes = 1
	canBeFalse   outcomes = 2
	canBeUnknown outcomes = 4
)

func (o outcomes) not() outcomes {
	n := o & canBeUnknown
	if o&canBeTrue != 0 {
		n |= canBeFalse
	}
	if o&canBeFalse != 0 {
		n |= canBeTrue
	}
	return n
}

func outcomeOf(v truth) outcomes {
	switch v {
	case isTrue:
		return canBeTrue
	case isFalse:
		return canBeFalse
	}
	return canBeUnknown
}

type pruner struct {
	partition storage.Partition
	stats     func(feature int) FieldStats
}

type notNode struct{ x node }

func (n *notNode) eval(x *Evaluator) ternary {
	t := n.x.eval(x)
	return ternary{yes: t.no, no: t.yes}
}
func (n *notNode) outcomes(x *pruner) outcomes { return n.x.outcomes(x).not() }

// A chainNode is AND, or with any OR, of its terms.
type chainNode struct {
	any   bool
	terms []node
}

func (n *chainNode) eval(x *Evaluator) ternary {
	out := n.terms[0].eval(x)
	for _, term := range n.terms[1:] {
		t := term.eval(x)
		all, some, tAll, tSome := out.yes, out.no, t.yes, t.no
		if n.any {
			all, some, tAll, tSome = out.no, out.yes, t.no, t.yes
		}
		for i := range all {
			all[i] &= tAll[i]
			some[i] |= tSome[i]
		}
		x.put(t)
	}
	return out
}

// outcomes combines what each term may be as if the terms had nothing to do with each other, which adds outcomes and loses none.
func (n *chainNode) outcomes(x *pruner) outcomes {
	out := n.terms[0].outcomes(x)
	for _, term := range n.terms[1:] {
		o := term.outcomes(x)
		if n.any {
			out = out.not().and(o.not()).not()
		} else {
			out = out.and(o)
		}
	}
	return out
}

func (o outcomes) and(p outcomes) outcomes {
	var out outcomes
	for _, a := range [...]truth{isFalse, isUnknown, isTrue} {
		for _, b := range [...]truth{isFalse, isUnknown, isTrue} {
			if o&outcomeOf(a) != 0 && p&outcomeOf(b) != 0 {
				out |= outcomeOf(min(a, b))
			}
		}
	}
	return out
}

// A partitionNode is a condition over partition values alone.
type partitionNode struct{ condition condition }

func (n *partitionNode) eval(x *Evaluator) ternary   { return x.constant(n.condition(x.part)) }
func (n *partitionNode) outcomes(x *pruner) outcomes { return outcomeOf(n.condition(x.partition)) }

// namesOf returns the names in e in order, each once.
func namesOf(e Expr) []*Name {
	var x nameList
	operands(e, x.add)
	return x.names
}

// A nameList is the names in operands in order, each once.
type nameList struct {
	names []*Name
	seen  map[string]bool
}

func (x *nameList) add(o Operand) {
	switch o := o.(type) {
	case *Name:
		if !x.seen[o.Name] {
			if x.seen == nil {
				x.seen = map[string]bool{}
			}
			x.seen[o.Name] = true
			x.names = append(x.names, o)
		}
	case *Len:
		x.add(o.List)
	case *Quantified:
		x.add(o.List)
	case *Arithmetic:
		x.add(o.Left)
		x.add(o.Right)
	}
}

// operands calls visit for the operands of all conditions in e, in order.
func operands(e Expr, visit func(Operand)) {
	switch e := e.(type) {
	case *Or:
		for _, t := range e.Terms {
			operands(t, visit)
		}
	case *And:
		for _, t := range e.Terms {
			operands(t, visit)
		}
	case *Not:
		operands(e.X, visit)
	case *Compare:
		visit(e.Left)
		visit(e.Right)
	case *In:
		visit(e.X)
	case *Between:
		visit(e.X)
		visit(e.Low)
		visit(e.High)
	case *Like:
		visit(e.X)
	case *IsNull:
		visit(e.X)
	case *Contains:
		visit(e.List)
	case *Sample:
		visit(e.Key)
	case *Name:
		visit(e)
	}
}

// binder types an expression.
type binder struct {
	compiler
	fields   map[string]Field
	features []string       // among the names, in order
	places   map[string]int // in features
}

func (b *binder) condition(e Expr) (node, error) {
	switch e := e.(type) {
	case *Or:
		return b.chain(e.Terms, true)
	case *And:
		return b.chain(e.Terms, false)
	case *Not:
		x, err := b.condition(e.X)
		if err != nil {
			return nil, err
		}
		return &notNode{x}, nil
	}
	key, feature := b.kindsOf(e)
	switch {
	case key != nil && feature != nil:
		return nil, b.fail(key.Offset, "%s is a partition key and %s a feature: they are not compared with each other", key, feature)
	case feature == nil:
		c, err := b.compiler.condition(e)
		if err != nil {
			return nil, err
		}
		return &partitionNode{c}, nil
	}
	return b.leaf(e)
}

// kindsOf returns the first partition key and the first feature that a condition names, nil where there is none.
func (b *binder) kindsOf(e Expr) (key, feature *Name) {
	for _, n := range namesOf(e) {
		switch {
		case !b.fields[n.Name].Partition:
			if feature == nil {
				feature = n
			}
		case key == nil:
			key = n
		}
	}
	return key, feature
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

// leaf types a condition that names features, and no partition keys.
func (b *binder) leaf(e Expr) (node, error) {
	switch e := e.(type) {
	case *Compare:
		return b.comparison(e.Left, e.Op, e.Right)
	case *In:
		if isComputed(e.X) {
			return b.computedIn(e)
		}
		s, err := b.subject(e.X)
		if err != nil {
			return nil, err
		}
		return b.in(s, e.List, e.Negated)
	case *Between:
		return b.between(e)
	case *Like:
		s, err := b.subject(e.X)
		if err != nil {
			return nil, err
		}
		if s.class != textClass {
			return nil, b.fail(e.X.offset(), "LIKE is about strings, and %s is %v", e.X, s.field.Type)
		}
		pattern := parsePattern(e.Pattern)
		return s.leaf(e.Negated, &textTest{match: func(v []byte) bool { return pattern.matches(string(v)) }}), nil
	case *IsNull:
		if q, ok := e.X.(*Quantified); ok {
			return nil, b.fail(q.offset(), "no element of a list is null: write %s IS NULL for the list", q.List)
		}
		if isComputed(e.X) {
			n, err := b.computed(e.X, "", nil)
			if err == nil {
				n.(*computedNode).negated = e.Negated
			}
			return n, err
		}
		s, err := b.anySubject(e.X)
		if err != nil {
			return nil, err
		}
		return &nullNode{feature: s.feature, negated: e.Negated}, nil
	case *Contains:
		s, err := b.subject(&Quantified{List: e.List})
		if err != nil {
			return nil, err
		}
		return b.in(s, []*Literal{e.Value}, false)
	case *Name:
		s, err := b.subject(e)
		if err != nil {
			return nil, err
		}
		if s.class != boolClass {
			return nil, b.fail(e.Offset, "%s is %v, not true or false: compare it with something", e, s.field.Type)
		}
		return s.leaf(false, numberTest{domain: s.domain, ints: []span[int64]{{1, 1}}}), nil
	case *Sample:
		return b.sample(e)
	}
	return nil, fmt.Errorf("expression: %T is no condition", e)
}

// between is the two comparisons that it says, of each element by itself where it is about those of a list.
func (b *binder) between(e *Between) (node, error) {
	low, okLow := e.Low.(*Literal)
	high, okHigh := e.High.(*Literal)
	if _, literal := e.X.(*Literal); okLow && okHigh && !literal && !isComputed(e.X) {
		s, err := b.subject(e.X)
		if err != nil {
			return nil, err
		}
		from, err := b.values(s, GreaterEqual, low)
		if err != nil {
			return nil, err
		}
		to, err := b.values(s, LessEqual, high)
		if err != nil {
			return nil, err
		}
		return s.leaf(e.Negated, from.and(to)), nil
	}
	if q, ok := e.X.(*Quantified); ok {
		return nil, b.fail(q.offset(), "%s is compared with values, not with features, by BETWEEN", q)
	}
	from, err := b.condition(&Compare{e.X, GreaterEqual, e.Low})
	if err != nil {
		return nil, err
	}
	to, err := b.condition(&Compare{e.X, LessEqual, e.High})
	if err != nil {
		return nil, err
	}
	var n node = &chainNode{terms: []node{from, to}}
	if e.Negated {
		n = &notNode{n}
	}
	return n, nil
}

// flipped is the comparison with its sides exchanged.
func (o Op) flipped() Op {
	switch o {
	case Less:
		return Greater
	case LessEqual:
		return GreaterEqual
	case Greater:
		return Less
	case GreaterEqual:
		return LessEqual
	}
	return o
}

func (b *binder) comparison(left Operand, op Op, right Operand) (node, error) {
	if isComputed(left) || isComputed(right) {
		return b.computed(left, op, right)
	}
	if _, literal := left.(*Literal); literal {
		left, op, right = right, op.flipped(), left
	}
	s, err := b.subject(left)
	if err != nil {
		return nil, err
	}
	if l, ok := right.(*Literal); ok {
		if op == NotEqual {
			return b.in(s, []*Literal{l}, true)
		}
		t, err := b.values(s, op, l)
		if err != nil {
			return nil, err
		}
		return s.leaf(false, t), nil
	}
	other, err := b.subject(right)
	if err != nil {
		return nil, err
	}
	return b.pair(left, s, op, right, other)
}

// in is equality with one of a list.
func (b *binder) in(s *subject, list []*Literal, negated bool) (node, error) {
	var t test
	for _, l := range list {
		one, err := b.values(s, Equal, l)
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = one
		} else {
			t = t.or(one)
		}
	}
	return s.leaf(negated, t), nil
}
