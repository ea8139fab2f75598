package source

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// InferMapping opens every file, reads its schema and returns a mapping file that says what ingest would do by itself:
// an entry for each feature, ready to be edited. A column whose type has no place in a table is entered as dropped, with
// the reason. The features that the keys of a map become are not listed: keys are found while reading. Stdin is used up.
func InferMapping(ctx context.Context, files []File) ([]byte, error) {
	m := &inferredMapping{at: map[string]int{}}
	for _, f := range files {
		s, err := f.openLenient(ctx)
		if err != nil {
			return nil, err
		}
		for _, field := range s.binder.fields {
			m.feature(field)
		}
		for _, r := range s.binder.refusals {
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
	at      map[string]int // path -> index in entries
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
		m.entries = append(m.entries, inferredEntry{path: path, values: map[string]any{}})
	}
	return &m.entries[i], !ok
}

func (m *inferredMapping) feature(f *Field) {
	e, isNew := m.entry(f.path)
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
	case f.OriginColumn != "" && f.OriginKey == "":
		about = "a map or struct: true where it is not null"
	case f.NoValue:
		about = "no value was seen"
	case f.Logical != "":
		about += ", " + f.Logical
	}
	e.values["//"] = about
	if f.Role != storage.RoleFeature {
		e.values["role"] = RoleName(f.Role)
	}
	if f.Name != f.path {
		e.values["rename"] = f.Name
	}
}

func (m *inferredMapping) refusal(r RefusedError) {
	e, _ := m.entry(r.Column)
	e.values["//"] = r.Reason
	e.values["drop"] = true
}

func (m *inferredMapping) text() ([]byte, error) {
	var b strings.Builder
	b.WriteString("{\n  \"columns\": {")
	for i, e := range m.entries {
		if i > 0 {
			b.WriteString(",")
		}
		path, err := json.Marshal(e.path)
		if err != nil {
			return nil, err
		}
		values, err := json.Marshal(e.values)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n    %s: %s", path, values)
	}
	b.WriteString("\n  }\n}\n")
	return []byte(b.String()), nil
}
