package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Sample lists, and their rows.

var changeLists = operation{
	of:        "sample lists",
	asked:     func(c *Change) bool { return len(c.Lists)+len(c.DropLists)+len(c.ListRows) > 0 },
	needsBase: true,
	validate: func(c *Change) error {
		var once checkOnce
		for _, l := range c.Lists {
			once.check(l.Validate(), "sample list", l.Name)
		}
		for _, l := range c.DropLists {
			once.check(checkName("sample list", l), "sample list dropped:", l)
		}
		for _, l := range c.ListRows {
			_, err := parseID(l.Segment)
			once.check(errors.Join(checkName("sample list", l.List), err), "rows of a sample list:", l.List+"\x00"+l.Segment)
		}
		return once.err
	},
	adds: func(c *Change) (_ []SegmentDescriptor, rows []RowBitmap) {
		for _, l := range c.ListRows {
			rows = append(rows, l.Rows)
		}
		return nil, rows
	},
	apply: (*edit).lists,
}

// list returns a sample list as the change leaves it, nil where there is none then.
func (e *edit) list(ctx context.Context, name string) (*SampleList, error) {
	if l, ok := e.listed[name]; ok {
		return l, nil
	}
	return e.base.findList(ctx, name)
}

// lists drops and defines sample lists, and sets their rows.
func (e *edit) lists(ctx context.Context, c *Change) error {
	e.listed = map[string]*SampleList{}
	for _, name := range c.DropLists {
		l, err := e.base.SampleList(ctx, name)
		if err != nil {
			return err
		}
		if l.Added > c.Base {
			return later("sample list", name, l.Added, c.Base)
		}
		prefix := listRowsPrefix(name)
		err = e.base.between(ctx, prefix, prefixEnd(prefix), func(key, _ []byte) string {
			e.listing = append(e.listing, entry{slices.Clone(key), nil})
			return ""
		})
		if err != nil {
			return err
		}
		e.listing = append(e.listing, entry{listKey(name), nil})
		e.listed[name] = nil
		e.m.lists--
	}
	for _, l := range c.Lists {
		there, err := e.list(ctx, l.Name)
		if err != nil {
			return err
		}
		if there != nil {
			return taken("sample list", l.Name, there.Added, c.Base)
		}
		l.Added = e.info.Number
		e.listed[l.Name] = &l
		e.m.lists++
		e.listing = append(e.listing, entry{listKey(l.Name), appendList(nil, l)})
	}
	byList := map[string][]ListRows{}
	var names []string
	for _, r := range c.ListRows {
		if byList[r.List] == nil {
			names = append(names, r.List)
		}
		byList[r.List] = append(byList[r.List], r)
	}
	for _, name := range names {
		if err := e.listRows(ctx, c, name, byList[name]); err != nil {
			return fmt.Errorf("sample list %s: %w", name, err)
		}
	}
	return nil
}

func (e *edit) listRows(ctx context.Context, c *Change, name string, sets []ListRows) error {
	l, err := e.list(ctx, name)
	if err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("it is gone: %w", ErrConflict)
	}
	fresh := l.Added == e.info.Number
	if l.Added > c.Base && !fresh {
		return later("its definition", "", l.Added, c.Base)
	}
	var ids []string
	for _, r := range sets {
		ids = append(ids, r.Segment)
	}
	under, err := e.under(ctx, c, ids)
	if err != nil {
		return err
	}
	var segments []SegmentDescriptor
	for _, i := range ids {
		segments = append(segments, under[i])
	}
	before := make([]RowBitmap, len(segments))
	if !fresh {
		if before, err = e.base.ListedRows(ctx, name, segments...); err != nil {
			return err
		}
	}
	for i, r := range sets {
		if before[i].Since > c.Base {
			return later("rows of segment", r.Segment, before[i].Since, c.Base)
		}
		if err := r.Rows.fits(r.Segment, segments[i].Rows); err != nil {
			return err
		}
		segment, err := parseID(r.Segment)
		if err != nil {
			return err
		}
		// The empty set too: an entry says since when, so that no compaction brings the rows before back.
		r.Rows.Since = e.info.Number
		e.listing = append(e.listing, entry{append(listRowsPrefix(name), segment[:]...), appendSet(nil, r.Rows)})
	}
	return nil
}
