package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A computed is a feature that an expression gives: 1, 0 or null of a condition, or a number.
type computed struct {
	catalog.Feature // without an ID
	text            string
	filter          *expr.Filter // or
	value           *expr.Value
}

// features returns the names of what c is computed from.
func (c *computed) features() []string {
	if c.value != nil {
		return c.value.Features()
	}
	return c.filter.Features()
}

// gives returns the narrowest type of what c gives.
func (c *computed) gives() vector.Type {
	if c.value != nil {
		return c.value.Type()
	}
	return vector.Type{Kind: vector.Dense, Elem: vector.Int8}
}

// fits makes c's type that of a feature which it is, or lies over, where what c gives widens to it.
func (c *computed) fits(k *known) error {
	w, err := vector.Widen(c.Type, k.Type)
	if k.Type.Kind == vector.Dense && k.Logical == "" && c.value == nil { // every number type has 0 and 1
		w, err = k.Type, nil
	}
	if err != nil || k.Type.Kind != vector.Dense || k.Logical != "" {
		gives := "0 or 1"
		if c.value != nil {
			gives = c.Type.String()
		}
		return fmt.Errorf("feature %s is %s in %s, and the expression gives %s: %s", c.Name,
			source.TypeName(k.Type, k.Logical), k.in, gives, k.advice)
	}
	if w == k.Type {
		c.Type = w
	}
	return nil
}

// splitExpr splits "name = condition", or "name = number". A name that is not of letters, digits and points stands in
// quotes, as it does in a condition.
func splitExpr(text string) (name, condition string, err error) {
	rest := strings.TrimSpace(text)
	bad := func() (string, string, error) {
		return "", "", &expr.Error{Text: text, Reason: "want name = condition, as in label_v2 = click = 1 AND " +
			"dwell > 10, or a number, as in ctr = clicks / shows"}
	}
	if rest == "" {
		return bad()
	}
	if q := rest[0]; q == '"' || q == '`' {
		var b strings.Builder
		i := 1
		for ; ; i++ {
			if i == len(rest) {
				return bad()
			}
			if rest[i] == q {
				if i+1 == len(rest) || rest[i+1] != q {
					break
				}
				i++
			}
			b.WriteByte(rest[i])
		}
		name, rest = b.String(), strings.TrimSpace(rest[i+1:])
		if !strings.HasPrefix(rest, "=") {
			return bad()
		}
		rest = rest[1:]
	} else {
		var ok bool
		if name, rest, ok = strings.Cut(rest, "="); !ok {
			return bad()
		}
		name = strings.TrimSpace(name)
		if strings.ContainsAny(name, "<>!'\"`() \t\n") {
			return bad()
		}
	}
	if rest = strings.TrimSpace(rest); name == "" || rest == "" || rest[0] == '=' || !utf8.ValidString(name) {
		return bad()
	}
	return name, rest, nil
}

// resolve returns what names in an expression stand for, to a reader of the view.
func (v *view) resolve(ctx context.Context, names []string) ([]expr.Field, error) {
	out := make([]expr.Field, len(names))
	for i, n := range names {
		plan, err := v.plan(ctx, []string{n}, 1)
		switch {
		case err == nil:
			f := plan.Features[0]
			out[i] = expr.Field{Partition: reader.IsPartitionKey(f), Type: f.Type, Logical: f.Logical}
		case errors.Is(err, storage.ErrNotFound):
			out[i].Err = err
		default:
			return nil, err
		}
	}
	return out, nil
}

// parseExprs types expressions against what a reader of the view sees. find returns what is known of a name.
func (v *view) parseExprs(ctx context.Context, opts *Options,
	find func(context.Context, string) (*known, error)) ([]computed, error) {
	var out []computed
	for _, text := range opts.Exprs {
		name, condition, err := splitExpr(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(c computed) bool { return c.Name == name }) {
			return nil, fmt.Errorf("two expressions of feature %s", name)
		}
		c := computed{Feature: catalog.Feature{Name: name, Role: opts.Role}, text: condition}
		k, err := find(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := v.parse(ctx, &c); err != nil {
			return nil, err
		}
		c.Type = c.gives()
		if k != nil {
			c.Role = k.Role
			if err := c.fits(k); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// parse types an expression against what a reader of the view sees.
func (v *view) parse(ctx context.Context, c *computed) (err error) {
	c.value, c.filter, err = expr.ParseValue(c.text,
		func(names []string) ([]expr.Field, error) { return v.resolve(ctx, names) })
	if err != nil {
		return fmt.Errorf("feature %s: %w", c.Name, err)
	}
	return nil
}

// parseAgain is parse for an expression that was typed before: types may have become wider since.
func (v *view) parseAgain(ctx context.Context, c *computed) error {
	value := c.value != nil
	if err := v.parse(ctx, c); err != nil {
		return err
	}
	if w, err := vector.Widen(c.gives(), c.Type); value != (c.value != nil) || value && (err != nil || w != c.Type) {
		return fmt.Errorf("expression of feature %s gave %v, and gives %v of what the table has by now: %w", c.Name,
			c.Type, c.gives(), storage.ErrConflict)
	}
	return nil
}

// A truth is what a condition is in the rows of a segment that are not deleted: bit set in yes, in no, or in neither
// where it is unknown.
type truth struct{ yes, no vector.Bitmap }

// A result is what an expression is in those rows.
type result struct {
	truth                 // of a condition
	number *vector.Column // of a number: plain, of the feature's type
}

// evaluate calls visit for every segment that is wanted, in order, with the values of expressions in its rows.
func (v *view) evaluate(ctx context.Context, exprs []computed, opts *Options, want []bool, progress func(uint64),
	visit func(int, values) error) error {
	var names []string
	for i := range exprs {
		if err := v.parseAgain(ctx, &exprs[i]); err != nil {
			return err
		}
		for _, n := range exprs[i].features() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	x := &evaluation{view: v, exprs: exprs, positions: make([][]int, len(exprs)), of: make([]result, len(exprs)),
		at: make([]truth, len(exprs))}
	for i := range exprs {
		for _, n := range exprs[i].features() {
			x.positions[i] = append(x.positions[i], slices.Index(names, n))
		}
		if exprs[i].value != nil {
			x.of[i].number = vector.NewColumn(exprs[i].Type)
		}
	}
	done := uint64(0)
	take := func(p piece) error {
		x.take(p)
		if !p.last {
			return nil
		}
		done += v.segments[p.segment].rows
		progress(done)
		return visit(p.segment, values{count: v.segments[p.segment].rows, open: x.open})
	}
	if len(names) > 0 {
		return v.walk(ctx, names, opts, want, take)
	}
	// Of partition keys alone: there is nothing to read.
	for i, s := range v.segments {
		for from := uint64(0); want[i] && from < s.rows; from += constantRows {
			n := min(constantRows, s.rows-from)
			p := piece{segment: i, place: int(from), rows: int(n), hi: int(n), last: from+n == s.rows}
			if err := errors.Join(ctx.Err(), take(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// constantRows is how many rows are evaluated at once where nothing is read.
const constantRows = 1 << 16

// An evaluation evaluates expressions over pieces of segments.
type evaluation struct {
	view      *view
	exprs     []computed
	positions [][]int // of each expression's features among the columns
	evaluator expr.Evaluator
	columns   []*vector.Column
	of        []result // of the segment's rows so far, by expression
	at        []truth  // of conditions, of the rows of the columns at hand
	// at is of these columns and this partition.
	batch     uint64
	partition catalog.Partition
}

// take adds the rows of a piece.
func (x *evaluation) take(p piece) {
	s := &x.view.segments[p.segment]
	if p.place == 0 {
		for i := range x.of {
			r := &x.of[i]
			if r.number != nil {
				r.number.Reset()
				continue
			}
			r.truth = truth{cleared(r.yes, int(s.rows)), cleared(r.no, int(s.rows))}
		}
	}
	anew := p.batch == 0 || p.batch != x.batch || !s.Partition.Equal(x.partition)
	for i := range x.of {
		r, e := &x.of[i], &x.exprs[i]
		x.columns = x.columns[:0]
		for _, c := range x.positions[i] {
			x.columns = append(x.columns, p.columns[c])
		}
		if r.number != nil {
			e.value.Append(r.number, x.columns, p.lo, p.hi)
			continue
		}
		t := &x.at[i]
		if anew {
			t.yes, t.no = cleared(t.yes, p.rows), cleared(t.no, p.rows)
			x.evaluator.Evaluate(t.yes, t.no, e.filter, p.rows, s.Partition, x.columns)
		}
		r.yes.CopyBits(p.place, t.yes, p.lo, p.hi-p.lo)
		r.no.CopyBits(p.place, t.no, p.lo, p.hi-p.lo)
	}
	x.batch, x.partition = p.batch, s.Partition
}

// open returns what appends what expression f gives.
func (x *evaluation) open(f int) (appender, error) {
	r, row := x.of[f], 0
	if r.number != nil {
		return func(dst *vector.Column, n int) error {
			dst.AppendRows(r.number, row, row+n)
			row += n
			return nil
		}, nil
	}
	return func(dst *vector.Column, n int) error {
		for end := row + n; row < end; row++ {
			value := 0
			switch {
			case r.yes.Get(row):
				value = 1
			case !r.no.Get(row):
				dst.AppendNulls(1)
				continue
			}
			switch dst.Type.Physical() {
			case vector.Float32Values:
				dst.Floats = append(dst.Floats, float32(value))
			case vector.Float64Values:
				dst.Doubles = append(dst.Doubles, float64(value))
			default:
				dst.Ints = append(dst.Ints, int64(value))
			}
			dst.AddSlot()
		}
		return nil
	}, nil
}

// cleared returns a bitmap of n bits, none set, in the memory of b where there is enough.
func cleared(b vector.Bitmap, n int) vector.Bitmap {
	words := vector.BitmapWords(n)
	b = slices.Grow(b[:0], words)[:words]
	clear(b)
	return b
}
