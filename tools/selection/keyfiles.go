package selection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/keytext"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// formatLines is text with a key a line; .csv and .tsv without it may have several columns, of which one is named as
// the feature.
const formatLines = "lines"

// once reports whether some of the keys can be read only once.
func (k *KeySource) once() bool {
	return slices.ContainsFunc(k.Paths, func(p string) bool {
		if p == "-" {
			return true
		}
		info, err := os.Stat(p)
		return err == nil && info.Mode()&fs.ModeNamedPipe != 0
	})
}

// A KeyVisitor takes keys as a plain column, borrowed for the call. Its type compares with the feature's by value.
// place says, for messages, where a row of the column comes from.
type KeyVisitor func(c *vector.Column, place func(row int) string) error

// Each calls visit with all keys, which are of feature f.
func (k *KeySource) Each(ctx context.Context, f catalog.Feature, visit KeyVisitor) error {
	for from := 0; from < len(k.Given); from += linesAtOnce {
		c := vector.NewColumn(f.Type)
		for i, key := range k.Given[from:min(from+linesAtOnce, len(k.Given))] {
			if err := appendKey(c, f, []byte(key)); err != nil {
				return fmt.Errorf("keys: key %d: %w", from+i, err)
			}
		}
		if err := errors.Join(ctx.Err(), visit(c,
			func(row int) string { return fmt.Sprintf("key %d", from+row) })); err != nil {
			return err
		}
	}
	for _, path := range k.Paths {
		var err error
		if k.hasLines(path) {
			err = k.eachLine(ctx, path, f, visit)
		} else {
			err = k.eachRow(ctx, path, f, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasLines reports whether a path holds text with a key a line.
func (k *KeySource) hasLines(path string) bool {
	if k.Format != "" && k.Format != "auto" {
		return k.Format == formatLines
	}
	return slices.Contains([]string{".txt", ".csv", ".tsv"}, strings.ToLower(filepath.Ext(path)))
}

// sameKind returns an error when keys of a type and logical type are not those of the feature: the rules of ingest, for
// keys.
func sameKind(f catalog.Feature, t vector.Type, logical string) error {
	if f.Logical != logical {
		return fmt.Errorf("%q is %s in the table and %s in the file: they do not mix", f.Name,
			source.TypeName(f.Type, f.Logical), source.TypeName(t, logical))
	}
	w, err := vector.Widen(f.Type, t)
	if err == nil && segment.IsLookupType(w) {
		return nil
	}
	return fmt.Errorf("%q is %v in the table and %v in the file: they do not compare exactly", f.Name, f.Type, t)
}

// eachRow is Each for a file or directory that ingest reads.
func (k *KeySource) eachRow(ctx context.Context, path string, f catalog.Feature, visit KeyVisitor) error {
	files, err := source.Discover(ctx, []string{path}, source.Options{Format: k.Format, Stdin: k.Stdin})
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	for i := range files {
		if err := eachInFile(ctx, &files[i], f, visit); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	return nil
}

func eachInFile(ctx context.Context, file *source.File, f catalog.Feature, visit KeyVisitor) (err error) {
	src, err := file.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	for {
		c, err := src.Next(ctx)
		if err == io.EOF {
			return checkHeader(file, src.Fields(), f.Name) // of a file that had no more lines
		}
		if err != nil {
			return err
		}
		err = eachInChunk(file, c, src.Fields(), f, visit)
		c.Release()
		if err != nil {
			return err
		}
	}
}

func eachInChunk(file *source.File, c *source.Chunk, fields []*source.Field, f catalog.Feature,
	visit KeyVisitor) error {
	if c.Rows == 0 {
		return nil
	}
	if err := checkHeader(file, fields, f.Name); err != nil {
		return err
	}
	column, err := keyColumn(file.Path, fields, f.Name)
	if err != nil {
		return err
	}
	place := func(row int) string {
		p := c.Place
		p.Row += int64(row)
		if p.Line > 0 {
			p.Line += int64(row)
		}
		return p.String()
	}
	at := slices.Index(c.Fields, column)
	if at < 0 || column.NoValue {
		nulls := vector.NewColumn(f.Type)
		nulls.AppendNulls(c.Rows)
		return visit(nulls, place)
	}
	if err := sameKind(f, column.Type, column.Logical); err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	return visit(c.Columns[at], place)
}

// checkHeader returns an error if the first line of a text of one column is not the feature's name: it may be a key.
func checkHeader(file *source.File, fields []*source.Field, name string) error {
	if file.Format != "text" || len(fields) != 1 || fields[0].Name == name {
		return nil
	}
	return fmt.Errorf("%s: its first line says %.100q: want %q there, or, if each line is a key, text that is not "+
		"compressed, and the format lines (--keys-format)", file.Path, fields[0].Name, name)
}

// keyColumn returns the field of the name, or the only one.
func keyColumn(path string, fields []*source.Field, name string) (*source.Field, error) {
	var names []string
	for _, x := range fields {
		if x.Name == name {
			return x, nil
		}
		names = append(names, x.Name)
	}
	if len(fields) == 1 {
		return fields[0], nil
	}
	const shown = 8
	more := ""
	if len(names) > shown {
		names, more = names[:shown], ", ..."
	}
	return nil, fmt.Errorf("%s: no column %q among %s%s", path, name, strings.Join(names, ", "), more)
}

const (
	linesAtOnce  = 4096
	lineTextSize = 1 << 20
)

// eachLine is Each for text with a key a line, or in a column. An empty line is no key.
func (k *KeySource) eachLine(ctx context.Context, path string, f catalog.Feature, visit KeyVisitor) error {
	in := k.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		defer file.Close()
		in = file
	}
	named := path
	if k.Format == formatLines {
		named = "" // whatever its name ends in, a line is a key
	}
	keys := keytext.New(in, named, f.Name)
	c, first := vector.NewColumn(f.Type), 0
	flush := func() error {
		if c.Rows == 0 {
			return nil
		}
		err := visit(c, func(row int) string { return fmt.Sprintf("%s, line %d", path, first+row) })
		c.Reset()
		return err
	}
	for {
		key, err := keys.Next()
		switch {
		case err == io.EOF:
			return flush()
		case err != nil:
			return fmt.Errorf("keys: %w", err)
		case len(key) == 0:
			return fmt.Errorf("keys: %s, line %d: it is empty, which is no key", path, keys.Line())
		}
		if err := appendKey(c, f, key); err != nil {
			return fmt.Errorf("keys: %s, line %d: %w", path, keys.Line(), err)
		}
		if c.Rows == 1 {
			first = keys.Line()
		}
		if c.Rows == linesAtOnce || len(c.Data) > lineTextSize {
			if err := errors.Join(ctx.Err(), flush()); err != nil {
				return err
			}
		}
	}
}

// appendKey appends the key that a text says. A number that the feature cannot have is no error: no row has it.
func appendKey(c *vector.Column, f catalog.Feature, key []byte) (err error) {
	switch {
	case f.Logical != "" && !c.Type.IsList():
		return fmt.Errorf("%q is %s: as text its values are not unambiguous: want a Parquet or Arrow file", f.Name,
			source.TypeName(f.Type, f.Logical))
	case c.Type.IsList():
		c.Data = append(c.Data, key...)
	case c.Type.Elem == vector.Uint64:
		var v uint64
		v, err = strconv.ParseUint(string(key), 10, 64)
		c.Ints = append(c.Ints, int64(v))
	default:
		var v int64
		v, err = strconv.ParseInt(string(key), 10, 64)
		c.Ints = append(c.Ints, v)
	}
	if err != nil {
		return fmt.Errorf("%.100q is no integer of %v", key, f.Type)
	}
	c.AddSlot()
	return nil
}
