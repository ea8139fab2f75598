package text

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

const name = "text"

// Format is that of delimited text.
var Format = &input.Format{
	Name:     name,
	Suffixes: []string{".txt", ".csv", ".tsv", ".text", ".tbl", ".psv"},
	Guess: func(d *input.Set, _ []byte, _ bool) bool {
		return d.Ddl != nil || len(d.Mapping.Text.Columns) > 0 || d.Mapping.Text.Header
	},
	Begin: func(d *input.Set) input.Opener { return (&inference{d: d}).open },
}

func (t *inference) open(ctx context.Context, in input.File) (column.Reader, error) {
	lines, err := t.lines(ctx, in)
	if err != nil {
		return nil, err
	}
	typeOf, err := t.headerTypes(ctx, in.Stream != nil)
	if err == nil {
		var r *Reader
		if r, err = t.openLines(lines, typeOf); err == nil {
			return r, nil
		}
	}
	lines.Close()
	return nil, err
}

// lines opens the lines of an input.
func (t *inference) lines(ctx context.Context, in input.File) (*lines.Reader, error) {
	src, err := in.Read(ctx)
	if err != nil {
		return nil, err
	}
	return lines.Open(in.Path, src, t.d.Mapping.Text.Charset, &t.d.Limits)
}

// openLines takes the schema from the DDL, or from the mapping's list of columns, or from the header line, whose
// columns are of the types that typeOf gives.
func (t *inference) openLines(in *lines.Reader, typeOf typeOf) (*Reader, error) {
	d := t.d
	layout := d.Mapping.Text
	var nodes []*column.Type
	if d.Ddl != nil {
		if d.Ddl.StoredAs != "" {
			return nil, column.Refuse("", "the DDL describes files stored as %s, this one is text", d.Ddl.StoredAs)
		}
		if d.Ddl.Doubt != "" && d.Mapping.Text.Delimiter == "" {
			return nil, column.Refuse("", "%s", d.Ddl.Doubt)
		}
		layout = d.Ddl.Text.Overlay(&d.Mapping.Text)
		layout.Extra = cmp.Or(layout.Extra, lines.ExtraIgnore)
		for _, n := range d.Ddl.Columns {
			nodes = append(nodes, n.Clone())
		}
	}
	for _, c := range d.Mapping.Text.Columns {
		if d.Ddl != nil {
			return nil, fmt.Errorf("both --ddl and text.columns of the mapping file give a schema: drop one")
		}
		n, err := hive.ParseType(c.Type, d.Limits.Depth)
		if err != nil {
			return nil, err
		}
		n.Name = c.Name
		nodes = append(nodes, n)
	}
	return NewReader(in, nodes, &layout, typeOf, &d.ReadOptions)
}

// headerTypes returns what gives the types of columns that a header names: the mapping file, else what the values of
// all files show where that is asked for, else string.
func (t *inference) headerTypes(ctx context.Context, stream bool) (typeOf, error) {
	d := t.d
	given := func(name string) (*column.Type, error) {
		if cm := d.Mapping.Columns[name]; cm != nil && cm.Type != "" {
			return hive.ParseType(cm.Type, d.Limits.Depth)
		}
		return &column.Type{Shape: column.String}, nil
	}
	if !d.Mapping.Text.Infer {
		return given, nil
	}
	if stream {
		return nil, column.Refuse("", "text.infer reads a file twice, and a stream can be read once: give its "+
			"columns types in the mapping file")
	}
	shown, err := t.types(ctx, given)
	if err != nil {
		return nil, err
	}
	return func(name string) (*column.Type, error) {
		cm := d.Mapping.Columns[name]
		if cm != nil && (cm.Type != "" || cm.Hash || cm.Kind == vector.String || cm.Kind == vector.Bytes) {
			return given(name)
		}
		return shown(name), nil
	}, nil
}
