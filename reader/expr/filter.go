package expr

import (
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Filter is a predicate over rows: an expression whose names are features and partition keys, typed against
// them. It is immutable and safe for concurrent use.
//
//	                 partition  statistics  columns
//	click = 1 AND        -          x          x      leaf:  yes, no or unknown a slot, spread to the rows
//	len(hist) > 3 AND    -          x          x
//	ds > '2026-11-01'    x          -          -      the same in all rows of a segment
//
// Comparisons:
//   - Numbers are compared exactly, whatever their types: an int64 with 9007199254740993.0, or a float32 with 0.1, to
//     which no float32 is equal. Compared with floats, a literal with a point or an exponent is the nearest float64.
//   - NaN is as in IEEE 754, numpy, torch and pyarrow: not equal to, below or above anything, so != and NOT are true.
//     -0.0 equals 0.
//   - Strings and bytes are compared by their bytes. LIKE's _ matches one character.
//   - true and false are 1 and 0. Only they are a condition by themselves.
//   - Decimals (Field.Logical) by their value; dates and timestamps with '2026-11-01' and '2026-11-01
//     12:00:00', in UTC unless the text ends in an offset, or with the number that is stored.
//   - What is computed, as Arithmetic says.
//   - Nothing with null: a comparison with null is unknown, and so is one about the elements of a list that is
//     null. Of an empty list any(...) is false and all(...) true.
type Filter struct {
	expr     Expr
	features []string
	root     node
}

// ParseFilter parses and types a filter. It calls resolve at most once, with the names in the text; resolve returns a
// Field for each. Every error about a part of the text is an *Error.
func ParseFilter(text string, resolve func(names []string) ([]Field, error)) (*Filter, error) {
	e, err := Parse(text)
	if err != nil {
		return nil, err
	}
	b, err := bindExpr(text, e, resolve)
	if err != nil {
		return nil, err
	}
	return b.filter(e)
}

// String returns the expression in its canonical form: equal filters over equal features select the same rows.
func (f *Filter) String() string { return f.expr.String() }

// Features returns the names of the features that the filter reads, each once. Columns and statistics are passed in
// this order. Borrowed: do not write.
func (f *Filter) Features() []string { return f.features }

// A Verdict says whether a filter selects some, none or all of a set of rows, without reading their values.
type Verdict uint8

// The verdicts.
const (
	Some   Verdict = iota // not known: the values decide
	Never                 // none
	Always                // all
)

// FieldStats are the statistics of a feature in some rows: a stripe's or a segment's. With Stats nil the feature is
// null in every row.
type FieldStats struct {
	Unknown bool        // there are no statistics
	Type    vector.Type // as it is stored, which the Field's type may be wider than
	Rows    uint64
	Stats   *format.Stats
}

// Prune returns the verdict for rows of a partition. stats returns the statistics of feature i of Features.
func (f *Filter) Prune(p catalog.Partition, stats func(feature int) FieldStats) Verdict {
	switch f.root.outcomes(&pruner{partition: p, stats: stats}) {
	case canBeTrue:
		return Always
	case canBeTrue | canBeFalse, canBeTrue | canBeUnknown, canBeTrue | canBeFalse | canBeUnknown:
		return Some
	}
	return Never
}

// An Evaluator is scratch memory for evaluating filters. The zero value is ready. It is used by one goroutine at a
// time.
type Evaluator struct {
	idle   []vector.Bitmap
	rows   int
	in     input
	slots  [2]vector.Bitmap
	values vector.Bitmap
}

// Select sets dst, of at least rows bits, to the rows for which f is true. columns are those of Features, each of rows
// rows and of the type of its Field; nil: null in every row. They are borrowed until Select returns.
func (x *Evaluator) Select(dst vector.Bitmap, f *Filter, rows int, p catalog.Partition, columns []*vector.Column) {
	x.evaluate(f, rows, p, columns, func(t ternary) { copy(dst, t.yes) })
}

// Evaluate sets yes to the rows for which f is true, and no to those for which it is false. In the others it is
// unknown.
func (x *Evaluator) Evaluate(yes, no vector.Bitmap, f *Filter, rows int, p catalog.Partition,
	columns []*vector.Column) {
	x.evaluate(f, rows, p, columns, func(t ternary) { copy(yes, t.yes); copy(no, t.no) })
}

// evaluate calls take with the ternary of f.
func (x *Evaluator) evaluate(f *Filter, rows int, p catalog.Partition, columns []*vector.Column, take func(ternary)) {
	x.rows, x.in = rows, input{columns: columns, partition: p}
	t := f.root.eval(x)
	take(t)
	x.put(t)
	x.in = input{}
}

// A ternary is the value of a condition in each row: true (bit set in yes), false (in no) or unknown (in neither).
type ternary struct{ yes, no vector.Bitmap }

// get returns a ternary that is unknown in all rows.
func (x *Evaluator) get() ternary { return ternary{x.bitmap(), x.bitmap()} }

func (x *Evaluator) bitmap() vector.Bitmap {
	var b vector.Bitmap
	if k := len(x.idle) - 1; k >= 0 {
		b, x.idle = x.idle[k], x.idle[:k]
	}
	return empty(b, x.rows)
}

func (x *Evaluator) put(t ternary) { x.idle = append(x.idle, t.yes, t.no) }

// slotBitmaps returns two empty bitmaps of slots. Borrowed until the next call.
func (x *Evaluator) slotBitmaps(slots int) (a, b vector.Bitmap) {
	for i := range x.slots {
		x.slots[i] = empty(x.slots[i], slots)
	}
	return x.slots[0], x.slots[1]
}

// valueBitmap returns an empty bitmap of values. Borrowed until the next call.
func (x *Evaluator) valueBitmap(values int) vector.Bitmap {
	x.values = empty(x.values, values)
	return x.values
}

// empty returns an empty bitmap of n bits, in the memory of b if that is enough.
func empty(b vector.Bitmap, n int) vector.Bitmap {
	words := vector.BitmapWords(n)
	if cap(b) < words {
		return make(vector.Bitmap, words)
	}
	clear(b[:words])
	return b[:words]
}

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

// outcomes is the set of values that a condition may have in some rows.
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
	partition catalog.Partition
	stats     func(feature int) FieldStats
}

type notNode struct{ x node }

// negate returns n, or with negated its opposite.
func negate(negated bool, n node) node {
	if negated {
		return &notNode{n}
	}
	return n
}

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

// outcomes combines the outcomes of the terms as if these were independent. This may add outcomes, but loses none.
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
