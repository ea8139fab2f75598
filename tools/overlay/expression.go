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
)

// A computed is a feature that an expression gives.
type computed struct {
	storage.Feature // without an ID
	text            string
	filter          *expr.Filter
}

// splitExpr splits "name = condition". A name that is not of letters, digits and points stands in quotes, as it does in a condition.
func splitExpr(text string) (name, condition string, err error) {
	rest := strings.TrimSpace(text)
	bad := func() (string, string, error) {
		return "", "", fmt.Errorf("expression %.100q: want name = condition, as in label_v2 = click = 1 AND dwell > 10", text)
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

// parseExprs types expressions against what a reader of the view sees. find returns the table's feature of a name.
func (v *view) parseExprs(ctx context.Context, opts *Options, find func(context.Context, string) (*known, error)) ([]computed, error) {
	var out []computed
	for _, text := range opts.Exprs {
		name, condition, err := splitExpr(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(c computed) bool { return c.Name == name }) {
			return nil, fmt.Errorf("two expressions of feature %s", name)
		}
		c := computed{Feature: storage.Feature{Name: name, Role: opts.Role, Type: vector.Type{Kind: vector.Dense, Elem: vector.Int8}}, text: condition}
		k, err := find(ctx, name)
		if err != nil {
			return nil, err
		}
		if k != nil {
			if k.Type.Kind != vector.Dense || k.Logical != "" {
				return nil, fmt.Errorf("feature %s is %s in the table, and the expression gives 0 or 1: give it another name", name, typeName(k.Type, k.Logical))
			}
			c.Role, c.Type = k.Role, k.Type
		}
		if c.filter, err = v.parse(ctx, condition); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (v *view) parse(ctx context.Context, condition string) (*expr.Filter, error) {
	return expr.ParseFilter(condition, func(names []string) ([]expr.Field, error) { return v.resolve(ctx, names) })
}

// A truth is what a condition is in the rows of a segment that are not deleted: bit set in yes, in no, or in neither where it is unknown.
type truth struct{ yes, no vector.Bitmap }

// evaluate calls visit for every segment that is wanted, in order, with the values of expressions in its rows.
func (v *view) evaluate(ctx context.Context, exprs []computed, opts *Options, want []bool, progress func(uint64), visit func(int, values) error) error {
	var names []string
	for i := range exprs {
		// Anew, since types may have become wider since.
		f, err := v.parse(ctx, exprs[i].text)
		if err != nil {
			return err
		}
		exprs[i].filter = f
		for _, n := range f.Features() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	x := &evaluation{view: v, exprs: exprs, places: make([][]int, len(exprs)), of: make([]truth, len(exprs)), at: make([]truth, len(exprs))}
	for i, e := range exprs {
		for _, n := range e.filter.Features() {
			x.places[i] = append(x.places[i], slices.Index(names, n))
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
	places    [][]int // of each expression's features among the columns
	evaluator expr.Evaluator
	columns   []*vector.Column
	of        []truth // of the segment's rows so far, by expression
	at        []truth // of the rows of the columns at hand
	// at is of these columns and this partition.
	batch     uint64
	partition storage.Partition
}

// take adds the rows of a piece.
func (x *evaluation) take(p piece) {
	s := &x.view.segments[p.segment]
	if p.place == 0 {
		for i := range x.of {
			x.of[i] = truth{cleared(x.of[i].yes, int(s.rows)), cleared(x.of[i].no, int(s.rows))}
		}
	}
	if p.batch == 0 || p.batch != x.batch || !s.Partition.Equal(x.partition) {
		for i := range x.at {
			x.columns = x.columns[:0]
			for _, c := range x.places[i] {
				x.columns = append(x.columns, p.columns[c])
			}
			t := &x.at[i]
			t.yes, t.no = cleared(t.yes, p.rows), cleared(t.no, p.rows)
			x.evaluator.Evaluate(t.yes, t.no, x.exprs[i].filter, p.rows, s.Partition, x.columns)
		}
		x.batch, x.partition = p.batch, s.Partition
	}
	for i := range x.of {
		copyBits(x.of[i].yes, p.place, x.at[i].yes, p.lo, p.hi)
		copyBits(x.of[i].no, p.place, x.at[i].no, p.lo, p.hi)
	}
}

// open returns what appends what expression f gives.
func (x *evaluation) open(f int) (appender, error) {
	t, row := x.of[f], 0
	return func(dst *vector.Column, n int) error {
		for end := row + n; row < end; row++ {
			value := 0
			switch {
			case t.yes.Get(row):
				value = 1
			case !t.no.Get(row):
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
			addPresent(dst, 1)
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

// copyBits sets the bits of dst from at on that are set in src from lo to hi.
func copyBits(dst vector.Bitmap, at int, src vector.Bitmap, lo, hi int) {
	for lo < hi {
		// As many as one word of each has.
		n := min(64-at&63, 64-lo&63, hi-lo)
		w := src[lo>>6] >> (uint(lo) & 63)
		if n < 64 {
			w &= 1<<uint(n) - 1
		}
		dst[at>>6] |= w << (uint(at) & 63)
		lo, at = lo+n, at+n
	}
}
