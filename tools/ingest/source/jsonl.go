package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/dsistore/dsistore/format/vector"
)

// jsonReader reads JSON lines: an object a line. The schema is what the first sampleBytes show, with the types that the
// mapping gives; later lines must agree with it.
type jsonReader struct {
	lines  *lineReader
	sample [][]byte // lines read to infer the schema, not yet given
	at     int      // the next of them
	nodes  []*node
	index  map[string]int
	wanted []bool
	limits *Limits
	target int64
	row    int64
	parser jsonParser
	blank  bool
}

func newJSONReader(lines *lineReader, m *Mapping, opts *Options) (*jsonReader, error) {
	r := &jsonReader{lines: lines, limits: &opts.Limits, target: opts.ChunkBytes, index: map[string]int{}}
	r.parser.maxDepth = opts.Limits.Depth
	top := &jsonType{kind: jsonObject}
	// Columns that the mapping gives a type come first and are never inferred.
	given := map[string]*node{}
	for _, name := range sortedKeys(m.Columns) {
		if t := m.Columns[name].Type; t != "" {
			n, err := parseHiveType(t, opts.Limits.Depth)
			if err != nil {
				return nil, err
			}
			n.name = name
			n.give()
			given[name] = n
		}
	}
	blank := true
	for size := 0; size < sampleBytes; {
		line, err := lines.next()
		if err == io.EOF {
			r.blank = blank
			break
		}
		if err != nil {
			return nil, err
		}
		r.sample = append(r.sample, bytes.Clone(line))
		size += len(line) + 1
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		blank = false
		// A line that is no JSON is a bad row when its turn comes, and has no say in the schema.
		r.parser.reset(line)
		if r.parser.whole() != nil {
			continue
		}
		r.parser.reset(line)
		err = r.inferRow(top, given)
		var mixed *mixedError
		if errors.As(err, &mixed) {
			return nil, refuse(mixed.path, "line %d: %v; give it a type in a mapping file", lines.line, mixed)
		}
	}
	for _, name := range top.order {
		n := given[name]
		if n == nil {
			n = top.members[name].node(name, m, name)
		} else {
			delete(given, name)
		}
		r.index[name] = len(r.nodes)
		r.nodes = append(r.nodes, n)
	}
	for _, name := range sortedKeys(given) {
		r.index[name] = len(r.nodes)
		r.nodes = append(r.nodes, given[name])
	}
	return r, nil
}

// inferRow takes a line's word on the types of the columns that have none given.
func (r *jsonReader) inferRow(top *jsonType, given map[string]*node) error {
	k, err := r.parser.kind()
	if err != nil || k != jsonObject {
		return err
	}
	return r.parser.object(func(key []byte) error {
		name := string(key)
		if given[name] != nil {
			top.member(name)
			return r.parser.skip()
		}
		return top.member(name).infer(&r.parser, name)
	})
}

// A jsonType is what the values seen so far have in common.
type jsonType struct {
	kind     jsonKind // 0 or jsonNull: no value yet
	float    bool     // numbers: one had a fraction or an exponent
	negative bool
	large    bool // numbers: one is over the greatest int64
	huge     bool // numbers: an integer that 64 bits do not hold
	elem     *jsonType
	members  map[string]*jsonType
	order    []string
}

// mixedError says that values of a key have types that no column holds together.
type mixedError struct {
	path string
	a, b jsonKind
}

func (e *mixedError) Error() string {
	return fmt.Sprintf("%v where lines before it have %v", e.b, e.a)
}

func (t *jsonType) member(name string) *jsonType {
	if t.members == nil {
		t.members = map[string]*jsonType{}
	}
	m := t.members[name]
	if m == nil {
		m = &jsonType{}
		t.members[name] = m
		t.order = append(t.order, name)
	}
	return m
}

func (t *jsonType) infer(p *jsonParser, path string) error {
	k, err := p.kind()
	if err != nil {
		return err
	}
	if k == jsonNull {
		return p.literal("null")
	}
	if t.kind == 0 {
		t.kind = k
	}
	if t.kind != k {
		return &mixedError{path, t.kind, k}
	}
	switch k {
	case jsonNumber:
		text, whole, err := p.number()
		if err != nil {
			return err
		}
		t.negative = t.negative || text[0] == '-'
		if !whole {
			t.float = true
		} else if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			t.large = true
			if _, err := strconv.ParseUint(string(text), 10, 64); err != nil {
				t.huge = true
			}
		}
		return nil
	case jsonArray:
		if t.elem == nil {
			t.elem = &jsonType{}
		}
		return p.array(func() error { return t.elem.infer(p, path) })
	case jsonObject:
		return p.object(func(key []byte) error {
			name := string(key)
			return t.member(name).infer(p, columnPath(path, name))
		})
	}
	return p.skip()
}

// node returns the type of a column by what was seen of it. An object is a struct, or a map where the mapping says so.
func (t *jsonType) node(name string, m *Mapping, path string) *node {
	n := &node{name: name, nullable: true}
	switch t.kind {
	case jsonBool:
		n.shape, n.elem = shapeNumber, vector.Bool
	case jsonNumber:
		n.shape, n.elem = shapeNumber, vector.Int64
		switch {
		case t.float:
			n.elem = vector.Float64
		case t.huge || t.large && t.negative:
			return &node{name: name, shape: shapeRefused, reason: "it holds integers that 64 bits do not: give it the type double, string or decimal(38,0) in a mapping file"}
		case t.large:
			n.elem = vector.Uint64
		}
	case jsonString:
		n.shape = shapeString
	case jsonArray:
		n.shape = shapeList
		n.children = []*node{t.elem.node("element", m, path)}
	case jsonObject:
		if cm := m.Columns[path]; cm != nil && (cm.Map != "" || cm.Kind == vector.Weighted) {
			return t.mapNode(n, m, path)
		}
		n.shape = shapeStruct
		for _, k := range t.order {
			n.children = append(n.children, t.members[k].node(k, m, columnPath(path, k)))
		}
	default:
		n.shape = shapeNull
	}
	return n
}

// mapNode makes a map of an object: from strings, or integers where the map holds ids, to what all its values are.
func (t *jsonType) mapNode(n *node, m *Mapping, path string) *node {
	n.shape = shapeMap
	key := &node{name: "key", shape: shapeString}
	if cm := m.Columns[path]; (cm.Map == "weighted" || cm.Kind == vector.Weighted) && !cm.Hash {
		key = &node{name: "key", shape: shapeNumber, elem: vector.Int64}
	}
	all := &jsonType{}
	for _, k := range t.order {
		if err := all.merge(t.members[k], path); err != nil {
			return &node{name: n.name, shape: shapeRefused, reason: fmt.Sprintf("the values of the map differ: %v", err)}
		}
	}
	value := all.node("value", m, path+".*")
	if value.shape == shapeNumber && value.elem == vector.Int64 && key.shape == shapeNumber {
		value.elem = vector.Float64 // scores
	}
	n.children = []*node{key, value}
	return n
}

func (t *jsonType) merge(o *jsonType, path string) error {
	if o.kind == 0 {
		return nil
	}
	if t.kind == 0 {
		t.kind = o.kind
	}
	if t.kind != o.kind {
		return &mixedError{path, t.kind, o.kind}
	}
	t.float, t.negative = t.float || o.float, t.negative || o.negative
	t.large, t.huge = t.large || o.large, t.huge || o.huge
	if o.elem != nil {
		if t.elem == nil {
			t.elem = &jsonType{}
		}
		if err := t.elem.merge(o.elem, path); err != nil {
			return err
		}
	}
	for _, k := range o.order {
		if err := t.member(k).merge(o.members[k], path); err != nil {
			return err
		}
	}
	return nil
}

func (r *jsonReader) columns() []*node { return r.nodes }

func (r *jsonReader) want(wanted []bool) { r.wanted = wanted }

// hasNothing reports whether all the lines, if any, are blank.
func (r *jsonReader) hasNothing() bool { return r.blank }

func (r *jsonReader) close() error { return r.lines.close() }

// line returns the next line and its number.
func (r *jsonReader) line() ([]byte, int64, error) {
	if r.at < len(r.sample) {
		r.at++
		line := r.sample[r.at-1]
		r.sample[r.at-1] = nil
		return line, int64(r.at), nil
	}
	line, err := r.lines.next()
	return line, r.lines.line, err
}

func (r *jsonReader) next(ctx context.Context) (*batch, error) {
	b := &batch{rowGroup: -1, row: r.row, arrays: make([]*array, len(r.nodes))}
	for i, n := range r.nodes {
		if r.wanted == nil || r.wanted[i] {
			b.arrays[i] = newArray(n)
		}
	}
	for size := int64(0); size < r.target && b.rows < maxRows; {
		if b.rows%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		line, number, err := r.line()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := r.appendRow(b, line); err != nil {
			column := ""
			var me *memberError
			// What is wrong with the line as JSON comes before what its values are.
			r.parser.reset(line)
			if syntax := r.parser.whole(); syntax != nil && !errors.As(err, &me) {
				err = syntax
			}
			if errors.As(err, &me) {
				column, err = me.key, me.err
			}
			b.bad = append(b.bad, badRow{b.rows, column, err})
			for _, a := range b.arrays {
				if a != nil {
					a.truncate(b.rows)
					a.appendNull()
				}
			}
		}
		size += int64(len(line))
		b.lines = append(b.lines, number)
		b.rows++
	}
	if b.rows == 0 {
		return nil, io.EOF
	}
	r.row += int64(b.rows)
	return b, nil
}

func (r *jsonReader) appendRow(b *batch, line []byte) error {
	r.parser.reset(line)
	k, err := r.parser.kind()
	if err != nil {
		return err
	}
	if k != jsonObject {
		return fmt.Errorf("%v where an object should be: JSON lines have an object a line", k)
	}
	if err := appendMembers(b.arrays, r.index, b.rows, &r.parser, r.limits); err != nil {
		return err
	}
	return r.parser.end()
}
