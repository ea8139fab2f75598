package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// InferMapping opens every file, reads its schema (of JSON lines: the file) and returns a mapping file that says what
// ingest would do by itself: an entry for each feature, ready to be edited. A column whose type has no place in a table
// is entered as dropped, with the reason. The features that the keys of a map become are not listed: keys are found
// while reading. What the mapping file says that was given is kept. Stdin is used up.
func InferMapping(ctx context.Context, files []File) ([]byte, error) {
	m := &inferredMapping{at: map[string]int{}}
	for i, f := range files {
		s, err := f.openLenient(ctx)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := m.given(s.binder.Mapping); err != nil {
				return nil, err
			}
		}
		for _, field := range s.binder.Fields {
			m.feature(field)
		}
		for _, r := range s.binder.Refusals {
			m.refusal(r)
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	return m.text()
}

// An inferredMapping collects the entries of a mapping file in the order of the columns.
type inferredMapping struct {
	entries []inferredEntry
	at      map[string]int             // path -> index in entries
	columns map[string]map[string]any  // of the mapping file that was given
	rest    map[string]json.RawMessage // its other members
}

// given takes over the mapping file that the files were read with.
func (m *inferredMapping) given(from *mapping.Mapping) error {
	if len(from.Raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(from.Raw, &m.rest); err != nil {
		return err
	}
	if columns := m.rest["columns"]; columns != nil {
		if err := json.Unmarshal(columns, &m.columns); err != nil {
			return err
		}
	}
	delete(m.rest, "columns")
	return nil
}

type inferredEntry struct {
	path   string
	typ    vector.Type
	values map[string]any
}

func (m *inferredMapping) entry(path string) (e *inferredEntry, isNew bool) {
	i, ok := m.at[path]
	if !ok {
		i = len(m.entries)
		m.at[path] = i
		values := map[string]any{}
		maps.Copy(values, m.columns[path])
		delete(m.columns, path)
		m.entries = append(m.entries, inferredEntry{path: path, values: values})
	}
	return &m.entries[i], !ok
}

func (m *inferredMapping) feature(f *mapping.Field) {
	e, isNew := m.entry(f.Path)
	t := f.Type
	if !isNew {
		if w, err := vector.Widen(e.typ, t); err == nil {
			t = w
		} else if !f.NoValue {
			e.values["//"] = fmt.Sprintf("%v in some files, %v in others: no type holds both", e.typ, t)
			return
		}
	}
	e.typ = t
	about := t.String()
	switch {
	case f.Logical == mapping.StructMarker:
		about = "a struct: true where it is not null"
	case f.OriginColumn != "" && f.OriginKey == "":
		about = f.Logical + ": a feature a key; this one is true where the map is not null"
	case f.NoValue:
		about = "no value was seen"
	case f.Logical != "":
		about += ", " + f.Logical
	}
	e.values["//"] = about
	if f.Role != catalog.RoleFeature {
		e.values["role"] = mapping.RoleName(f.Role)
	}
	if f.Name != f.Path {
		e.values["rename"] = f.Name
	}
}

func (m *inferredMapping) refusal(r column.RefusedError) {
	e, _ := m.entry(r.Column)
	e.values["//"] = r.Reason
	e.values["drop"] = true
}

func (m *inferredMapping) text() ([]byte, error) {
	// Columns that the mapping drops, and those that these files do not have, are none of the features.
	for _, path := range slices.Sorted(maps.Keys(m.columns)) {
		m.entry(path)
	}
	var b bytes.Buffer
	b.WriteString("{\n  \"columns\": {")
	for i, e := range m.entries {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n    ")
		if err := appendMember(&b, e.path, e.values); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n  }")
	for _, name := range slices.Sorted(maps.Keys(m.rest)) {
		b.WriteString(",\n  ")
		if err := appendMember(&b, name, m.rest[name]); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// appendMember appends a member of a JSON object, on one line, with < and > as they are.
func appendMember(b *bytes.Buffer, name string, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for i, v := range []any{name, value} {
		if err := e.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the line end
		if i == 0 {
			b.WriteString(": ")
		}
	}
	return nil
}
