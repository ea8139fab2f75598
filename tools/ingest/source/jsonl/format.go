package jsonl

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

const name = "jsonl"

// Format is that of JSON lines.
var Format = &input.Format{
	Name:     name,
	Suffixes: []string{".json", ".jsonl", ".ndjson"},
	Guess: func(_ *input.Set, head []byte, compressed bool) bool {
		return !compressed && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	},
	Begin: func(d *input.Set) input.Opener { return (&inference{d: d}).open },
}

// An inference finds the types of JSON lines from all files of a dump, each read once before any is read for its rows:
// a key may come late, or in one file only, and be whole numbers in one file and fractions in another.
type inference struct {
	d *input.Set

	// mu guards the rest, and is held while files are read.
	mu     sync.Mutex
	schema *schema
	faults map[string]error // by file: why it does not go with those before it
}

// filesAtOnce bounds what is held of files before it is merged.
const filesAtOnce = 64

// types returns the types of all files, and the error of the one that is to be opened: see Set.Fault.
func (d *inference) types(ctx context.Context, path string) (*schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.schema == nil {
		if err := d.scan(ctx); err != nil {
			return nil, err
		}
		d.schema.tell(d.d, false)
	}
	return d.schema, d.d.Fault(d.faults, path)
}

// open opens the reader of JSON lines with the types of all files, or of what a stream begins with.
func (d *inference) open(ctx context.Context, in input.File) (column.Reader, error) {
	lines, err := d.lines(ctx, in)
	if err != nil {
		return nil, err
	}
	r, err := d.reader(ctx, lines, in)
	if err != nil {
		lines.Close()
	}
	return input.Opened(r, err)
}

// lines opens the lines of an input.
func (d *inference) lines(ctx context.Context, in input.File) (*lines.Reader, error) {
	src, err := in.Read(ctx)
	if err != nil {
		return nil, err
	}
	return lines.Open(in.Path, src, lines.UTF8, &d.d.Limits)
}

func (d *inference) reader(ctx context.Context, lines *lines.Reader, in input.File) (*Reader, error) {
	if in.Stream != nil {
		return NewStream(ctx, lines, d.d)
	}
	s, err := d.types(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	return newReader(lines, s, &d.d.ReadOptions)
}

// scan is called with mu held.
func (d *inference) scan(ctx context.Context) error {
	all, faults := newSchema(d.d), map[string]error{}
	for some := range slices.Chunk(d.d.Files(name), filesAtOnce) {
		schemas, errs := make([]*schema, len(some)), make([]error, len(some))
		err := d.d.Scan(ctx, some, func(ctx context.Context, i int, in input.File) {
			schemas[i], errs[i] = d.file(ctx, in)
		})
		if err != nil {
			return err
		}
		for i, s := range schemas {
			if errs[i] == nil {
				errs[i] = all.merge(s)
			}
			if errs[i] != nil {
				faults[some[i].Path] = column.Apart(some[i].Path, errs[i])
			}
		}
	}
	d.schema, d.faults = all, faults
	return nil
}

// file returns what a file says. One that cannot be read to its end says what it can: its error comes again
// when it is read for its rows.
func (d *inference) file(ctx context.Context, in input.File) (*schema, error) {
	s := newSchema(d.d)
	lines, err := d.lines(ctx, in)
	if err != nil {
		return s, nil
	}
	defer lines.Close()
	err = s.read(ctx, lines, func([]byte) bool { return true })
	if errors.Is(err, column.ErrRefused) {
		return s, err
	}
	return s, nil
}

// tell says what was inferred. sample: of the lines that a stream begins with.
func (s *schema) tell(d *input.Set, sample bool) {
	nodes, err := s.columns()
	if d.Inferred == nil || err != nil { // the error comes again with the first row
		return
	}
	out := input.Inferred{Format: name, Rows: s.rows, Files: s.files, Sample: sample}
	for _, n := range nodes {
		if cm := d.Mapping.Columns[n.Name]; cm == nil || cm.Type == "" && !cm.Drop {
			out.Columns = append(out.Columns, input.InferredColumn{Name: n.Name, Type: n.String()})
		}
	}
	d.Inferred(out)
}

// merge takes over what another file says. One that does not go with those before it is left out, and has no say.
func (s *schema) merge(o *schema) error {
	var mixed *mixedError
	if errors.As(s.top.clash(o.top), &mixed) {
		return column.Refuse(mixed.path, "%v; %s", mixed, takesAny(mixed.path))
	}
	s.blank = s.blank && o.blank
	s.rows, s.files = s.rows+o.rows, s.files+1
	return s.top.merge(o.top)
}
