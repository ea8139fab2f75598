package source

import (
	"context"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"golang.org/x/sync/errgroup"
)

// An inputSet is all files that are read together, as one dump. Formats whose files say nothing of their types learn them from the values of all files.
type inputSet struct {
	mapping *Mapping
	ddl     *tableDDL                // nil: none given
	known   func() []storage.Feature // the features of the table, see Options.Known; nil: none
	inputs  []input
	column.ReadOptions
}

// files returns the files in a format, empty: in any. Streams, which can be read once, are none.
func (d *inputSet) files(format string) []input {
	return slices.DeleteFunc(slices.Clone(d.inputs), func(in input) bool {
		return in.size < 0 || format != "" && in.format != format
	})
}

// learn calls read with each of files, Threads at once, and returns ctx's error when that ends. A file that cannot be read to its
// end counts up to there: its error comes again when its rows are read.
func (d *inputSet) learn(ctx context.Context, files []input, read func(ctx context.Context, i int, in input)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(d.Threads)
	for i, in := range files {
		g.Go(func() error {
			read(ctx, i, in)
			return ctx.Err()
		})
	}
	return g.Wait()
}

// features returns the features of the table that the dump is for.
func (d *inputSet) features() []storage.Feature {
	if d.known == nil {
		return nil
	}
	return d.known()
}

// column.TimestampUnit returns the unit that the mapping file or the table says for the timestamps of a path, empty where neither does.
func (d *inputSet) timestampUnit(path string) string {
	name := path
	if cm := d.mapping.Columns[path]; cm != nil {
		if cm.Timestamp != "" {
			return column.TimestampUnit(cm.Timestamp)
		}
		if cm.Rename != "" {
			name = cm.Rename
		}
	}
	known := d.features()
	i := slices.IndexFunc(known, func(f storage.Feature) bool {
		return column.TimestampUnit(f.Logical) != "" && (f.Name == name || f.OriginColumn == path && f.OriginKey != "" && f.Name != path)
	})
	if i < 0 {
		return ""
	}
	return column.TimestampUnit(known[i].Logical)
}

// momentLeaves returns the timestamps of any unit that are not dropped.
func (d *inputSet) momentLeaves(columns []*column.Type) []momentLeaf {
	var out []momentLeaf
	var walk func(n *column.Type, path string, column int)
	walk = func(n *column.Type, path string, col int) {
		if d.mapping.dropped(path) {
			return
		}
		if n.AnyUnit {
			out = append(out, momentLeaf{path, n, col})
		}
		for _, c := range n.Children {
			if n.Shape == column.Struct {
				walk(c, column.Path(path, c.Name), col)
			} else {
				walk(c, path, col)
			}
		}
	}
	for i, n := range columns {
		walk(n, n.Name, i)
	}
	return out
}
