package reader

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/storage"
)

// schema is the part of a snapshot that selecting features needs.
type schema interface {
	Lookup(ctx context.Context, names ...string) ([]storage.Feature, error)
	Features(ctx context.Context) ([]storage.Feature, error)
}

// selectFeatures resolves names, globs and sets in order. It reads the whole schema only when there is a glob or a set.
func selectFeatures(ctx context.Context, snap schema, entries []string) ([]storage.Feature, error) {
	if len(entries) == 0 {
		return nil, errors.New("features: none asked for: want names, globs, @all, @labels or @keys")
	}
	var names []string
	for _, e := range entries {
		if e == "" {
			return nil, errors.New("features: an empty name")
		}
		if !isPattern(e) {
			names = append(names, e)
		}
	}
	var byName []storage.Feature
	if len(names) > 0 {
		var err error
		if byName, err = snap.Lookup(ctx, names...); err != nil {
			return nil, err
		}
	}
	var all []storage.Feature
	if len(names) < len(entries) {
		var err error
		if all, err = snap.Features(ctx); err != nil {
			return nil, err
		}
	}
	var out []storage.Feature
	seen := make(map[storage.FeatureID]bool)
	add := func(f storage.Feature) {
		if !seen[f.ID] {
			seen[f.ID] = true
			out = append(out, f)
		}
	}
	for _, e := range entries {
		if !isPattern(e) {
			add(byName[0])
			byName = byName[1:]
			continue
		}
		match, err := matcher(e)
		if err != nil {
			return nil, err
		}
		found := false
		for _, f := range all {
			if match(f) {
				found = true
				add(f)
			}
		}
		if !found {
			return nil, fmt.Errorf("features: %q selects no feature of the table: %w", e, storage.ErrNotFound)
		}
	}
	return out, nil
}

// isPattern reports whether an entry is a glob or a set and not a plain name.
func isPattern(e string) bool { return e[0] == '@' || strings.ContainsAny(e, `*?\`) }

func matcher(entry string) (func(storage.Feature) bool, error) {
	switch entry {
	case "@all":
		return func(storage.Feature) bool { return true }, nil
	case "@labels":
		return func(f storage.Feature) bool { return f.Role == storage.RoleLabel }, nil
	case "@keys":
		return func(f storage.Feature) bool { return isKey(f.Role) }, nil
	}
	if entry[0] == '@' {
		return nil, fmt.Errorf(`features: set %q: want @all, @labels or @keys (write \@ for a name that begins so)`, entry)
	}
	return func(f storage.Feature) bool { return globMatch(entry, f.Name) }, nil
}

// globMatch reports whether name matches pattern: * stands for any bytes, ? for one byte, \ takes the next byte as it
// is. Its time is at most the product of the lengths.
func globMatch(pattern, name string) bool {
	p, n := 0, 0
	starP, starN := -1, 0 // where to try again: after the last *, one byte further
	for n < len(name) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				starP, starN = p+1, n
				p++
				continue
			case c == '?':
				p++
				n++
				continue
			case c == '\\' && p+1 < len(pattern):
				if pattern[p+1] == name[n] {
					p += 2
					n++
					continue
				}
			case c == name[n]:
				p++
				n++
				continue
			}
		}
		if starP < 0 {
			return false
		}
		starN++
		p, n = starP, starN
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
