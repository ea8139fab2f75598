package arrowbatch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Ingest makes a feature of each member of a struct and of each key of a map, all with the path of the struct or map as
// OriginColumn. It also makes a marker: a feature with that OriginColumn and no OriginKey, which is null where the
// whole struct or map is null. The marker's Logical is structMarker, or "map<...>" with the type of the keys. Folding
// is the reverse:
//
//	user        (marker, "struct")        user: struct<age, geo: struct<city>>
//	user.age                        ──>
//	user.geo    (marker, "struct")        its path is a member of user's by its name
//	user.geo.city
//	counts      (marker, "map<int64>")    counts: map<int64, float>
//	counts.7                        ──>
//	counts.12
//
// Features whose marker is not in the plan are not folded. Neither is the marker of a struct if the plan has no member
// of the struct, because Parquet has no empty structs. If the plan has no key of a map, the map's rows are empty.
const structMarker = "struct"

// mapKeyType returns the type of a map's keys, which a map's marker has in its Logical.
func mapKeyType(logical string) (vector.Type, bool) {
	name, args := splitLogical(logical)
	if name != "map" || len(args) != 1 {
		return vector.Type{}, false
	}
	if args[0] == "string" {
		return vector.Type{Kind: vector.String}, true
	}
	e, err := vector.ParseElem(args[0])
	if err != nil || !e.IsInteger() {
		return vector.Type{}, false
	}
	return vector.Type{Kind: vector.Dense, Elem: e}, true
}

// A group is the features of one struct or map.
type group struct {
	path    string
	marker  int
	isMap   bool
	key     vector.Type // of a map
	members []member
}

// lone reports whether g is a struct without members in the plan.
func (g *group) lone() bool { return !g.isMap && len(g.members) == 0 }

// A member is a feature, or a group inside a struct.
type member struct {
	name     string // of the struct's member, or the map's key
	position int    // in the plan; -1 for a group
	group    *group
}

// columnsOf returns the columns of a plan's records and their names, in the order of the plan's features. A folded
// column has the position of its first feature.
func columnsOf(p *reader.Plan, opts Options) (names []string, columns []column, err error) {
	groups := map[string]*group{}
	if opts.Fold {
		groups = findGroups(p)
	}
	var top []member
	placed := map[*group]bool{}
	for i := range p.Features {
		f := &p.Features[i]
		g := groups[f.OriginColumn]
		if f.OriginColumn == "" || g == nil {
			top = append(top, member{name: f.Name, position: i})
			continue
		}
		if i != g.marker {
			g.members = append(g.members, member{name: f.OriginKey, position: i})
		}
		// Put the group into the one around it, up to the outermost.
		for !placed[g] {
			placed[g] = true
			outer, name := enclosing(groups, g.path)
			m := member{name: name, position: -1, group: g}
			if outer == nil {
				top = append(top, m)
				break
			}
			outer.members = append(outer.members, m)
			g = outer
		}
	}
	for _, m := range top {
		c, err := m.column(p)
		if err != nil {
			return nil, nil, err
		}
		if f, ok := c.(*featureColumn); ok {
			f.form = formOf(p, f.typ, &f.leaf, opts)
		}
		names = append(names, m.name)
		columns = append(columns, c)
	}
	return names, columns, nil
}

// findGroups finds the markers of a plan.
func findGroups(p *reader.Plan) map[string]*group {
	groups := map[string]*group{}
	for i := range p.Features {
		f := &p.Features[i]
		if f.OriginColumn == "" || f.OriginKey != "" {
			continue
		}
		key, isMap := mapKeyType(f.Logical)
		if isMap || f.Logical == structMarker {
			groups[f.OriginColumn] = &group{path: f.OriginColumn, marker: i, isMap: isMap, key: key}
		}
	}
	return groups
}

// enclosing returns the innermost struct that path is a member of, and its name there; nil and path if there is none.
func enclosing(groups map[string]*group, path string) (*group, string) {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' {
			if g := groups[path[:i]]; g != nil && !g.isMap {
				return g, path[i+1:]
			}
		}
	}
	return nil, path
}

func (m *member) column(p *reader.Plan) (column, error) {
	position := m.position
	if m.group != nil && m.group.lone() {
		position = m.group.marker
	}
	if position >= 0 {
		f := &p.Features[position]
		return &featureColumn{leaf: newLeaf(f.Type, f.Logical), position: position}, nil
	}
	if m.group.isMap {
		return newMapColumn(p, m.group)
	}
	s := &structColumn{marker: m.group.marker}
	var fields []arrow.Field
	for i := range m.group.members {
		c, err := m.group.members[i].column(p)
		if err != nil {
			return nil, err
		}
		s.members = append(s.members, c)
		fields = append(fields, arrow.Field{Name: m.group.members[i].name, Type: c.arrowType(), Nullable: true})
	}
	s.arrow = arrow.StructOf(fields...)
	return s, nil
}

// A structColumn is the members of a struct.
type structColumn struct {
	arrow   *arrow.StructType
	marker  int // position in the plan
	members []column
}

func (s *structColumn) arrowType() arrow.DataType { return s.arrow }

func (s *structColumn) data(b *reader.Batch) (arrow.ArrayData, error) {
	var children []arrow.ArrayData
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i, m := range s.members {
		d, err := m.data(b)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", s.arrow.Field(i).Name, err)
		}
		children = append(children, d)
	}
	valid, nulls := rowValidity(b.Columns[s.marker])
	return array.NewData(s.arrow, b.Rows, []*memory.Buffer{valid}, children, nulls, 0), nil
}

// A mapColumn is the keys of a map. A row has the entries whose features are not null, in the order of the plan.
type mapColumn struct {
	arrow     *arrow.MapType
	marker    int // position in the plan
	positions []int
	keys      *vector.Column // row i is the key of positions[i]
	key       leaf
	value     leaf
}

func newMapColumn(p *reader.Plan, g *group) (*mapColumn, error) {
	m := &mapColumn{marker: g.marker, keys: vector.NewColumn(g.key), key: newLeaf(g.key, "")}
	var first *catalog.Feature
	// A map that never had a key has no values either; their type is lost.
	value := vector.Type{Kind: vector.Dense, Elem: vector.Float64}
	for _, x := range g.members {
		f := &p.Features[x.position]
		if err := appendKey(m.keys, x.name); err != nil {
			return nil, fmt.Errorf("arrow: map %q: %w", g.path, err)
		}
		m.positions = append(m.positions, x.position)
		if first == nil {
			first, value = f, f.Type
			continue
		}
		w, err := vector.Widen(value, f.Type)
		if err != nil || f.Logical != first.Logical {
			return nil, fmt.Errorf("arrow: map %q cannot be folded: %q is %v %s, %q is %v %s",
				g.path, first.Name, first.Type, first.Logical, f.Name, f.Type, f.Logical)
		}
		value = w
	}
	logical := ""
	if first != nil {
		logical = first.Logical
	}
	m.value = newLeaf(value, logical)
	m.arrow = arrow.MapOf(m.key.arrow, m.value.arrow)
	return m, nil
}

// appendKey appends a key, which ingest wrote as text.
func appendKey(c *vector.Column, text string) error {
	if !c.Type.IsList() {
		var v int64
		var err error
		switch c.Type.Elem {
		case vector.Bool:
			var b bool
			if b, err = strconv.ParseBool(text); b {
				v = 1
			}
		case vector.Uint64:
			var u uint64
			u, err = strconv.ParseUint(text, 10, 64)
			v = int64(u)
		default:
			v, err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("key %q is no %v", text, c.Type.Elem)
		}
		c.Ints = append(c.Ints, v)
	} else {
		c.Data = append(c.Data, strings.Clone(text)...)
	}
	c.AddSlot()
	return nil
}

func (m *mapColumn) arrowType() arrow.DataType { return m.arrow }

func (m *mapColumn) data(b *reader.Batch) (arrow.ArrayData, error) {
	sources := make([]*vector.Column, len(m.positions))
	for i, p := range m.positions {
		var err error
		if sources[i], err = vector.Convert(b.Columns[p], m.value.typ); err != nil {
			return nil, err
		}
	}
	marker := b.Columns[m.marker]
	if err := m.check(b.Rows, marker, sources); err != nil {
		return nil, err
	}
	keys, values := vector.NewColumn(m.key.typ), vector.NewColumn(m.value.typ)
	ends := make([]int32, 1, b.Rows+1)
	for r := range b.Rows {
		if !marker.IsNull(r) {
			for i, s := range sources {
				if !s.IsNull(r) {
					keys.AppendRow(m.keys, i)
					values.AppendRow(s, r)
				}
			}
		}
		ends = append(ends, int32(keys.Rows))
	}
	k, err := m.key.data(keys)
	if err != nil {
		return nil, err
	}
	defer k.Release()
	v, err := m.value.data(values)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	entries := array.NewData(m.arrow.Elem(), keys.Rows, []*memory.Buffer{nil}, []arrow.ArrayData{k, v}, 0, 0)
	defer entries.Release()
	valid, nulls := rowValidity(marker)
	buffers := []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends))}
	return array.NewData(m.arrow, b.Rows, buffers, []arrow.ArrayData{entries}, nulls, 0), nil
}

// check returns an error if the entries of all rows have more keys, bytes of keys, or values than a column can hold.
func (m *mapColumn) check(rows int, marker *vector.Column, sources []*vector.Column) error {
	entries, keys, values := 0, 0, 0
	for i, s := range sources {
		lo, hi := m.keys.SlotRange(i)
		for r := range rows {
			if marker.IsNull(r) || s.IsNull(r) {
				continue
			}
			from, to := s.SlotRange(s.Slot(r))
			entries, keys, values = entries+1, keys+hi-lo, values+to-from
		}
	}
	if max(entries, keys, values) > vector.MaxElements {
		return fmt.Errorf("the map's %d entries in %d rows have %d bytes of keys and %d values: want at most %d of "+
			"each: use smaller batches",
			entries, rows, keys, values, vector.MaxElements)
	}
	return nil
}
