package execution

import (
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A gatheredStripe is some rows of a stripe in the order of a take: the stripe's columns, each with an inverse of only
// those rows.
//
//	stripe            rows 0 .. 16383         pieces [5,6) [870,871) [9001,9002) ...
//	gathered stripe   rows 5 870 9001 ...     piece [0,143)
type gatheredStripe struct {
	of       *ioplan.Stripe
	stripe   ioplan.Stripe
	rows     []int32 // of the stripe
	columns  []ioplan.Decoded
	inverses []gatheredInverse // of the columns; the columns of a group share one
}

// A gatheredInverse has the slots of the rows, from the inverse at address of.
type gatheredInverse struct {
	of   *int32
	rows []int32
}

// A PieceGatherer gathers the pieces of one batch at a time. It reuses its memory. It is used by one goroutine.
type PieceGatherer struct {
	all      []*gatheredStripe
	used     int
	byStripe map[*ioplan.Stripe]*gatheredStripe // of those used
}

// Gather replaces pieces, which are of so many stripes, by pieces of gathered stripes, unless there are few pieces. The
// result is valid until Release.
func (x *PieceGatherer) Gather(pieces []batch.Piece, stripes int) []batch.Piece {
	if len(pieces) < 2*stripes {
		return pieces
	}
	out := pieces[:0]
	var v *gatheredStripe
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

// of returns the gathered stripe of a stripe, a new one without rows if there is none.
func (x *PieceGatherer) of(s *ioplan.Stripe) *gatheredStripe {
	if v := x.byStripe[s]; v != nil {
		return v
	}
	if x.used == len(x.all) {
		x.all = append(x.all, new(gatheredStripe))
	}
	v := x.all[x.used]
	x.used++
	v.of = s
	if x.byStripe == nil {
		x.byStripe = map[*ioplan.Stripe]*gatheredStripe{}
	}
	x.byStripe[s] = v
	return v
}

// Release removes the references to the stripes.
func (x *PieceGatherer) Release() {
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

// fill sets the columns of v.stripe.
func (v *gatheredStripe) fill() {
	s := &v.stripe
	s.Segment, s.Index, s.FirstRow, s.Rows = v.of.Segment, v.of.Index, v.of.FirstRow, len(v.rows)
	if len(v.columns) < len(v.of.Columns) {
		v.columns = make([]ioplan.Decoded, len(v.of.Columns))
		s.Columns = make([]*ioplan.Decoded, len(v.of.Columns))
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

// inverse returns the slots of the rows in c. Borrowed until Release.
func (v *gatheredStripe) inverse(c *vector.Column) []int32 {
	if len(c.Inverse) == 0 {
		return v.rows
	}
	of := &c.Inverse[0]
	at := slices.IndexFunc(v.inverses, func(i gatheredInverse) bool { return i.of == of })
	if at >= 0 {
		return v.inverses[at].rows
	}
	if at = slices.IndexFunc(v.inverses, func(i gatheredInverse) bool { return i.of == nil }); at < 0 {
		at = len(v.inverses)
		v.inverses = append(v.inverses, gatheredInverse{})
	}
	to := &v.inverses[at]
	to.of, to.rows = of, to.rows[:0]
	to.rows = vector.Resize(to.rows, len(v.rows))
	gatherRows(to.rows, c.Inverse, v.rows)
	return to.rows
}
