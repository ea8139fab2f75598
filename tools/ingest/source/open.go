package source

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/dsistore/dsistore/format/vector"
)

// open opens the reader of a file's format, whose timestamps have their units. stream is what stdin or a pipe gives; nil for files.
func (d *discovery) open(ctx context.Context, f *File, stream *hashingReader) (batchReader, error) {
	r, err := d.reader(ctx, f, stream)
	if err != nil {
		return nil, err
	}
	if err := d.moments.choose(ctx, r, stream != nil || f.records != nil); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// reader opens the reader of a file's format.
func (d *discovery) reader(ctx context.Context, f *File, stream *hashingReader) (batchReader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch f.Format {
	case formatParquet:
		return orNil(openParquet(f.Path, d.opts))
	case formatORC:
		return openORC(ctx, f.Path, d.mapping, d.opts)
	case formatArrow:
		if f.records != nil {
			return orNil(newRecordReader(ctx, f.records, d.opts))
		}
		if stream != nil {
			return orNil(newArrowReader(stream, stream, d.opts))
		}
		in, err := os.Open(f.Path)
		if err != nil {
			return nil, err
		}
		return orNil(newArrowReader(in, in, d.opts))
	case formatText, formatJSONL:
		set := charsetUTF8
		if f.Format == formatText {
			set = d.mapping.Text.charset
		}
		lines, err := openLines(f.Path, stream, set, &d.opts.Limits)
		if err != nil {
			return nil, err
		}
		var r batchReader
		switch {
		case f.Format == formatText:
			var typeOf func(string) (*node, error)
			if typeOf, err = d.textTypes(ctx, stream != nil); err == nil {
				r, err = orNil(d.openText(lines, typeOf))
			}
		case stream != nil:
			r, err = orNil(newJSONStream(ctx, lines, d.mapping, d.opts))
		default:
			var s *jsonSchema
			if s, err = d.json.types(ctx, f.Path); err == nil {
				r, err = orNil(newJSONReader(lines, s, d.opts))
			}
		}
		if err != nil {
			lines.close()
		}
		return r, err
	}
	return nil, fmt.Errorf("format %q cannot be opened", f.Format)
}

// openText takes the schema from the DDL, or from the mapping's list of columns, or from the header line, whose columns are of
// the types that typeOf gives.
func (d *discovery) openText(lines *lineReader, typeOf func(name string) (*node, error)) (*textReader, error) {
	layout := d.mapping.Text
	var nodes []*node
	if d.ddl != nil {
		if d.ddl.storedAs != "" {
			return nil, refuse("", "the DDL describes files stored as %s, this one is text", d.ddl.storedAs)
		}
		if d.ddl.doubt != "" && d.mapping.Text.Delimiter == "" {
			return nil, refuse("", "%s", d.ddl.doubt)
		}
		layout = d.ddl.text.overlay(&d.mapping.Text)
		layout.Extra = cmp.Or(layout.Extra, extraIgnore)
		for _, n := range d.ddl.columns {
			nodes = append(nodes, n.clone())
		}
	}
	for _, c := range d.mapping.Text.Columns {
		if d.ddl != nil {
			return nil, fmt.Errorf("both --ddl and text.columns of the mapping file give a schema: drop one")
		}
		n, err := parseHiveType(c.Type, d.opts.Limits.Depth)
		if err != nil {
			return nil, err
		}
		n.name = c.Name
		nodes = append(nodes, n)
	}
	return newTextReader(lines, nodes, &layout, typeOf, d.opts)
}

// textTypes returns what gives the types of columns that a header names: the mapping file, else what the values of all files
// show where that is asked for, else string.
func (d *discovery) textTypes(ctx context.Context, stream bool) (func(name string) (*node, error), error) {
	given := func(name string) (*node, error) {
		if cm := d.mapping.Columns[name]; cm != nil && cm.Type != "" {
			return parseHiveType(cm.Type, d.opts.Limits.Depth)
		}
		return &node{nullable: true, shape: shapeString}, nil
	}
	if !d.mapping.Text.Infer {
		return given, nil
	}
	if stream {
		return nil, refuse("", "text.infer reads a file twice, and a stream can be read once: give its columns types in the mapping file")
	}
	shown, err := d.text.types(ctx, given)
	if err != nil {
		return nil, err
	}
	return func(name string) (*node, error) {
		cm := d.mapping.Columns[name]
		if cm != nil && (cm.Type != "" || cm.Hash || cm.Kind == vector.String || cm.Kind == vector.Bytes) {
			return given(name)
		}
		return shown(name), nil
	}, nil
}

// overlay returns t with what o sets in place of its own.
func (t *TextOptions) overlay(o *TextOptions) TextOptions {
	out := *t
	for _, f := range []struct{ to, from *string }{
		{&out.Delimiter, &o.Delimiter}, {&out.Items, &o.Items}, {&out.MapKeys, &o.MapKeys}, {&out.Quote, &o.Quote}, {&out.Escape, &o.Escape},
		{&out.Extra, &o.Extra},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	if o.HasNull {
		out.Null, out.HasNull = o.Null, true
	}
	out.CSV, out.EmptyText = out.CSV || o.CSV, out.EmptyText && !o.HasNull
	out.Header = out.Header || o.Header
	out.SkipLines = max(out.SkipLines, o.SkipLines)
	out.charset = o.charset
	return out
}

// orNil keeps a nil pointer from becoming a batchReader that is not nil.
func orNil[R interface {
	comparable
	batchReader
}](r R, err error) (batchReader, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
