package source

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// A timestampUnits chooses the units of timestamps whose source has seconds and nanoseconds, and no unit of its own:
// those of text, JSON, Parquet's INT96 and ORC. Nanoseconds in 64 bits end in 2262, and 9999-12-31 is a common word for
// "never".
//
//	the mapping file says it          "timestamp": "us"
//	else the table has the feature    its unit
//	else all values of the dump       nanoseconds; microseconds where a value is out of their range and none is finer
//
// The values are read once more for that, of those columns alone, before any is read for its row.
type timestampUnits struct {
	d *discovery

	// mu guards the rest, and is held while files are read.
	mu    sync.Mutex
	found map[string]column.TimestampRange // by path; nil: not yet
}

// choose sets the units of the columns of a reader. once: what it reads can be read once only, so that its values say
// nothing.
func (d *timestampUnits) choose(ctx context.Context, r column.Reader, once bool) error {
	var open []input.TimestampLeaf
	for _, l := range d.d.TimestampLeaves(r.Columns()) {
		if unit := d.d.TimestampUnit(l.Path); unit != "" {
			l.Node.Logical = column.WithUnit(l.Node.Logical, unit)
		} else {
			open = append(open, l)
		}
	}
	if len(open) == 0 || once {
		return nil
	}
	found, err := d.scan(ctx)
	if err != nil {
		return err
	}
	for _, l := range open {
		all := found[l.Path]
		l.Node.Logical, l.Node.NoUnit = column.WithUnit(l.Node.Logical, all.Unit()), all.None()
	}
	return nil
}

// scan returns what all files of the dump have.
func (d *timestampUnits) scan(ctx context.Context) (map[string]column.TimestampRange, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found != nil {
		return d.found, nil
	}
	var mu sync.Mutex // guards found
	found := map[string]column.TimestampRange{}
	err := d.d.Scan(ctx, d.d.Set.Files(""), func(ctx context.Context, _ int, in input.File) {
		leaves, _ := d.file(ctx, in)
		mu.Lock()
		defer mu.Unlock()
		for _, l := range leaves {
			all := found[l.Path]
			all.Merge(*l.Node.Seen)
			found[l.Path] = all
		}
	})
	if err != nil {
		return nil, err
	}
	d.found = found
	return found, nil
}

// file reads the timestamps of a file that have no unit yet, for what they are.
func (d *timestampUnits) file(ctx context.Context, in input.File) (leaves []input.TimestampLeaf, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = column.Recovered(p)
		}
	}()
	if ranges := formatNamed(in.Format).Ranges; ranges != nil {
		return ranges(ctx, &d.d.Set, in)
	}
	r, err := d.d.reader(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	leaves = slices.DeleteFunc(d.d.TimestampLeaves(r.Columns()),
		func(l input.TimestampLeaf) bool { return d.d.TimestampUnit(l.Path) != "" })
	for _, l := range leaves {
		l.Node.Seen = &column.TimestampRange{}
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	if c, ok := r.(column.Projector); ok {
		wanted := make([]bool, len(r.Columns()))
		for _, l := range leaves {
			wanted[l.Column] = true
		}
		for i, n := range r.Columns() {
			if wanted[i] {
				dropAround(n, leaves)
			}
		}
		if err := c.Project(wanted); err != nil {
			return leaves, err
		}
	}
	for {
		if _, err := r.Next(ctx); err != nil {
			if err == io.EOF {
				err = nil
			}
			return leaves, err
		}
	}
}

// dropAround marks as unread what is in the structs of n and holds none of the leaves, and reports whether n holds one.
func dropAround(n *column.Type, leaves []input.TimestampLeaf) bool {
	holds := slices.ContainsFunc(leaves, func(l input.TimestampLeaf) bool { return l.Node == n })
	for _, c := range n.Children {
		if dropAround(c, leaves) {
			holds = true
		} else if n.Shape == column.Struct {
			c.Drop()
		}
	}
	return holds
}
