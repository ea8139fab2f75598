package jsonl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// A schema is what JSON lines read so far say of their columns.
type schema struct {
	mapping *mapping.Mapping
	limits  *column.Limits
	// table says what the table has under the name of a feature, or of a map's column for its keys: an integer where it
	// has floats is one of those.
	table map[string]vector.Type
	top   *jsonType
	keys  int
	blank bool  // no line is an object: they are blank or malformed, or there is none
	rows  int64 // lines that are objects
	files int   // that they are in
	// fixed: values that have no place beside those before them have no say any more. Their rows are bad.
	fixed bool
	// looking: nothing is changed, and news says whether something would be.
	looking, news bool
	at            int64         // the number of the line that is read
	mixes         []*mixedError // of keys whose values have several types, one each
}

// A jsonType is what the values of a key seen so far have in common.
type jsonType struct {
	schema *schema
	path   string
	given  string // the type by the mapping file: values have no say
	drop   bool   // the mapping file drops it: values are passed over
	asMap  bool   // objects are maps
	kind   jsonKind
	number jsonNumbers
	mixed  bool      // its values have several types: it is in the schema's mixes
	elem   *jsonType // of lists, and of the values of maps
	// of objects
	members map[string]*jsonType
	order   []string
}

// jsonNumbers says what numbers of a key there were.
type jsonNumbers struct {
	float    bool // with a fraction or an exponent
	negative bool
	large    bool // over the greatest int64
	huge     bool // an integer that 64 bits do not hold
	inexact  bool // an integer that float64 does not hold
}

// mixedError says that values of a key have types that no column holds together.
type mixedError struct {
	path string
	what string
	line int64
}

func (e *mixedError) Error() string { return e.what }

func newSchema(d *input.Set) *schema {
	s := &schema{mapping: d.Mapping, limits: &d.Limits, table: map[string]vector.Type{}, blank: true}
	for _, f := range d.Features() {
		s.table[f.Name] = f.Type
		if f.OriginKey != "" {
			s.table[f.OriginColumn+mapValues] = f.Type
		}
	}
	s.top = &jsonType{schema: s, kind: jsonObject}
	return s
}

// mapValues after the path of a map is the path of its values.
const mapValues = ".*"

// line takes a line's word on the types. One that is no JSON, which is a bad row when its turn comes, has none.
func (s *schema) line(p *parser, line []byte) error {
	p.reset(line)
	if p.space(); p.pos == len(line) {
		return nil
	}
	// Most lines say nothing new: one look at them is enough.
	s.looking, s.news = true, false
	k, err := p.kind()
	if err == nil && k == jsonObject {
		err = s.top.infer(p)
	}
	s.looking = false
	if err != nil || k != jsonObject || p.end() != nil {
		return nil
	}
	s.blank = false
	s.rows++
	if !s.news {
		return nil
	}
	p.reset(line)
	return s.top.infer(p)
}

// columns returns the columns, those that the mapping gives a type and no line has at the end.
func (s *schema) columns() ([]*column.Type, error) {
	if s.isFrame() {
		return nil, column.Refuse("", "its only line is a table with a column for each key, as pandas' to_json() "+
			"writes it: df.to_json(FILE, orient=\"records\", lines=True) writes JSON lines")
	}
	var out []*column.Type
	for _, name := range s.top.order {
		n, err := s.top.members[name].node(name)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	for _, path := range slices.Sorted(maps.Keys(s.mapping.Columns)) {
		if t := s.mapping.Columns[path].Type; t != "" && !s.top.has(path) {
			n, err := s.givenNode(path, path, t)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// isFrame reports whether the only line is an object of columns, each an object from 0, 1, 2 ... to values.
func (s *schema) isFrame() bool {
	if s.rows != 1 || len(s.top.order) < 2 {
		return false
	}
	for _, name := range s.top.order {
		column := s.top.members[name]
		if column.kind != jsonObject || len(column.order) < 2 {
			return false
		}
		for i, key := range column.order {
			if key != strconv.Itoa(i) {
				return false
			}
		}
	}
	return true
}

// has reports whether path is a member of t, or would be one of an object in it, or of what has a given type.
func (t *jsonType) has(path string) bool {
	if t.members[path] != nil {
		return true
	}
	for i := range path {
		if m := t.members[path[:i]]; path[i] == '.' && m != nil && (m.kind == jsonObject || m.given != "") {
			return true
		}
	}
	return false
}

// givenNode returns the node of the type that the mapping file gives a path, whose last part is name.
func (s *schema) givenNode(path, name, typ string) (*column.Type, error) {
	n, err := hive.ParseType(typ, s.limits.Depth)
	if err == nil {
		err = s.mapping.SetTimeFormat(path, n)
	}
	if err != nil {
		return nil, err
	}
	n.Name, n.AnyJSON = name, n.Shape == column.String && n.Logical == ""
	n.Give()
	return n, nil
}

func (t *jsonType) member(key []byte) (*jsonType, error) {
	if m := t.members[string(key)]; m != nil {
		return m, nil
	}
	name := string(key)
	m, err := t.schema.newType(t.memberPath(name))
	if err != nil {
		return nil, err
	}
	if t.members == nil {
		t.members = map[string]*jsonType{}
	}
	t.members[name] = m
	t.order = append(t.order, name)
	return m, nil
}

func (t *jsonType) memberPath(name string) string {
	if t.path == "" {
		return name
	}
	return column.Path(t.path, name)
}

// skip passes over the value of a path, and over what the mapping drops of it whatever it is.
func (s *schema) skip(p *parser, path string) error {
	if s.mapping.Dropped(path) {
		return p.pass()
	}
	k, err := p.kind()
	if err != nil {
		return err
	}
	if k != jsonObject || !s.mapping.DropsIn(path) {
		return p.skip()
	}
	return p.object(func(key []byte) error { return s.skip(p, column.Path(path, string(key))) })
}

func (s *schema) newType(path string) (*jsonType, error) {
	if s.keys++; s.keys > s.limits.Columns {
		return nil, column.Refuse("", "more than %d different keys, the last %s: where keys are ids, {\"columns\": "+
			"{COLUMN: {\"map\": \"weighted\"}}} in a mapping file makes a map of the object that has them",
			s.limits.Columns, column.Quote(path))
	}
	t := &jsonType{schema: s, path: path}
	if cm := s.mapping.Columns[path]; cm != nil {
		t.given, t.drop, t.asMap = cm.Type, cm.Drop, cm.Map != "" || cm.Kind == vector.Weighted
	}
	return t, nil
}

// element returns what the elements of lists, or the values of maps, have in common.
func (t *jsonType) element() (*jsonType, error) {
	if t.elem != nil {
		return t.elem, nil
	}
	path := t.path
	if t.kind == jsonObject {
		path += mapValues
	}
	elem, err := t.schema.newType(path)
	if err != nil {
		return nil, err
	}
	if t.kind == jsonArray {
		elem.asMap = false // lists of objects are lists of structs
	}
	t.elem = elem
	return elem, nil
}

// infer takes the word of the value at p.
func (t *jsonType) infer(p *parser) error {
	if t.drop {
		return p.pass()
	}
	if t.given != "" {
		return p.skip()
	}
	k, err := p.kind()
	if err != nil {
		return err
	}
	if k == jsonNull {
		return p.literal("null")
	}
	if t.mixed || t.kind != 0 && t.kind != k && t.schema.fixed {
		return p.skip()
	}
	if t.kind != k && t.schema.looking {
		t.schema.news = true
		return t.schema.skip(p, t.path)
	}
	if t.kind != 0 && t.kind != k {
		t.mixed = true
		t.schema.mixes = append(t.schema.mixes, &mixedError{t.path,
			fmt.Sprintf("%v where lines before it have %v", k, t.kind), t.schema.at})
		return p.skip()
	}
	t.kind = k
	switch k {
	case jsonNumber:
		text, whole, err := p.number()
		if err == nil {
			t.addNumber(text, whole)
		}
		return err
	case jsonArray:
		elem, err := t.element()
		if err != nil {
			return err
		}
		return p.array(func() error { return elem.infer(p) })
	case jsonObject:
		if t.asMap {
			elem, err := t.element()
			if err != nil {
				return err
			}
			return p.object(func([]byte) error { return elem.infer(p) })
		}
		return p.object(func(key []byte) error {
			if t.schema.looking && t.members[string(key)] == nil {
				t.schema.news = true
				return t.schema.skip(p, t.memberPath(string(key)))
			}
			m, err := t.member(key)
			if err != nil {
				return err
			}
			return m.infer(p)
		})
	}
	return p.skip()
}

// exactDigits is how many digits an integer may have that float64 holds whatever they are.
const exactDigits = 15

func (t *jsonType) addNumber(text []byte, whole bool) {
	var n jsonNumbers
	if !whole {
		n.float = true
	} else {
		n.negative = text[0] == '-'
		if len(text) > exactDigits {
			v, err := strconv.ParseInt(string(text), 10, 64)
			n.inexact = err != nil || !column.ExactFloat(vector.Float64, v)
			if err != nil {
				_, err = strconv.ParseUint(string(text), 10, 64)
				n.large, n.huge = true, err != nil
			}
		}
	}
	all := t.number.with(n)
	switch {
	case all == t.number || t.schema.fixed && all.mixed():
	case t.schema.looking:
		t.schema.news = true
	default:
		t.number = all
	}
}

func (n jsonNumbers) with(o jsonNumbers) jsonNumbers {
	return jsonNumbers{n.float || o.float, n.negative || o.negative, n.large || o.large, n.huge || o.huge, n.inexact ||
		o.inexact}
}

// mixed reports whether no type holds all the numbers.
func (n jsonNumbers) mixed() bool {
	return n.float && n.inexact || n.huge || n.large && n.negative
}

// clash returns a mixedError where what the lines of another file say does not go with t.
func (t *jsonType) clash(o *jsonType) error {
	if t == nil || o == nil || t.kind == 0 || o.kind == 0 || t.given != "" {
		return nil
	}
	if t.kind != o.kind {
		return &mixedError{path: o.path, what: fmt.Sprintf("%v where files before it have %v", o.kind, t.kind)}
	}
	if t.number.with(o.number).mixed() && !t.number.mixed() && !o.number.mixed() {
		return &mixedError{path: o.path, what: "numbers that no type holds together with those of files before it: " +
			"integers beyond 2^53 and fractions, or beyond 2^63 and negative ones"}
	}
	if err := t.elem.clash(o.elem); err != nil {
		return err
	}
	for _, k := range o.order {
		if err := t.members[k].clash(o.members[k]); err != nil {
			return err
		}
	}
	return nil
}

// merge takes over what the lines of another file say, which clash has found to go with t.
func (t *jsonType) merge(o *jsonType) error {
	if o.kind == 0 || t.given != "" {
		return nil
	}
	t.kind, t.number = o.kind, t.number.with(o.number)
	if o.elem != nil {
		elem, err := t.element()
		if err != nil {
			return err
		}
		if err := elem.merge(o.elem); err != nil {
			return err
		}
	}
	for _, k := range o.order {
		m, err := t.member([]byte(k))
		if err != nil {
			return err
		}
		if err := m.merge(o.members[k]); err != nil {
			return err
		}
	}
	return nil
}

// node returns the type of a column by what was seen of it. An object is a struct, or a map where the mapping says so.
func (t *jsonType) node(name string) (*column.Type, error) {
	if t.given != "" {
		return t.schema.givenNode(t.path, name, t.given)
	}
	n := &column.Type{Name: name}
	switch t.kind {
	case jsonBool:
		n.Shape, n.Elem = column.Number, vector.Bool
	case jsonNumber:
		n.Shape, n.Elem = column.Number, vector.Int64
		known := t.schema.known(t.path)
		switch {
		case t.number.float:
			n.Elem = vector.Float64
		case t.number.huge || t.number.large && t.number.negative:
			return &column.Type{Name: name, Shape: column.Refused, Reason: "it holds integers that 64 bits do not: " +
				"give it the type double, string or decimal(38,0) in a mapping file"}, nil
		case known == vector.Float32 || known == vector.Float64:
			n.Elem = known
		case t.number.large, known == vector.Uint64 && !t.number.negative:
			n.Elem = vector.Uint64
		}
	case jsonString:
		n.Shape = column.String
	case jsonArray:
		n.Shape, n.IsJSON = column.List, true
		el, err := t.elem.node("element")
		if err != nil {
			return nil, err
		}
		n.Children = []*column.Type{el}
	case jsonObject:
		if t.asMap {
			return t.mapNode(n)
		}
		n.Shape = column.Struct
		for _, k := range t.order {
			c, err := t.members[k].node(k)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, c)
		}
	default:
		n.Shape = column.Null
	}
	return n, nil
}

// mapNode makes a map of an object: from strings, or integers where the map holds ids, to what all its values are.
func (t *jsonType) mapNode(n *column.Type) (*column.Type, error) {
	n.Shape = column.Map
	key := &column.Type{Name: "key", Shape: column.String}
	if cm := t.schema.mapping.Columns[t.path]; cm != nil && (cm.Map == "weighted" || cm.Kind == vector.Weighted) &&
		!cm.Hash {
		key = &column.Type{Name: "key", Shape: column.Number, Elem: vector.Int64}
	}
	value, err := t.elem.node("value")
	if err != nil {
		return nil, err
	}
	if value.Shape == column.Number && value.Elem == vector.Int64 && key.Shape == column.Number {
		value.Elem = vector.Float64 // scores
	}
	n.Children = []*column.Type{key, value}
	return n, nil
}

// known returns the type of the numbers that the table has in what a path becomes, 0 when it has none.
func (s *schema) known(path string) vector.Elem {
	if cm := s.mapping.Columns[path]; cm != nil && cm.Rename != "" {
		path = cm.Rename
	}
	return s.table[path].Elem
}
