package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// Reader reads JSON lines: an object a line. Lines agree with the types that it was given, or are bad rows.
type Reader struct {
	lines.Rows
	lines  *lines.Reader
	sample [][]byte // lines read to infer the types, not yet given
	at     int      // the next of them
	index  map[string]int
	limits *column.Limits
	parser parser
	blank  bool
}

// SampleBytes is how much of a file of JSON lines has an equal say on its types: what comes later may only add to them.
const SampleBytes = 4 << 20

// newReader reads lines with the types of a schema.
func newReader(in *lines.Reader, s *schema, opts *column.ReadOptions) (*Reader, error) {
	r := &Reader{
		Rows: lines.Rows{Target: opts.ChunkBytes}, lines: in, limits: &opts.Limits, index: map[string]int{},
		blank: s.blank,
	}
	r.parser.maxDepth = opts.Limits.Depth
	var err error
	if r.Nodes, err = s.columns(); err != nil {
		return nil, err
	}
	for i, n := range r.Nodes {
		r.index[n.Name] = i
	}
	return r, nil
}

// NewStream reads lines that can be read once, with the types that the first SampleBytes of them show.
func NewStream(ctx context.Context, lines *lines.Reader, d *input.Set) (*Reader, error) {
	s := newSchema(d)
	var sample [][]byte
	err := s.read(ctx, lines, func(line []byte) bool {
		sample = append(sample, bytes.Clone(line))
		return !s.fixed
	})
	if err != nil {
		return nil, err
	}
	s.files = 1
	s.tell(d, s.fixed)
	r, err := newReader(lines, s, &d.ReadOptions)
	if err == nil {
		r.sample = sample
	}
	return r, err
}

// read takes the word of lines up to the one after which keep returns false, or the last. It fixes the schema after
// SampleBytes.
func (s *schema) read(ctx context.Context, lines *lines.Reader, keep func(line []byte) bool) error {
	p := &parser{maxDepth: s.limits.Depth}
	size := 0
	for n := 0; ; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		line, err := next(lines)
		if err == io.EOF {
			return s.refusal()
		}
		if err != nil {
			return err
		}
		s.at = lines.Line
		if err := s.line(p, line); err != nil {
			return err
		}
		size += len(line) + 1
		s.fixed = s.fixed || size >= SampleBytes
		if !keep(line) {
			return s.refusal()
		}
	}
}

// refusal returns an error that names the keys whose values have several types, nil where there are none.
func (s *schema) refusal() error {
	if len(s.mixes) == 1 {
		m := s.mixes[0]
		return column.Refuse(m.path, "line %d: %v; %s", m.line, m, takesAny(m.path))
	}
	var all []string
	for _, m := range s.mixes[:min(len(s.mixes), mapping.MaxRefusals)] {
		all = append(all, fmt.Sprintf("column %q: line %d: %v", m.path, m.line, m))
	}
	if len(all) == 0 {
		return nil
	}
	if more := len(s.mixes) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return column.Refuse("", "%d columns have values of several types: %s; for each, %s; or drop them", len(s.mixes),
		strings.Join(all, "; "), takesAny("..."))
}

// takesAny says how a key of values of several types is read.
func takesAny(path string) string {
	return fmt.Sprintf("{\"columns\": {%q: {\"type\": \"string\"}}} in a mapping file takes all of them, lists and "+
		"objects as their JSON", path)
}

// IsEmpty reports whether no line, if there are any, says what columns there are.
func (r *Reader) IsEmpty() bool { return r.blank }

func (r *Reader) Close() error { return r.lines.Close() }

// line returns the next line and its number.
func (r *Reader) line() ([]byte, int64, error) {
	if r.at < len(r.sample) {
		r.at++
		line := r.sample[r.at-1]
		r.sample[r.at-1] = nil
		return line, int64(r.at), nil
	}
	line, err := next(r.lines)
	return line, r.lines.Line, err
}

// next returns the next line. Where one that is too long is a list, the error says how to make lines of it.
func next(in *lines.Reader) ([]byte, error) {
	line, err := in.Next()
	var long *lines.LongLine
	if errors.As(err, &long) && long.Begins == '[' {
		err = fmt.Errorf("%w: %s", err, wantJSONLines)
	}
	return line, err
}

func (r *Reader) Next(ctx context.Context) (*column.Batch, error) {
	return r.Batch(ctx, r.appendRow)
}

// appendRow appends the next row, of nulls where the line is bad.
func (r *Reader) appendRow(b *column.Batch) (number, size int64, err error) {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		if line, number, err = r.line(); err != nil {
			return 0, 0, err
		}
	}
	if err := r.appendObject(b, line); err != nil {
		col := ""
		var me *memberError
		// What is wrong with the line as JSON comes before what its values are.
		r.parser.reset(line)
		if syntax := r.parser.whole(); syntax != nil && !errors.As(err, &me) {
			err = syntax
		}
		if errors.As(err, &me) {
			col, err = me.key, me.err
		}
		b.Bad = append(b.Bad, column.BadRow{Row: b.Rows, Column: col, Err: err})
		for _, a := range b.Arrays {
			if a != nil {
				a.Truncate(b.Rows)
				a.AppendNull()
			}
		}
	}
	return number, int64(len(line)), nil
}

func (r *Reader) appendObject(b *column.Batch, line []byte) error {
	r.parser.reset(line)
	k, err := r.parser.kind()
	if err != nil {
		return err
	}
	if k != jsonObject {
		return fmt.Errorf("%v where an object should be: %s", k, wantJSONLines)
	}
	if err := appendMembers(b.Arrays, r.index, b.Rows, &r.parser, r.limits); err != nil {
		return err
	}
	return r.parser.end()
}
