package source

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

const textName = "text"

var textFormat = &format{
	name:     textName,
	suffixes: []string{".txt", ".csv", ".tsv", ".text", ".tbl", ".psv"},
	guess: func(d *inputSet, _ []byte, _ bool) bool {
		return d.ddl != nil || len(d.mapping.Text.Columns) > 0 || d.mapping.Text.Header
	},
	begin: func(d *inputSet) opener { return (&textDump{d: d}).open },
}

func (t *textDump) open(ctx context.Context, in input) (column.Reader, error) {
	lines, err := openLines(in.path, in.stream, t.d.mapping.Text.charset, &t.d.Limits)
	if err != nil {
		return nil, err
	}
	typeOf, err := t.headerTypes(ctx, in.stream != nil)
	if err == nil {
		var r *textReader
		if r, err = t.openLines(lines, typeOf); err == nil {
			return r, nil
		}
	}
	lines.close()
	return nil, err
}

// openLines takes the schema from the DDL, or from the mapping's list of columns, or from the header line, whose columns are of
// the types that typeOf gives.
func (t *textDump) openLines(lines *lineReader, typeOf func(name string) (*column.Type, error)) (*textReader, error) {
	d := t.d
	layout := d.mapping.Text
	var nodes []*column.Type
	if d.ddl != nil {
		if d.ddl.storedAs != "" {
			return nil, column.Refuse("", "the DDL describes files stored as %s, this one is text", d.ddl.storedAs)
		}
		if d.ddl.doubt != "" && d.mapping.Text.Delimiter == "" {
			return nil, column.Refuse("", "%s", d.ddl.doubt)
		}
		layout = d.ddl.text.overlay(&d.mapping.Text)
		layout.Extra = cmp.Or(layout.Extra, extraIgnore)
		for _, n := range d.ddl.columns {
			nodes = append(nodes, n.Clone())
		}
	}
	for _, c := range d.mapping.Text.Columns {
		if d.ddl != nil {
			return nil, fmt.Errorf("both --ddl and text.columns of the mapping file give a schema: drop one")
		}
		n, err := parseHiveType(c.Type, d.Limits.Depth)
		if err != nil {
			return nil, err
		}
		n.Name = c.Name
		nodes = append(nodes, n)
	}
	return newTextReader(lines, nodes, &layout, typeOf, &d.ReadOptions)
}

// headerTypes returns what gives the types of columns that a header names: the mapping file, else what the values of all files
// show where that is asked for, else string.
func (t *textDump) headerTypes(ctx context.Context, stream bool) (func(name string) (*column.Type, error), error) {
	d := t.d
	given := func(name string) (*column.Type, error) {
		if cm := d.mapping.Columns[name]; cm != nil && cm.Type != "" {
			return parseHiveType(cm.Type, d.Limits.Depth)
		}
		return &column.Type{Nullable: true, Shape: column.String}, nil
	}
	if !d.mapping.Text.Infer {
		return given, nil
	}
	if stream {
		return nil, column.Refuse("", "text.infer reads a file twice, and a stream can be read once: give its columns types in the mapping file")
	}
	shown, err := t.types(ctx, given)
	if err != nil {
		return nil, err
	}
	return func(name string) (*column.Type, error) {
		cm := d.mapping.Columns[name]
		if cm != nil && (cm.Type != "" || cm.Hash || cm.Kind == vector.String || cm.Kind == vector.Bytes) {
			return given(name)
		}
		return shown(name), nil
	}, nil
}
