package source

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

const jsonName = "jsonl"

var jsonFormat = &format{
	name:     jsonName,
	suffixes: []string{".json", ".jsonl", ".ndjson"},
	guess: func(_ *inputSet, head []byte, compressed bool) bool {
		return !compressed && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	},
	begin: func(d *inputSet) opener { return (&jsonDump{d: d}).open },
}

// A jsonDump learns the types of JSON lines from all files of a dump, each read once before any is read for its rows: a key
// may come late, or in one file only, and be whole numbers in one file and fractions in another.
type jsonDump struct {
	d *inputSet

	// mu guards the rest, and is held while files are read.
	mu     sync.Mutex
	schema *jsonSchema
	faults map[string]error // by file: why it does not go with those before it
}

// filesAtOnce bounds what is held of files before it is merged.
const filesAtOnce = 64

// types returns the types of all files, and the error of the one that is to be opened.
func (d *jsonDump) types(ctx context.Context, path string) (*jsonSchema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.schema == nil {
		if err := d.learn(ctx); err != nil {
			return nil, err
		}
	}
	return d.schema, d.faults[path]
}

// open opens the reader of JSON lines with the types of all files, or of what a stream begins with.
func (d *jsonDump) open(ctx context.Context, in input) (column.Reader, error) {
	lines, err := openLines(in.path, in.stream, charsetUTF8, &d.d.Limits)
	if err != nil {
		return nil, err
	}
	var r *jsonReader
	if in.stream != nil {
		r, err = newJSONStream(ctx, lines, d.d)
	} else {
		var s *jsonSchema
		if s, err = d.types(ctx, in.path); err == nil {
			r, err = newJSONReader(lines, s, &d.d.ReadOptions)
		}
	}
	if err != nil {
		lines.close()
		return nil, err
	}
	return r, nil
}

// learn is called with mu held.
func (d *jsonDump) learn(ctx context.Context) error {
	all, faults := newJSONSchema(d.d), map[string]error{}
	for some := range slices.Chunk(d.d.files(jsonName), filesAtOnce) {
		schemas, errs := make([]*jsonSchema, len(some)), make([]error, len(some))
		err := d.d.learn(ctx, some, func(ctx context.Context, i int, in input) { schemas[i], errs[i] = d.file(ctx, in.path) })
		if err != nil {
			return err
		}
		for i, s := range schemas {
			if errs[i] == nil {
				errs[i] = all.merge(s)
			}
			if errs[i] != nil {
				faults[some[i].path] = errs[i]
			}
		}
	}
	d.schema, d.faults = all, faults
	return nil
}

// file returns what a file says. One that cannot be read to its end says what it can: whoever reads it for its rows meets
// the error again, where it belongs.
func (d *jsonDump) file(ctx context.Context, path string) (*jsonSchema, error) {
	s := newJSONSchema(d.d)
	lines, err := openLines(path, nil, charsetUTF8, &d.d.Limits)
	if err != nil {
		return s, nil
	}
	defer lines.close()
	err = s.read(ctx, lines, func([]byte) bool { return true })
	if errors.Is(err, column.ErrRefused) {
		return s, err
	}
	return s, nil
}

// merge takes over what another file says. One that does not go with those before it is left out, and has no say.
func (s *jsonSchema) merge(o *jsonSchema) error {
	var mixed *mixedError
	if errors.As(s.top.clash(o.top), &mixed) {
		return column.Refuse(mixed.path, "%v; give it a type in a mapping file", mixed)
	}
	s.blank = s.blank && o.blank
	return s.top.merge(o.top)
}
