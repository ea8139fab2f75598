package text

import (
	"cmp"
	"context"
	"fmt"

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
	r, err := t.openLines(ctx, lines, in)
	if err != nil {
		lines.Close()
	}
	return input.Opened(r, err)
}

// lines opens the lines of an input.
func (t *inference) lines(ctx context.Context, in input.File) (*lines.Reader, error) {
	src, err := in.Read(ctx)
	if err != nil {
		return nil, err
	}
	set := t.d.Mapping.Text.Charset
	if set == nil && t.d.Ddl != nil {
		set = t.d.Ddl.Text.Charset
	}
	return lines.Open(in.Path, src, set, &t.d.Limits)
}

// finds reports whether the layout of texts is found in them, at least in part.
func (t *inference) finds() bool { return t.d.Ddl == nil && t.d.Mapping.Text.ToFind() }

// layout returns the layout of a text, of which nothing has been read.
func (t *inference) layout(in *lines.Reader, path string) (lines.Layout, error) {
	d := t.d
	switch {
	case t.finds():
		return find(in, path, &d.Mapping.Text)
	case d.Ddl == nil:
		return d.Mapping.Text, nil
	case d.Ddl.StoredAs != "":
		return lines.Layout{}, column.Refuse("", "the DDL describes files stored as %s, this one is text",
			d.Ddl.StoredAs)
	case d.Ddl.Doubt != "" && d.Mapping.Text.Delimiter == "":
		return lines.Layout{}, column.Refuse("", "%s", d.Ddl.Doubt)
	}
	layout := d.Ddl.Text.Overlay(&d.Mapping.Text)
	layout.Extra = cmp.Or(layout.Extra, lines.ExtraIgnore)
	return layout, nil
}

// openLines opens the reader of an input's lines.
func (t *inference) openLines(ctx context.Context, in *lines.Reader, file input.File) (*Reader, error) {
	layout, err := t.layout(in, file.Path)
	if err != nil {
		return nil, err
	}
	infers := t.d.Mapping.Text.Infer || t.finds() && !t.d.Mapping.Text.HasInfer
	switch {
	case !infers:
		return t.reader(in, &layout, t.givenType)
	case file.Stream == nil:
		typeOf, err := t.types(ctx, file.Path, t.givenType)
		if err != nil {
			return nil, err
		}
		return t.reader(in, &layout, typeOf)
	}
	sample, whole, _ := in.Sample(sampleBytes) // an error comes again with its line
	shown, err := t.values(ctx, sample, file.Path, &layout, t.givenType)
	if err != nil {
		return nil, err
	}
	t.tell(shown, !whole)
	r, err := t.reader(in, &layout, t.typeOf(shown, t.givenType))
	if err == nil {
		r.sampled = func(name string) bool { return !t.given(name) }
	}
	return r, err
}

// reader returns the reader of lines. It takes the schema from the DDL, or from the mapping's list of columns, or from
// the header line; typeOf gives the types of columns that have none there.
func (t *inference) reader(in *lines.Reader, layout *lines.Layout, typeOf typeOf) (*Reader, error) {
	d := t.d
	var nodes []*column.Type
	if d.Ddl != nil {
		for _, n := range d.Ddl.Columns {
			nodes = append(nodes, n.Clone())
		}
	}
	for _, c := range d.Mapping.Text.Columns {
		if d.Ddl != nil {
			return nil, fmt.Errorf("both --ddl and text.columns of the mapping file give a schema: drop one")
		}
		n, err := typeOf(c.Name)
		if c.Type != "" {
			n, err = hive.ParseType(c.Type, d.Limits.Depth)
		}
		if err != nil {
			return nil, err
		}
		n.Name = c.Name
		nodes = append(nodes, n)
	}
	r, err := NewReader(in, nodes, layout, typeOf, &d.ReadOptions)
	if err != nil {
		return nil, err
	}
	for _, n := range r.Nodes {
		if err := d.Mapping.SetTimeFormat(n.Name, n); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// givenType returns the type that the mapping file gives a column, else a string.
func (t *inference) givenType(name string) (*column.Type, error) {
	if cm := t.d.Mapping.Columns[name]; cm != nil && cm.Type != "" {
		return hive.ParseType(cm.Type, t.d.Limits.Depth)
	}
	return &column.Type{Shape: column.String}, nil
}
