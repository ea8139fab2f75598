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
// an entry for each column, ready to be edited. A type that has no place in a table is entered as dropped, with the
// reason as its comment. Comments are members called "//", which a mapping file may hold anywhere in an entry.
func InferMapping(ctx context.Context, files []File) ([]byte, error) {
	type entry struct{ name, text string }
	var entries []entry
	at := map[string]int{}
	put := func(name, text string, files int) {
		if i, ok := at[name]; ok {
			entries[i].text = text
			return
		}
		at[name] = len(entries)
		entries = append(entries, entry{name, text})
	}
	seen := map[string]vector.Type{}
	for _, f := range files {
		s, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		ts, ok := s.(*tableSource)
		if !ok {
			s.Close()
			return nil, fmt.Errorf("%s: a source without a schema", f.Path)
		}
		for _, field := range ts.binder.fields {
			path := ts.binder.pathOf(field)
			t := field.Type
			if old, ok := seen[path]; ok {
				if w, err := vector.Widen(old, t); err == nil {
					t = w
				}
			}
			seen[path] = t
			put(path, describeField(field, t), len(files))
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	b.WriteString("{\n  \"columns\": {\n")
	for i, e := range entries {
		name, err := json.Marshal(e.name)
		if err != nil {
			return nil, err
		}
		comma := ","
		if i == len(entries)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "    %s: %s%s\n", name, e.text, comma)
	}
	b.WriteString("  }\n}\n")
	return []byte(b.String()), nil
}

// describeField returns the entry of a feature.
func describeField(f *Field, t vector.Type) string {
	var members []string
	add := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err != nil {
			raw = []byte("null")
		}
		members = append(members, fmt.Sprintf("%q: %s", key, raw))
	}
	if marker := f.OriginColumn != "" && f.OriginKey == ""; marker {
		add("//", "a map or struct: a feature for each key or member, and this one, which tells null from empty")
	} else {
		what := t.String()
		if f.Logical != "" {
			what += ", " + f.Logical
		}
		add("//", what)
	}
	if f.Role != storage.RoleFeature {
		add("role", RoleName(f.Role))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// pathOf returns the name that the source gives a feature, before any renaming.
func (b *binder) pathOf(f *Field) string {
	for path, o := range b.byPath {
		if o == f {
			return path
		}
	}
	return f.Name
}
