package selection

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A listExpr is sample lists joined by AND, OR and NOT.
type listExpr struct {
	expr  expr.Expr
	names []string // of the lists, each once
}

// ListName writes the name of a list as Query.Lists has it.
func ListName(name string) string { return (&expr.Name{Name: name}).String() }

// parseLists parses an expression of lists: that of a filter, with names of lists in place of predicates.
func parseLists(text string) (*listExpr, error) {
	e, err := expr.Parse(text)
	if err != nil {
		return nil, err
	}
	l := &listExpr{expr: e}
	return l, l.collect(e)
}

func (l *listExpr) collect(e expr.Expr) error {
	var terms []expr.Expr
	switch e := e.(type) {
	case *expr.Name:
		if !slices.Contains(l.names, e.Name) {
			l.names = append(l.names, e.Name)
		}
	case *expr.Not:
		terms = []expr.Expr{e.X}
	case *expr.And:
		terms = e.Terms
	case *expr.Or:
		terms = e.Terms
	default:
		return badQuery("sample lists: want names of lists, AND, OR and NOT, found %s", e)
	}
	for _, t := range terms {
		if err := l.collect(t); err != nil {
			return err
		}
	}
	return nil
}

// segmentsAtOnce is of how many segments at once bitmaps are read.
const segmentsAtOnce = 16

// restrict keeps the rows of a selection that the expression has. NOT is relative to the rows of the selection.
func (l *listExpr) restrict(ctx context.Context, s *Selection) error {
	var segments []catalog.SegmentDescriptor
	for _, r := range s.Segments {
		segments = append(segments, r.Segment)
	}
	listed := make([][]bitmap.Ref, len(l.names))
	for i, name := range l.names {
		if _, err := s.Snapshot.SampleList(ctx, name); err != nil {
			return err
		}
		var err error
		if listed[i], err = s.Snapshot.ListedRows(ctx, name, segments...); err != nil {
			return err
		}
	}
	store := s.Snapshot.Table().Store()
	found := make([]*roaring.Bitmap, len(segments))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(segmentsAtOnce)
	for k, r := range s.Segments {
		g.Go(func() error {
			all, err := rowsOf(r)
			if err != nil {
				return err
			}
			sets := make(map[string]*roaring.Bitmap, len(l.names))
			for i, name := range l.names {
				if sets[name], err = store.Bitmaps().Read(ctx, listed[i][k]); err != nil {
					return err
				}
			}
			found[k] = join(l.expr, sets, all)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.intersect(func(i int) *roaring.Bitmap { return found[i] })
	return nil
}

// join returns the rows of a segment that an expression has; all are the rows that NOT is relative to. The result may
// be one of sets.
func join(e expr.Expr, sets map[string]*roaring.Bitmap, all *roaring.Bitmap) *roaring.Bitmap {
	switch e := e.(type) {
	case *expr.Name:
		return sets[e.Name]
	case *expr.Not:
		return roaring.AndNot(all, join(e.X, sets, all))
	case *expr.And:
		out := join(e.Terms[0], sets, all)
		for _, t := range e.Terms[1:] {
			out = roaring.And(out, join(t, sets, all))
		}
		return out
	case *expr.Or:
		out := join(e.Terms[0], sets, all)
		for _, t := range e.Terms[1:] {
			out = roaring.Or(out, join(t, sets, all))
		}
		return out
	}
	panic("samples: an expression that parseLists did not let through")
}
