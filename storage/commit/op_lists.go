package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// list returns a sample list as the change leaves it, nil where there is none then.
func (e *edit) list(ctx context.Context, name string) (*catalog.SampleList, error) {
	if l, ok := e.listed[name]; ok {
		return l, nil
	}
	return e.base.FindList(ctx, name)
}

// DropLists drops sample lists. A list that is dropped and defined is replaced.
type DropLists []string

func (DropLists) phase() phase { return phaseDropLists }

func (d DropLists) validate(c *Change) error {
	return cmp.Or(c.needBase(len(d), "sample lists"), checkNames("sample list", "sample list dropped:", d))
}

func (d DropLists) apply(ctx context.Context, e *edit) error {
	for _, name := range d {
		l, err := e.base.SampleList(ctx, name)
		if err != nil {
			return err
		}
		if l.Added > e.change.Base {
			return later("sample list", name, l.Added, e.change.Base)
		}
		prefix := catalog.ListRowsPrefix(name)
		err = e.base.EachBetween(ctx, prefix, catalog.PrefixEnd(prefix), func(key, _ []byte) string {
			e.setListing(slices.Clone(key), nil)
			return ""
		})
		if err != nil {
			return err
		}
		e.setListing(catalog.ListKey(name), nil)
		e.listed[name] = nil
		e.m.Lists--
	}
	return nil
}

// DefineLists defines sample lists.
type DefineLists []catalog.SampleList

func (DefineLists) phase() phase { return phaseDefineLists }

func (d DefineLists) validate(c *Change) error {
	var once checkOnce
	for _, l := range d {
		once.check(l.Validate(), "sample list", l.Name)
	}
	return cmp.Or(c.needBase(len(d), "sample lists"), once.err)
}

func (d DefineLists) apply(ctx context.Context, e *edit) error {
	for _, l := range d {
		there, err := e.list(ctx, l.Name)
		if err != nil {
			return err
		}
		if there != nil {
			return taken("sample list", l.Name, there.Added, e.change.Base)
		}
		l.Added = e.info.Number
		e.listed[l.Name] = &l
		e.m.Lists++
		e.setListing(catalog.ListKey(l.Name), catalog.AppendList(nil, l))
	}
	return nil
}

// ListRows are the rows of a segment that are in a sample list.
type ListRows struct {
	List    string
	Segment string     // id
	Rows    bitmap.Ref // of bitmap.Store.Put; empty: none
}

// SetListRows sets the rows of sample lists in segments. The rows of other segments stay.
type SetListRows []ListRows

func (SetListRows) phase() phase { return phaseListRows }

func (s SetListRows) validate(c *Change) error {
	var once checkOnce
	for _, l := range s {
		_, err := names.ParseID(l.Segment)
		once.check(errors.Join(catalog.CheckName("sample list", l.List), err), "rows of a sample list:",
			l.List+"\x00"+l.Segment)
	}
	return cmp.Or(c.needBase(len(s), "sample lists"), once.err)
}

func (s SetListRows) adds() (_ []catalog.SegmentDescriptor, rows []bitmap.Ref) {
	for _, l := range s {
		rows = append(rows, l.Rows)
	}
	return nil, rows
}

func (s SetListRows) apply(ctx context.Context, e *edit) error {
	names, byList := grouped(s, func(r ListRows) string { return r.List })
	for _, name := range names {
		if err := e.listRows(ctx, name, byList[name]); err != nil {
			return fmt.Errorf("sample list %s: %w", name, err)
		}
	}
	return nil
}

// listRows sets the rows of one sample list.
func (e *edit) listRows(ctx context.Context, name string, sets []ListRows) error {
	base := e.change.Base
	l, err := e.list(ctx, name)
	if err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("it is gone: %w", catalog.ErrConflict)
	}
	fresh := l.Added == e.info.Number
	if l.Added > base && !fresh {
		return later("its definition", "", l.Added, base)
	}
	var ids []string
	for _, r := range sets {
		ids = append(ids, r.Segment)
	}
	segments, err := e.under(ctx, ids)
	if err != nil {
		return err
	}
	before := make([]bitmap.Ref, len(segments))
	if !fresh {
		if before, err = e.base.ListedRows(ctx, name, segments...); err != nil {
			return err
		}
	}
	for i, r := range sets {
		if before[i].Since > base {
			return later("rows of segment", r.Segment, before[i].Since, base)
		}
		if err := r.Rows.Fits(r.Segment, segments[i].Rows); err != nil {
			return err
		}
		// The empty set too: an entry says since when, so that no compaction brings the rows before back.
		r.Rows.Since = e.info.Number
		if err := e.setOf(r.Segment, catalog.ListRowsPrefix(name), bitmap.AppendEntry(nil, r.Rows)); err != nil {
			return err
		}
	}
	return nil
}
