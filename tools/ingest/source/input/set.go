package input

import (
	"context"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
	"golang.org/x/sync/errgroup"
)

// A Set is all files that are read together, as one dump. Formats whose files say nothing of their types infer them
// from the values of all files.
type Set struct {
	Mapping *mapping.Mapping
	Ddl     *hive.Table              // nil: none given
	Known   func() []catalog.Feature // the features of the table, see Options.Known; nil: none
	// Inferred is told, once for each format and each stream, before any of its rows is read, what types its columns
	// have that their values give. nil: nobody asks.
	Inferred func(Inferred)
	Inputs   []File
	LeftOut  func(path string) bool // see Options.LeftOut; nil: none is
	Lenient  bool                   // files that are bad are left out; else the first one ends all
	column.ReadOptions
}

// Fault returns the error of a file that is to be opened, of those by path that the values of all files have shown. If
// the Set is not lenient, it is that of the first file which has one: hours may pass before that is opened.
func (d *Set) Fault(faults map[string]error, path string) error {
	if !d.Lenient && len(faults) > 0 {
		path = slices.Min(slices.Collect(maps.Keys(faults)))
	}
	return faults[path]
}

// An Inferred says what types columns have that nothing but their values gives. Its JSON keys are stable.
type Inferred struct {
	Format string `json:"format"`
	Rows   int64  `json:"rows"`   // whose values were looked at
	Files  int    `json:"files"`  // that they are in
	Sample bool   `json:"sample"` // a stream's first rows alone
	// Layout is what was found between columns, and how they are quoted. Empty: it was given, or files differ.
	Layout  string           `json:"layout,omitempty"`
	Columns []InferredColumn `json:"columns"`
}

// An InferredColumn is a column of an Inferred.
type InferredColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Because is the value, and its place, for which the column is a string and nothing narrower.
	Because string `json:"because,omitempty"`
	// Hint says what to do about it, where that is known; or about a string whose values look like lists, or a float64
	// of which every value is whole.
	Hint  string `json:"hint,omitempty"`
	Fits  bool   `json:"-"` // what Hint makes of the column goes with the table
	First string `json:"-"` // the first value of a string, and its place
	// Leaves: without the values that are text, which are left out with the bad rows, the type goes with the table.
	Leaves bool `json:"-"`
}

// Files returns the files in a format, empty: in any. Streams, which can be read once, are none, nor are files that are
// left out.
func (d *Set) Files(format string) []File {
	return slices.DeleteFunc(slices.Clone(d.Inputs), func(in File) bool {
		return in.Size < 0 || format != "" && in.Format != format || d.LeftOut != nil && d.LeftOut(in.Path)
	})
}

// Scan calls read with each of files, Threads at once, and returns ctx's error when that ends. A file that cannot be
// read to its end counts up to there: its error comes again when its rows are read.
func (d *Set) Scan(ctx context.Context, files []File, read func(ctx context.Context, i int, in File)) error {
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

// Features returns the features of the table that the dump is for.
func (d *Set) Features() []catalog.Feature {
	if d.Known == nil {
		return nil
	}
	return d.Known()
}

// TimestampUnit returns the unit that the mapping file or the table says for the timestamps of a path, empty where
// neither does.
func (d *Set) TimestampUnit(path string) string {
	name := path
	if cm := d.Mapping.Columns[path]; cm != nil {
		if cm.Timestamp != "" {
			return column.TimestampUnit(cm.Timestamp)
		}
		if cm.Rename != "" {
			name = cm.Rename
		}
	}
	known := d.Features()
	i := slices.IndexFunc(known, func(f catalog.Feature) bool {
		return column.TimestampUnit(f.Logical) != "" && (f.Name == name || f.OriginColumn == path &&
			f.OriginKey != "" && f.Name != path)
	})
	if i < 0 {
		return ""
	}
	return column.TimestampUnit(known[i].Logical)
}

// TimestampLeaves returns the timestamps of any unit that are not dropped.
func (d *Set) TimestampLeaves(columns []*column.Type) []TimestampLeaf {
	var out []TimestampLeaf
	var walk func(n *column.Type, path string, column int)
	walk = func(n *column.Type, path string, col int) {
		if d.Mapping.Dropped(path) {
			return
		}
		if n.AnyUnit {
			out = append(out, TimestampLeaf{path, n, col})
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
