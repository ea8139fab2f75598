package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// A Mapping is what the mapping file says; docs/reference/types.md describes it. The zero Mapping changes nothing.
type Mapping struct {
	Columns     map[string]*Column
	PartitionBy []string
	Text        lines.Layout

	Raw []byte // the text that was parsed
}

// A Column says what becomes of a column, of a member of a struct ("parent.child") or of a key of a map ("column.key").
type Column struct {
	Rename   string
	Role     catalog.Role
	HasRole  bool
	Drop     bool
	Optional bool        // need not be in every file
	Kind     vector.Kind // 0: as the source says
	Elem     vector.Elem // 0: as the source says
	Dim      uint32
	Hash     bool   // strings become 63-bit ids
	Map      string // "", explode or weighted
	Type     string // text and JSON: the type, as hive.ParseType reads it
	// Timestamp is what the column's timestamps become: timestamp[us, tz=UTC]. Empty: as the source says.
	Timestamp string
	// TimeFormat says how text and JSON write the column's dates or timestamps; nil: as column.AppendText has them.
	TimeFormat *column.TimeFormat
	// DropNulls: nulls inside lists, and keys of maps whose value is null, are left out.
	DropNulls bool
}

var roleNames = map[string]catalog.Role{
	"feature": catalog.RoleFeature, "label": catalog.RoleLabel, "session_key": catalog.RoleSessionKey,
	"request_key": catalog.RoleRequestKey, "user_key": catalog.RoleUserKey, "time_key": catalog.RoleTimeKey,
}

// SetTimeFormat makes the column's time format, if it has one, that of n, whose type text or JSON has.
func (m *Mapping) SetTimeFormat(path string, n *column.Type) error {
	c := m.Columns[path]
	if c == nil || c.TimeFormat == nil {
		return nil
	}
	if err := n.SetTimeFormat(c.TimeFormat); err != nil {
		return column.Refuse(path, "%v", err)
	}
	return nil
}

// RoleName returns the word that a mapping file uses for r.
func RoleName(r catalog.Role) string {
	for n, v := range roleNames {
		if v == r {
			return n
		}
	}
	return fmt.Sprintf("role(%d)", r)
}

// Dropped reports whether m drops the column at path.
func (m *Mapping) Dropped(path string) bool {
	cm := m.Columns[path]
	return cm != nil && cm.Drop
}

// DropsIn reports whether m drops a member of the struct at path, or one deeper in it.
func (m *Mapping) DropsIn(path string) bool {
	for p, cm := range m.Columns {
		if cm.Drop && strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// Read reads a mapping file. An empty path gives the empty Mapping.
func Read(path string) (*Mapping, error) {
	if path == "" {
		return &Mapping{}, nil
	}
	raw, err := lines.ReadFile(path, "mapping")
	if err != nil {
		return nil, err
	}
	m, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Parse reads the text of a mapping file.
func Parse(raw []byte) (*Mapping, error) {
	raw = bytes.TrimPrefix(raw, []byte(lines.ByteOrderMark))
	m := &Mapping{Columns: map[string]*Column{}, Raw: raw}
	if len(bytes.TrimSpace(raw)) == 0 {
		return m, errors.New("nothing in it: want a JSON object, {} at least")
	}
	var whole json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, &whole); errors.As(err, &syntax) {
		return m, fmt.Errorf("line %d: not JSON: %w", 1+bytes.Count(raw[:min(int(syntax.Offset), len(raw))],
			[]byte("\n")), err)
	}
	err := strictObject(raw, "", []member{
		{"columns", func(v json.RawMessage) error {
			return eachMember(v, "columns", func(name string, v json.RawMessage) error {
				c, err := parseColumnMapping(name, v)
				m.Columns[name] = c
				return err
			})
		}},
		{"partition_by", into(&m.PartitionBy)},
		{"text", func(v json.RawMessage) error { return parseTextOptions(v, &m.Text) }},
	})
	return m, err
}

func parseColumnMapping(name string, raw json.RawMessage) (*Column, error) {
	c := &Column{}
	err := strictObject(raw, fmt.Sprintf("columns.%s", name), []member{
		{"rename", into(&c.Rename)},
		{"role", taken(func(s string) error {
			if c.Role, c.HasRole = roleNames[s]; !c.HasRole {
				return fmt.Errorf("role %q is none of %s", s, strings.Join(slices.Sorted(maps.Keys(roleNames)), ", "))
			}
			return nil
		})},
		{"drop", into(&c.Drop)},
		{"optional", into(&c.Optional)},
		{"kind", taken(func(s string) (err error) {
			if c.Kind, err = vector.ParseKind(s); err == nil && c.Kind == vector.Inverse {
				err = fmt.Errorf("kind %q: want dense, sparse, weighted, embedding, bytes or string", s)
			}
			return err
		})},
		{"elem", taken(func(s string) (err error) {
			c.Elem, err = vector.ParseElem(s)
			return err
		})},
		{"dim", into(&c.Dim, func(dim uint32) error {
			if dim == 0 || dim > vector.MaxDim {
				return fmt.Errorf("dim %d is not in 1 to %d", dim, vector.MaxDim)
			}
			return nil
		})},
		{"hash", into(&c.Hash)},
		{"map", into(&c.Map, either("map", "explode", "weighted"))},
		{"timestamp", taken(func(s string) error {
			unit, zone, _ := strings.Cut(s, ", ")
			if column.TimeUnits[unit] == 0 || zone != "" && zone != "tz=UTC" {
				return fmt.Errorf("timestamp %q: want s, ms, us or ns, and after it \", tz=UTC\" for instants", s)
			}
			c.Timestamp = "timestamp[" + s + "]"
			return nil
		})},
		{"nulls", taken(func(s string) error {
			c.DropNulls = s == "drop"
			return either("nulls", "bad", "drop")(s)
		})},
		{"type", into(&c.Type, isType)},
		{"time_format", taken(func(s string) (err error) {
			c.TimeFormat, err = column.ParseTimeFormat(s)
			return err
		})},
	})
	if err == nil && c.TimeFormat != nil && c.Type == "" {
		if c.Type = "date"; c.TimeFormat.Clock || c.Timestamp != "" {
			c.Type = "timestamp"
		}
	}
	return c, err
}

func parseTextOptions(raw json.RawMessage, t *lines.Layout) error {
	one := func(s string) error {
		if len(s) != 1 {
			return fmt.Errorf("%q: want one byte", s)
		}
		return nil
	}
	return strictObject(raw, "text", []member{
		{"delimiter", into(&t.Delimiter, func(s string) error {
			if s == "" {
				return errors.New("an empty delimiter separates nothing")
			}
			return nil
		})},
		{"items", into(&t.Items, one)},
		{"map_keys", into(&t.MapKeys, one)},
		{"quote", into(&t.Quote, func(s string) error {
			if t.NoQuotes = s == ""; t.NoQuotes {
				return nil
			}
			t.CSV = true
			return one(s)
		})},
		{"escape", into(&t.Escape, one)},
		{"null", func(v json.RawMessage) error { t.HasNull = true; return json.Unmarshal(v, &t.Null) }},
		{"header", into(&t.Header)},
		{"encoding", taken(func(name string) (err error) {
			t.Charset, err = lines.Charset(name)
			return err
		})},
		{"extra", into(&t.Extra, either("extra", lines.ExtraBad, lines.ExtraIgnore))},
		{"short", into(&t.Short, either("short", lines.ShortBad, lines.ShortNull))},
		{"infer", func(v json.RawMessage) error { t.HasInfer = true; return into(&t.Infer)(v) }},
		{"skip_lines", into(&t.SkipLines, func(n int) error {
			if n < 0 {
				return fmt.Errorf("skip_lines %d is negative", n)
			}
			return nil
		})},
		{"columns", taken(func(list []json.RawMessage) error {
			for i, raw := range list {
				var c lines.Column
				path := fmt.Sprintf("text.columns[%d]", i)
				if err := strictObject(raw, path, []member{{"name", into(&c.Name)},
					{"type", into(&c.Type)}}); err != nil {
					return err
				}
				if c.Name == "" {
					return fmt.Errorf("%s: want a name", path)
				}
				if c.Type != "" {
					if err := isType(c.Type); err != nil {
						return err
					}
				}
				t.Columns = append(t.Columns, c)
			}
			return nil
		})},
	})
}

// into reads a value into p, and then calls check with it.
func into[T any](p *T, check ...func(T) error) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if err := json.Unmarshal(v, p); err != nil {
			return err
		}
		for _, c := range check {
			if err := c(*p); err != nil {
				return err
			}
		}
		return nil
	}
}

// taken reads a value for take.
func taken[T any](take func(T) error) func(json.RawMessage) error { return into(new(T), take) }

// either returns what checks that the value of a key is a or b.
func either(key, a, b string) func(string) error {
	return func(s string) error {
		if s != a && s != b {
			return fmt.Errorf("%s %q is neither %s nor %s", key, s, a, b)
		}
		return nil
	}
}

func isType(s string) error {
	_, err := hive.ParseType(s, column.Limits{}.WithDefaults().Depth)
	return err
}

type member struct {
	name string
	read func(json.RawMessage) error
}

// strictObject reads a JSON object whose members are all known, each at most once. A member called "//" is a comment.
func strictObject(raw json.RawMessage, path string, members []member) error {
	return eachMember(raw, path, func(name string, v json.RawMessage) error {
		if name == "//" {
			return nil // a comment
		}
		names := make([]string, len(members))
		for i, m := range members {
			if m.name == name {
				return m.read(v)
			}
			names[i] = m.name
		}
		return fmt.Errorf("unknown key%s", column.DidYouMean(name, names))
	})
}

func eachMember(raw json.RawMessage, path string, visit func(string, json.RawMessage) error) error {
	at := func(key string, err error) error {
		if path != "" {
			key = strings.TrimSuffix(path+"."+key, ".")
		}
		if key == "" {
			return err
		}
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			err = fmt.Errorf("%s where %s is wanted", te.Value, wanted(te.Type))
		}
		if strings.HasPrefix(err.Error(), key) {
			return err
		}
		return fmt.Errorf("%s: %w", key, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil {
		return at("", err)
	}
	if t != json.Delim('{') {
		return at("", errors.New("want a JSON object"))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return at("", err)
		}
		name := t.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return at(name, err)
		}
		if seen[name] {
			return at(name, errors.New("given twice"))
		}
		seen[name] = true
		if err := visit(name, v); err != nil {
			return at(name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return at("", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return at("", errors.New("more than one JSON value"))
	}
	return nil
}

// wanted says in JSON's words what a Go type takes.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "array"
	}
	return "number from 0 on"
}
