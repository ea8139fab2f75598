package reader

import (
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/load"
)

// A takeView is the rows that a take wants of a stripe, in the order in which it wants them: the stripe's columns, each with an
// inverse that has those rows alone. What would be a piece a row is one piece, or few, which batches are filled with by loops, and
// kernels, over many rows.
//
//	stripe    rows 0 .. 16383         pieces [5,6) [870,871) [9001,9002) ...
//	view      rows 5 870 9001 ...     piece [0,143)
type takeView struct {
	of       *load.Stripe
	stripe   load.Stripe
	rows     []int32 // of the stripe
	columns  []load.Decoded
	inverses []viewInverse // of the columns, which those of a group share
}

// viewInverse is what a view makes of an inverse, which begins at of.
type viewInverse struct {
	of   *int32
	rows []int32
}

// takeViews are the views of a take; their memory is used again.
type takeViews struct {
	all      []*takeView
	used     int
	byStripe map[*load.Stripe]*takeView // of those used
}

// gather makes the pieces of a batch pieces of views, unless they are few. The views are good until release.
func (x *takeViews) gather(pieces []batch.Piece, stripes []takenStripe) []batch.Piece {
	if len(pieces) < 2*len(stripes) {
		return pieces
	}
	out := pieces[:0]
	var v *takeView
	for _, p := range pieces {
		if v == nil || v.of != p.Stripe {
			v = x.of(p.Stripe)
		}
		lo := len(v.rows)
		for r := p.Lo; r < p.Hi; r++ {
			v.rows = append(v.rows, int32(r))
		}
		if k := len(out) - 1; k >= 0 && out[k].Stripe == &v.stripe && out[k].Hi == lo {
			out[k].Hi = len(v.rows)
			continue
		}
		out = append(out, batch.Piece{Stripe: &v.stripe, Lo: lo, Hi: len(v.rows), At: p.At})
	}
	clear(pieces[len(out):])
	for _, v := range x.all[:x.used] {
		v.fill()
	}
	return out
}

// of returns the view of a stripe, a new one of no rows if there is none. There are as many as a take has stripes.
func (x *takeViews) of(s *load.Stripe) *takeView {
	if v := x.byStripe[s]; v != nil {
		return v
	}
	if x.used == len(x.all) {
		x.all = append(x.all, new(takeView))
	}
	v := x.all[x.used]
	x.used++
	v.of = s
	if x.byStripe == nil {
		x.byStripe = map[*load.Stripe]*takeView{}
	}
	x.byStripe[s] = v
	return v
}

// release lets the stripes go.
func (x *takeViews) release() {
	for _, v := range x.all[:x.used] {
		v.of, v.stripe.Segment, v.rows = nil, nil, v.rows[:0]
		clear(v.columns)
		for i := range v.inverses {
			v.inverses[i].of = nil
		}
	}
	x.used = 0
	clear(x.byStripe)
}

// fill makes the columns of the view's rows.
func (v *takeView) fill() {
	s := &v.stripe
	s.Segment, s.Index, s.FirstRow, s.Rows = v.of.Segment, v.of.Index, v.of.FirstRow, len(v.rows)
	if len(v.columns) < len(v.of.Columns) {
		v.columns = make([]load.Decoded, len(v.of.Columns))
		s.Columns = make([]*load.Decoded, len(v.of.Columns))
	}
	for f, d := range v.of.Columns {
		s.Columns[f] = nil
		if d == nil {
			continue
		}
		to := &v.columns[f]
		to.Column = d.Column
		to.Gather(v.inverse(d.Column))
		s.Columns[f] = to
	}
}

// inverse returns the slots of the view's rows. Borrowed until release.
func (v *takeView) inverse(c *vector.Column) []int32 {
	if len(c.Inverse) == 0 {
		return v.rows
	}
	of := &c.Inverse[0]
	at := slices.IndexFunc(v.inverses, func(i viewInverse) bool { return i.of == of })
	if at >= 0 {
		return v.inverses[at].rows
	}
	if at = slices.IndexFunc(v.inverses, func(i viewInverse) bool { return i.of == nil }); at < 0 {
		at = len(v.inverses)
		v.inverses = append(v.inverses, viewInverse{})
	}
	to := &v.inverses[at]
	to.of, to.rows = of, to.rows[:0]
	to.rows = vector.Resize(to.rows, len(v.rows))
	gatherRows(to.rows, c.Inverse, v.rows)
	return to.rows
}
