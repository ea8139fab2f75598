package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A Binder decides what features the columns of one source become, by their types and the mapping.
type Binder struct {
	Mapping     *Mapping
	limits      column.Limits
	session     string // Options.SessionKey, TimeKey
	time        string
	PartitionBy []string
	Fields      []*Field
	byName      map[string]*Field
	byPath      map[string]*Field
	Refusals    []column.RefusedError // of columns that have no place
	Lenient     bool                  // leave out columns that have no place instead of failing: to show a schema
	Seen        map[string]bool       // paths of columns, members and maps; true: a map, whose keys are found later
	groups      map[string]group
}

// A group is a struct or map that has a marker.
type group struct {
	parent   string // the path of the struct that it is a member of; empty: none
	isStruct bool
}

// NewBinder returns a binder by the mapping file and by what Options of its caller say.
func NewBinder(m *Mapping, limits column.Limits, session, time string, partitionBy []string) *Binder {
	return &Binder{
		Mapping: m, limits: limits, session: session, time: time,
		PartitionBy: append(slices.Clone(partitionBy), m.PartitionBy...), byName: map[string]*Field{},
		byPath: map[string]*Field{}, Seen: map[string]bool{}, groups: map[string]group{},
	}
}

// A Binding turns the arrays of one input column, or of a part of one, into columns of features. mask is where the
// parts above are not null (nil: everywhere). a.Len is the number of rows.
type Binding interface {
	Emit(a *column.Array, mask vector.Bitmap, o *Output)
	// Finds reports whether Emit may find new features. Such bindings are called one after the other; the others' calls
	// of Emit for different columns may be made at once.
	Finds() bool
	// Fits returns the row before which a batch that begins with row from has to end: a.Len, or less where its columns
	// would have more than most bytes, most of them for nulls. It is called as Emit is.
	Fits(a *column.Array, from int, most int64) int
}

// Output collects what becomes of one column, or of all columns of one chunk.
type Output struct {
	Fields  []*Field
	Columns []*vector.Column
	Lent    int64 // bytes of columns that are in memory anyway
	Bad     map[int]column.BadRow
	Fail    error // an error of the whole source: the first one stays
}

func (o *Output) add(f *Field, c *vector.Column) {
	o.Fields = append(o.Fields, f)
	o.Columns = append(o.Columns, c)
}

// Note says that a row cannot be taken over. What was said of it first stays.
func (o *Output) Note(row int, col string, err error) {
	if o.Bad == nil {
		o.Bad = map[int]column.BadRow{}
	}
	if _, ok := o.Bad[row]; !ok {
		o.Bad[row] = column.BadRow{Row: row, Column: col, Err: err}
	}
}

// Take adds what became of the next column to o.
func (o *Output) Take(next *Output) {
	o.Fields = append(o.Fields, next.Fields...)
	o.Columns = append(o.Columns, next.Columns...)
	o.Lent += next.Lent
	for _, b := range next.Bad {
		o.Note(b.Row, b.Column, b.Err)
	}
}

// Reset empties o, whose slices keep their memory.
func (o *Output) Reset() {
	clear(o.Columns)
	*o = Output{Fields: o.Fields[:0], Columns: o.Columns[:0]}
}

// maxNameBytes is the longest name that a table takes for a feature.
const maxNameBytes = 4096

// field registers a feature under the name that the source gives it; the mapping may rename it and give it a role.
func (b *Binder) field(path string, t vector.Type, logical, originColumn, originKey string) (*Field, error) {
	f := &Field{Name: path, Type: t, Logical: logical, OriginColumn: originColumn, OriginKey: originKey, Path: path}
	if cm := b.Mapping.Columns[path]; cm != nil {
		if cm.Rename != "" {
			f.Name = cm.Rename
		}
		f.Role = cm.Role
	}
	if f.Name == "" {
		return nil, column.Refuse(path, "a column without a name: give it one with {\"columns\": {%q: {\"rename\": "+
			"\"NAME\"}}} in a mapping file", path)
	}
	if !utf8.ValidString(f.Name) || len(f.Name) > maxNameBytes {
		return nil, column.Refuse(path, "a name of %d bytes: want at most %d of UTF-8; rename it in the source",
			len(f.Name), maxNameBytes)
	}
	for _, key := range []struct {
		path string
		role catalog.Role
	}{{b.session, catalog.RoleSessionKey}, {b.time, catalog.RoleTimeKey}} {
		if path != key.path || path == "" {
			continue
		}
		if f.Role != catalog.RoleFeature && f.Role != key.role {
			return nil, fmt.Errorf("column %q is given as the %s, and is a %s in the mapping file or by another "+
				"option: a feature has one role; leave one of them out", path, key.role, f.Role)
		}
		f.Role = key.role
	}
	if b.byName[f.Name] != nil {
		return nil, fmt.Errorf("two features have the name %q: rename or drop one in the mapping file", f.Name)
	}
	b.byName[f.Name], b.byPath[path] = f, f
	b.Fields = append(b.Fields, f)
	return f, nil
}

// Check returns an error when the mapping or the command line names a column that the source does not have.
func (b *Binder) Check(partition catalog.Partition) error {
	for _, k := range []struct{ path, what string }{{b.session, "session key"}, {b.time, "time key"}} {
		if k.path == "" {
			continue
		}
		if slices.ContainsFunc(partition, func(v catalog.PartitionValue) bool { return v.Key == k.path }) {
			return fmt.Errorf("%s %q is a partition key: it is the same in all rows of a partition", k.what, k.path)
		}
		isMap, ok := b.Seen[k.path]
		if !ok || isMap {
			return fmt.Errorf("%s: no column%s", k.what, column.DidYouMean(k.path, slices.Sorted(maps.Keys(b.Seen))))
		}
		if f := b.byPath[k.path]; f == nil {
			return fmt.Errorf("%s %q is no feature: it is a struct, or the mapping drops it", k.what, k.path)
		} else if f.Type.Kind != vector.Dense && f.Type.Kind != vector.String && f.Type.Kind != vector.Bytes {
			return fmt.Errorf("%s %q is %v: a key is a number or a string", k.what, k.path, f.Type)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.Mapping.Columns)) {
		if _, ok := b.Seen[path]; ok || b.Mapping.Columns[path].Optional || b.underMap(path) {
			continue
		}
		return fmt.Errorf("the mapping file speaks of a column that is not there:%s (\"optional\": true when only "+
			"some files have it)", column.DidYouMean(path, slices.Sorted(maps.Keys(b.Seen))))
	}
	return nil
}

// MaxRefusals is how many columns an error names.
const MaxRefusals = 20

// Refused returns an error that names the columns that have no place, nil where there are none.
func (b *Binder) Refused() error {
	switch n := len(b.Refusals); n {
	case 0:
		return nil
	case 1:
		return &b.Refusals[0]
	default:
		reasons, drops := make([]string, 0, n), make([]string, 0, n)
		for _, r := range b.Refusals {
			reason, how, _ := strings.Cut(r.Reason, column.DropHint)
			if how != "" {
				drops = append(drops, fmt.Sprintf("%q: {\"drop\": true}", r.Column))
			}
			if len(reasons) < MaxRefusals {
				reasons = append(reasons, fmt.Sprintf("column %q: %s", r.Column, reason))
			}
		}
		all := strings.Join(reasons, "; ")
		if n > MaxRefusals {
			all += fmt.Sprintf("; and %d more, which dsi ingest --show-schema names", n-MaxRefusals)
			drops = nil
		}
		if len(drops) > 0 {
			all += fmt.Sprintf("; to drop those that have no other way: {\"columns\": {%s}} in a mapping file",
				strings.Join(drops, ", "))
		}
		return &column.RefusedError{Reason: fmt.Sprintf("%d columns cannot be stored as they are: %s", n, all)}
	}
}

// CheckGroups refuses a struct or map whose path is that of a member of a struct which it is not in: a column called
// "s.x" beside a struct "s". The path is all that a table keeps of where it belongs, so that folding would move it
// there.
func (b *Binder) CheckGroups() error {
	for _, path := range slices.Sorted(maps.Keys(b.groups)) {
		around := ""
		for i := range path {
			if path[i] == '.' && b.groups[path[:i]].isStruct {
				around = path[:i]
			}
		}
		if around != b.groups[path].parent {
			return column.RefuseToDrop(path, "its name says that it is a member of the struct %q, which it is not: "+
				"rename it in the source", around)
		}
	}
	return nil
}

// underMap reports whether path may be a key of a map column.
func (b *Binder) underMap(path string) bool {
	for i := range path {
		if path[i] == '.' && b.Seen[path[:i]] {
			return true
		}
	}
	return false
}

// Bind returns the binding of a column, nil when the mapping drops it, and when it is refused: that is noted, so that
// all of them are named at once. parent and part are empty but for members of structs.
func (b *Binder) Bind(n *column.Type, path, parent, part string, depth int) (Binding, error) {
	out, err := b.bindStrictly(n, path, parent, part, depth)
	var re *column.RefusedError
	if errors.As(err, &re) {
		n.Drop() // nobody reads it
		b.Refusals = append(b.Refusals, column.RefusedError{Column: path, Reason: re.Reason})
		return nil, nil
	}
	return out, err
}

func (b *Binder) bindStrictly(n *column.Type, path, parent, part string, depth int) (Binding, error) {
	cm := b.Mapping.Columns[path]
	if cm == nil {
		cm = &Column{}
	}
	b.Seen[path] = n.Shape == column.Map
	if cm.Drop {
		n.Drop()
		return nil, nil
	}
	// The members of a struct count one by one: the mapping may drop those that are too deep.
	if depth > b.limits.Depth || n.Shape != column.Struct && depth+n.Depth()-1 > b.limits.Depth {
		return nil, column.RefuseToDrop(path, "nested deeper than %d", b.limits.Depth)
	}
	// The members of a struct are looked at one by one: the mapping may drop those that have no place.
	if r := n.Refused(); r != nil && n.Shape != column.Struct {
		return nil, column.RefuseToDrop(path, "%s", r.Reason)
	}
	if cm.TimeFormat != nil && !n.HasTimeFormat() {
		return nil, column.Refuse(path, "time_format is for columns of text, and for columns and members of JSON "+
			"around which nothing has a \"type\": this is %v", n)
	}
	switch {
	case n.Shape == column.Struct:
		if cm.Kind != 0 || cm.Elem != 0 || cm.Hash || cm.Map != "" || cm.DropNulls {
			return nil, column.Refuse(path, "a struct becomes one feature a member: kind, elem, hash, map and nulls "+
				"go to %q", column.Path(path, n.Children[0].Name))
		}
		b.groups[path] = group{parent, true}
		return b.bindStruct(n, path, depth)
	case n.Shape == column.Map && cm.Map != "weighted" && cm.Kind != vector.Weighted:
		b.groups[path] = group{parent, false}
		return b.bindMap(n, path, cm)
	}
	conv, err := b.converter(n, cm)
	if errors.Is(err, errNoPlace) {
		keep := ""
		if n.IsJSON {
			keep = fmt.Sprintf("; {\"columns\": {%q: {\"type\": \"string\"}}} keeps its JSON text", path)
		}
		return nil, column.RefuseToDrop(path, "%v%s", err, keep)
	}
	if err != nil {
		return nil, column.Refuse(path, "%v", err)
	}
	f, err := b.field(path, conv.t, conv.logical, parent, part)
	if err != nil {
		return nil, err
	}
	f.NoValue = n.Shape == column.Null
	return &valueBinding{f, path, conv}, nil
}

// A valueBinding makes one feature of a column.
type valueBinding struct {
	field *Field
	path  string
	conv  *converter
}

func (v *valueBinding) Finds() bool { return false }

func (v *valueBinding) Fits(a *column.Array, _ int, _ int64) int { return a.Len }

func (v *valueBinding) Emit(a *column.Array, mask vector.Bitmap, o *Output) {
	a = a.Masked(mask)
	c := v.conv.column(a, func(entry int, err error) { o.Note(entry, v.path, err) })
	o.add(v.field, c)
}

// A structBinding makes a feature of each member, and a marker, also where the struct is never null: it says that the
// members are one struct's, so that an export can fold them back.
type structBinding struct {
	marker  *Field
	members []Binding // nil: dropped
}

// StructMarker is the Logical of a struct's marker.
const StructMarker = "struct"

// MapMarker is the Logical of the marker of a map whose keys are strings (NoElem) or integers.
func MapMarker(key vector.Elem) string {
	if key == vector.NoElem {
		return "map<string>"
	}
	return "map<" + key.String() + ">"
}

func (b *Binder) bindStruct(n *column.Type, path string, depth int) (Binding, error) {
	if len(n.Children) == 0 {
		return nil, column.RefuseToDrop(path, "a struct without members has no values to store")
	}
	s := &structBinding{}
	var err error
	if s.marker, err = b.field(path, vector.Type{Kind: vector.Dense, Elem: vector.Bool}, StructMarker, path,
		""); err != nil {
		return nil, err
	}
	for _, c := range n.Children {
		m, err := b.Bind(c, column.Path(path, c.Name), path, c.Name, depth+1)
		if err != nil {
			return nil, err
		}
		s.members = append(s.members, m)
	}
	return s, nil
}

func (s *structBinding) Finds() bool {
	return slices.ContainsFunc(s.members, func(m Binding) bool { return m != nil && m.Finds() })
}

func (s *structBinding) Fits(a *column.Array, from int, most int64) int {
	end := a.Len
	for i, m := range s.members {
		if m != nil && m.Finds() {
			end = min(end, m.Fits(a.Children[i], from, most))
		}
	}
	return end
}

func (s *structBinding) Emit(a *column.Array, mask vector.Bitmap, o *Output) {
	a = a.Masked(mask)
	o.add(s.marker, markerColumn(a))
	for i, m := range s.members {
		if m != nil {
			m.Emit(a.Children[i], a.Valid, o)
		}
	}
}

// markerColumn is true in the rows where a is not null, and null elsewhere.
func markerColumn(a *column.Array) *vector.Column {
	c := newColumn(vector.Type{Kind: vector.Dense, Elem: vector.Bool}, a)
	c.Ints = make([]int64, a.Len)
	for i := range c.Ints {
		if c.Present == nil || c.Present.Get(i) {
			c.Ints[i] = 1
		}
	}
	return c
}

// presence returns a's validity, copied, nil when nothing is null.
func presence(a *column.Array) vector.Bitmap {
	if a.Type.Shape == column.Null {
		return make(vector.Bitmap, vector.BitmapWords(a.Len))
	}
	if a.Valid == nil || a.Valid.Count() == a.Len {
		return nil
	}
	return slices.Clone(a.Valid)
}

// A mapBinding makes a feature of each key of a map column, as the keys turn up, and a marker.
type mapBinding struct {
	b        *Binder
	path     string
	marker   *Field
	conv     *converter // of the values
	byInt    map[int64]*mapKey
	byString map[string]*mapKey
	keys     int
	// dropNulls: a key whose value is null is not there.
	dropNulls bool
	nullBytes int64 // of a row that does not have a key, in the column of the key
	fits      int   // calls of Fits
}

// A mapKey is the feature of one key and the column that the current chunk gives it.
type mapKey struct {
	field  *Field // nil: dropped
	column *vector.Column
	last   int // the row that held the key last in this chunk, or -1
	fits   int // the call of Fits that met the key last
}

func (b *Binder) bindMap(n *column.Type, path string, cm *Column) (Binding, error) {
	k, v := n.Children[0], n.Children[1]
	if k.Shape != column.String && (k.Shape != column.Bytes || k.Logical != "") &&
		(k.Shape != column.Number || !k.Elem.IsInteger() || k.Logical != "") {
		return nil, column.RefuseToDrop(path, "a map's keys become names of features: %v keys cannot, integers and "+
			"strings can", k)
	}
	if v.Shape == column.Struct || v.Shape == column.Null || v.Shape == column.Map &&
		(v.Children[1].Shape == column.Map || v.Children[1].Shape == column.Struct) {
		return nil, column.RefuseToDrop(path, "values of type %v in a map have no place in a table", v)
	}
	inner := *cm
	inner.Map = "" // it was this map's
	if v.Shape == column.Map {
		inner.Map = "weighted"
	}
	conv, err := b.converter(v, &inner)
	if errors.Is(err, errNoPlace) {
		return nil, column.RefuseToDrop(path, "values of the map: %v", err)
	}
	if err != nil {
		return nil, column.Refuse(path, "values of the map: %v", err)
	}
	m := &mapBinding{b: b, path: path, conv: conv, byInt: map[int64]*mapKey{}, byString: map[string]*mapKey{},
		dropNulls: cm.DropNulls}
	nulls := vector.NewColumn(conv.t)
	nulls.AppendNulls(64)
	m.nullBytes = max(1, int64(nulls.SizeBytes()/64))
	m.marker, err = b.field(path, vector.Type{Kind: vector.Dense, Elem: vector.Bool}, MapMarker(k.Elem), path, "")
	return m, err
}

var (
	errNullKey      = errors.New("a null key in a map")
	errEmptyKey     = errors.New("an empty key in a map: it names no feature")
	errKeyNotUTF8   = errors.New("a key in a map that is not UTF-8: it names no feature")
	errDuplicateKey = errors.New("the same key twice in a map")
	errNullInList   = errors.New("a null inside a list; \"nulls\": \"drop\" in a mapping file leaves it out")
)

func (m *mapBinding) Finds() bool { return true }

// fewFilled: columns of which less than one in so many values is no null may be cut.
const fewFilled = 4

// Fits counts the keys, each of which has a value for every row of a batch, null or not: a map of one key of thousands
// in each row would take the square of its size.
func (m *mapBinding) Fits(a *column.Array, from int, most int64) int {
	if rows, entries := int64(a.Len-from), int64(a.Offsets[a.Len]-a.Offsets[from]); rows*m.nullBytes <= most/max(1,
		entries) {
		return a.Len
	}
	m.fits++
	keys, touched, entries := a.Children[0], int64(0), int64(0)
	newInts, newStrings := map[int64]bool{}, map[string]bool{}
	for row := from; row < a.Len; row++ {
		for e := int(a.Offsets[row]); e < int(a.Offsets[row+1]); e++ {
			var k *mapKey
			isNew := false
			if keys.Type.Shape == column.Number {
				if k = m.byInt[keys.Ints[e]]; k == nil && !newInts[keys.Ints[e]] {
					newInts[keys.Ints[e]], isNew = true, true
				}
			} else {
				raw := keys.Data[keys.Offsets[e]:keys.Offsets[e+1]]
				if k = m.byString[string(raw)]; k == nil && !newStrings[string(raw)] {
					newStrings[string(raw)], isNew = true, true
				}
			}
			if isNew || k != nil && k.field != nil && k.fits != m.fits {
				touched++
			}
			if k != nil {
				k.fits = m.fits
			}
			entries++
		}
		if cells := touched * int64(row-from+1); row > from && cells*m.nullBytes > most && cells > fewFilled*entries {
			return row
		}
	}
	return a.Len
}

func (m *mapBinding) Emit(a *column.Array, mask vector.Bitmap, o *Output) {
	a = column.CompactLists(a.Masked(mask))
	o.add(m.marker, markerColumn(a))
	keys, values := a.Children[0], a.Children[1]
	line := &column.Lineage{Offsets: a.Offsets}
	bad := func(entry int, err error) { o.Note(line.Row(entry), m.path, err) }
	ReportFaults(keys, bad)
	flat := m.conv.column(values, bad)
	var touched []*mapKey
	for row := range a.Len {
		for e := int(a.Offsets[row]); e < int(a.Offsets[row+1]); e++ {
			if keys.IsNull(e) {
				o.Note(row, m.path, errNullKey)
				continue
			}
			if m.dropNulls && flat.IsNull(e) {
				continue
			}
			k, err := m.key(keys, e)
			if err != nil {
				if errors.Is(err, errEmptyKey) || errors.Is(err, errKeyNotUTF8) {
					o.Note(row, m.path, err)
					continue
				}
				if o.Fail == nil {
					o.Fail = err
				}
				return
			}
			if k.field == nil {
				continue
			}
			if k.column == nil {
				k.column, k.last = vector.NewColumn(k.field.Type), -1
				touched = append(touched, k)
			}
			if k.last == row {
				o.Note(row, m.path, fmt.Errorf("%w: %q", errDuplicateKey, k.field.OriginKey))
				continue
			}
			if flat.IsNull(e) {
				o.Note(row, m.path, fmt.Errorf("key %q has a null value; \"nulls\": \"drop\" in a mapping file takes "+
					"it as a key that is not there", k.field.OriginKey))
				continue
			}
			k.column.AppendNulls(row - k.column.Rows)
			k.column.AppendRow(flat, e)
			k.last = row
		}
	}
	for _, k := range touched {
		k.column.AppendNulls(a.Len - k.column.Rows)
		o.add(k.field, k.column)
		k.column = nil
	}
}

// key returns the feature of the key at entry e, a new one the first time.
func (m *mapBinding) key(keys *column.Array, e int) (*mapKey, error) {
	var text string
	if keys.Type.Shape == column.Number {
		v := keys.Ints[e]
		if k := m.byInt[v]; k != nil {
			return k, nil
		}
		switch keys.Type.Elem {
		case vector.Uint64:
			text = fmt.Sprint(uint64(v))
		case vector.Bool:
			text = fmt.Sprint(v != 0)
		default:
			text = fmt.Sprint(v)
		}
		k, err := m.newKey(text)
		if err == nil {
			m.byInt[v] = k
		}
		return k, err
	}
	raw := keys.Data[keys.Offsets[e]:keys.Offsets[e+1]]
	if k := m.byString[string(raw)]; k != nil {
		return k, nil
	}
	if len(raw) == 0 {
		return nil, errEmptyKey
	}
	if !utf8.Valid(raw) {
		return nil, errKeyNotUTF8
	}
	text = string(raw)
	k, err := m.newKey(text)
	if err == nil {
		m.byString[text] = k
	}
	return k, err
}

func (m *mapBinding) newKey(text string) (*mapKey, error) {
	path := column.Path(m.path, text)
	if m.b.Mapping.Dropped(path) {
		return &mapKey{}, nil
	}
	if m.keys++; m.keys > m.b.limits.MapKeys {
		return nil, column.Refuse(m.path, "the map has more than %d keys, each a feature; drop it, or map it with "+
			"\"map\": \"weighted\" where keys are ids", m.b.limits.MapKeys)
	}
	if cm := m.b.Mapping.Columns[path]; cm != nil && cm.TimeFormat != nil {
		return nil, column.Refuse(m.path, "time_format of the key %s: give it to the column, for all keys",
			column.Quote(text))
	}
	f, err := m.b.field(path, m.conv.t, m.conv.logical, m.path, text)
	return &mapKey{field: f}, err
}

// ReportFaults reports the entries of a itself, not of its children, that could not be taken over.
func ReportFaults(a *column.Array, bad func(int, error)) {
	for _, f := range a.Faults {
		bad(f.Entry, f.Err)
	}
}
