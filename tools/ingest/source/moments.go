package source

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/storage"
	"golang.org/x/sync/errgroup"
)

// A momentDump chooses the units of timestamps whose source has seconds and nanoseconds, and no unit of its own: those of text,
// JSON, Parquet's INT96 and ORC. Nanoseconds in 64 bits end in 2262, and 9999-12-31 is a common word for "never".
//
//	the mapping file says it          "timestamp": "us"
//	else the table has the feature    its unit
//	else all values of the dump       nanoseconds; microseconds where a value is out of their range and none is finer
//
// The values are read once more for that, of those columns alone, before any is read for its row.
type momentDump struct {
	d *discovery

	// mu guards the rest, and is held while files are read.
	mu    sync.Mutex
	found map[string]momentRange // by path; nil: not yet
}

// A momentLeaf is a part of a column whose timestamps are of any unit.
type momentLeaf struct {
	path   string
	node   *node
	column int // that it is in
}

// momentLeaves returns the timestamps of any unit that are not dropped.
func (m *Mapping) momentLeaves(columns []*node) []momentLeaf {
	var out []momentLeaf
	var walk func(n *node, path string, column int)
	walk = func(n *node, path string, column int) {
		if cm := m.Columns[path]; cm != nil && cm.Drop {
			return
		}
		if n.anyUnit {
			out = append(out, momentLeaf{path, n, column})
		}
		for _, c := range n.children {
			if n.shape == shapeStruct {
				walk(c, columnPath(path, c.name), column)
			} else {
				walk(c, path, column)
			}
		}
	}
	for i, n := range columns {
		walk(n, n.name, i)
	}
	return out
}

// choose sets the units of the columns of a reader. once: what it reads can be read once only, so that its values say nothing.
func (d *momentDump) choose(ctx context.Context, r batchReader, once bool) error {
	m := d.d.mapping
	var open []momentLeaf
	for _, l := range m.momentLeaves(r.columns()) {
		if unit := d.given(l.path); unit != "" {
			l.node.logical = withUnit(l.node.logical, unit)
		} else {
			open = append(open, l)
		}
	}
	if len(open) == 0 || once {
		return nil
	}
	found, err := d.learn(ctx)
	if err != nil {
		return err
	}
	for _, l := range open {
		all := found[l.path]
		l.node.logical, l.node.noUnit = withUnit(l.node.logical, all.unit()), all.none()
	}
	return nil
}

// given returns the unit that the mapping file or the table says for a path, empty where neither does.
func (d *momentDump) given(path string) string {
	name := path
	if cm := d.d.mapping.Columns[path]; cm != nil {
		if cm.Timestamp != "" {
			return timestampUnit(cm.Timestamp)
		}
		if cm.Rename != "" {
			name = cm.Rename
		}
	}
	if d.d.opts.Known == nil {
		return ""
	}
	known := d.d.opts.Known()
	i := slices.IndexFunc(known, func(f storage.Feature) bool {
		return timestampUnit(f.Logical) != "" && (f.Name == name || f.OriginColumn == path && f.OriginKey != "" && f.Name != path)
	})
	if i < 0 {
		return ""
	}
	return timestampUnit(known[i].Logical)
}

// learn returns what all files of the dump have.
func (d *momentDump) learn(ctx context.Context) (map[string]momentRange, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found != nil {
		return d.found, nil
	}
	var mu sync.Mutex // guards found
	found := map[string]momentRange{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(d.d.opts.threads())
	for i := range d.d.files {
		f := &d.d.files[i]
		if f.Size < 0 {
			continue
		}
		g.Go(func() error {
			// A file that cannot be read to its end says what it can: whoever reads its rows meets the error again.
			leaves, _ := d.file(gctx, f)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range leaves {
				all := found[l.path]
				all.merge(*l.node.seen)
				found[l.path] = all
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	d.found = maps.Clone(found)
	return d.found, nil
}

// file reads the timestamps of a file that have no unit yet, for what they are.
func (d *momentDump) file(ctx context.Context, f *File) (leaves []momentLeaf, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = recovered(p)
		}
	}()
	if f.Format == formatORC {
		return orcRanges(f.Path)
	}
	r, err := d.d.reader(ctx, f, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	leaves = slices.DeleteFunc(d.d.mapping.momentLeaves(r.columns()), func(l momentLeaf) bool { return d.given(l.path) != "" })
	for _, l := range leaves {
		l.node.seen = &momentRange{}
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	if c, ok := r.(columnChooser); ok {
		wanted := make([]bool, len(r.columns()))
		for _, l := range leaves {
			wanted[l.column] = true
		}
		for i, n := range r.columns() {
			if wanted[i] {
				n.dropAround(leaves)
			}
		}
		if err := c.want(wanted); err != nil {
			return leaves, err
		}
	}
	for {
		if _, err := r.next(ctx); err != nil {
			if err == io.EOF {
				err = nil
			}
			return leaves, err
		}
	}
}

// dropAround marks as unread what is in the structs of n and holds none of the leaves, and reports whether n holds one.
func (n *node) dropAround(leaves []momentLeaf) bool {
	holds := slices.ContainsFunc(leaves, func(l momentLeaf) bool { return l.node == n })
	for _, c := range n.children {
		if c.dropAround(leaves) {
			holds = true
		} else if n.shape == shapeStruct {
			c.drop()
		}
	}
	return holds
}
