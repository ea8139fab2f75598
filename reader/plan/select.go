package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// schema is the part of a snapshot that selecting features needs.
type schema interface {
	Find(ctx context.Context, names ...string) ([]*catalog.Feature, error)
	// Lookup is Find with an error for a name that is not there.
	Lookup(ctx context.Context, names ...string) ([]catalog.Feature, error)
	Features(ctx context.Context) ([]catalog.Feature, error)
	KeyFeatures(ctx context.Context) ([]catalog.Feature, error)
	PartitionKeys(ctx context.Context) ([]string, error)
}

// ErrSelection is returned when an entry of Options.Features is malformed, whatever features the table has.
var ErrSelection = errors.New("features")

func badSelection(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSelection, fmt.Sprintf(format, args...))
}

const selectWants = "want names, globs, @all, @labels, @keys or @partitions"

// selectFeatures resolves names, globs and sets in order. It reads the whole schema only if there is a glob, or a set
// other than @keys and @partitions. It reads the partition keys if there is a glob, a set, or a name that is no
// feature's.
func selectFeatures(ctx context.Context, snap schema, entries []string) ([]catalog.Feature, error) {
	if len(entries) == 0 {
		return nil, badSelection("none asked for: %s", selectWants)
	}
	var names []string
	for _, e := range entries {
		if e == "" {
			return nil, badSelection("an empty name: is there a comma too many?")
		}
		if !isPattern(e) {
			names = append(names, e)
		}
	}
	byName, err := findNames(ctx, snap, names)
	if err != nil {
		return nil, err
	}
	var all []catalog.Feature
	switch whole := slices.ContainsFunc(entries, func(e string) bool {
		return isPattern(e) && e != "@keys" && e != "@partitions"
	}); {
	case whole:
		all, err = everything(ctx, snap)
	case len(names) < len(entries):
		all, err = keysOnly(ctx, snap)
	}
	if err != nil {
		return nil, err
	}
	var out []catalog.Feature
	seen := make(map[string]bool)
	add := func(f catalog.Feature) {
		if !seen[f.Name] {
			seen[f.Name] = true
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
			return nil, fmt.Errorf("features: %w", &catalog.NotFoundError{Kind: "feature", Name: e, Pattern: true})
		}
	}
	return out, nil
}

// findOrKeys is Find. If a name is no feature's, it also returns the table's partition keys.
func findOrKeys(ctx context.Context, snap schema, names []string) (found []*catalog.Feature, keys []string, err error) {
	if found, err = snap.Find(ctx, names...); err == nil && slices.Contains(found, nil) {
		keys, err = snap.PartitionKeys(ctx)
	}
	return found, keys, err
}

// unknownName returns the error, with suggestions, for a name that is neither a feature's nor a partition key's.
func unknownName(ctx context.Context, snap schema, name string) error {
	_, err := snap.Lookup(ctx, name)
	if err == nil {
		err = catalog.NotFound("feature", name, nil)
	}
	return err
}

// hintedSchema is a schema whose Lookup says which overlay has a feature that is missing.
type hintedSchema struct {
	schema
	snap *storage.Snapshot
}

func (s hintedSchema) Lookup(ctx context.Context, names ...string) ([]catalog.Feature, error) {
	out, err := s.schema.Lookup(ctx, names...)
	return out, inOverlay(ctx, s.snap, err)
}

// inOverlay returns err, or if it is of a feature that does not exist and an overlay adds it, an error that says so. A
// feature that the table has renamed or dropped is the table's, also in an overlay that replaces it: to read the
// overlay does not bring the name back. A merged overlay is read anyway, and one of a branch has values for the
// branch's rows.
func inOverlay(ctx context.Context, snap *storage.Snapshot, err error) error {
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Kind != "feature" || missing.Pattern {
		return err
	}
	overlays, oerr := snap.Overlays(ctx)
	if oerr != nil {
		return err
	}
	for _, o := range overlays {
		i := slices.IndexFunc(o.Features, func(f catalog.Feature) bool { return f.Name == missing.Name })
		if i < 0 || o.Merged != 0 || o.Branch != "" {
			continue
		}
		known, kerr := snap.FeaturesByID(ctx, o.Features[i].ID)
		if kerr != nil {
			return err
		}
		if known[0] == nil {
			found := *missing
			found.Overlay = o.Name
			return fmt.Errorf("table %s: %w", snap.Table().Name(), &found)
		}
	}
	var dropped *catalog.NotFoundError // which a schema with overlays does not know
	if _, serr := snap.Lookup(ctx, missing.Name); errors.As(serr, &dropped) && dropped.Dropped {
		return serr
	}
	return err
}

// findNames returns the feature, or else the partition key, of each name.
func findNames(ctx context.Context, snap schema, names []string) ([]catalog.Feature, error) {
	if len(names) == 0 {
		return nil, nil
	}
	found, keys, err := findOrKeys(ctx, snap, names)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Feature, len(names))
	for i, f := range found {
		switch {
		case f != nil:
			out[i] = *f
		case slices.Contains(keys, names[i]) && utf8.ValidString(names[i]):
			out[i] = PartitionColumn(names[i])
		default:
			return nil, unknownName(ctx, snap, names[i])
		}
	}
	return out, nil
}

// keysOnly is everything for key features and partition keys only. It does not read the whole schema.
func keysOnly(ctx context.Context, snap schema) ([]catalog.Feature, error) {
	all, err := snap.KeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := snap.PartitionKeys(ctx)
	if err != nil {
		return nil, err
	}
	found, err := snap.Find(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		if found[i] == nil && utf8.ValidString(k) {
			all = append(all, PartitionColumn(k))
		}
	}
	return all, nil
}

// everything returns the features of the schema, then the partition keys whose names no feature has.
func everything(ctx context.Context, snap schema) ([]catalog.Feature, error) {
	all, err := snap.Features(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := snap.PartitionKeys(ctx)
	if err != nil {
		return nil, err
	}
	features := all[:len(all):len(all)]
	for _, k := range keys {
		taken := slices.ContainsFunc(features, func(f catalog.Feature) bool { return f.Name == k })
		if !taken && utf8.ValidString(k) {
			all = append(all, PartitionColumn(k))
		}
	}
	return all, nil
}

// PartitionColumn returns the element of Plan.Features for a partition key.
func PartitionColumn(key string) catalog.Feature {
	return catalog.Feature{Name: key, Type: vector.Type{Kind: vector.String}}
}

// IsPartitionKey reports whether an element of Plan.Features is a partition key: these have no ID.
func IsPartitionKey(f catalog.Feature) bool { return f.ID == 0 }

// isPattern reports whether an entry is a glob or a set and not a plain name.
func isPattern(e string) bool { return e[0] == '@' || strings.ContainsAny(e, `*?\`) }

// Names reports whether an entry of Options.Features selects exactly the feature of that name: it is the name, or the
// name with \ before characters of globs.
func Names(entry, name string) bool {
	if entry == name {
		return true
	}
	var plain strings.Builder
	for i := 0; i < len(entry); i++ {
		switch c := entry[i]; {
		case c == '*' || c == '?' || c == '@' && i == 0:
			return false
		case c == '\\' && i+1 < len(entry):
			i++
		}
		plain.WriteByte(entry[i])
	}
	return plain.String() == name
}

// Literal returns the entry of Options.Features that selects exactly the feature of that name.
func Literal(name string) string {
	if !strings.HasPrefix(name, "@") && !strings.ContainsAny(name, `*?\`) {
		return name
	}
	var b strings.Builder
	for i, c := range name {
		if c == '*' || c == '?' || c == '\\' || c == '@' && i == 0 {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// matcher returns the predicate of a glob or set.
func matcher(entry string) (func(catalog.Feature) bool, error) {
	switch entry {
	case "@all":
		return func(catalog.Feature) bool { return true }, nil
	case "@labels":
		return func(f catalog.Feature) bool { return f.Role == catalog.RoleLabel }, nil
	case "@keys":
		return func(f catalog.Feature) bool { return f.Role.IsKey() }, nil
	case "@partitions":
		return IsPartitionKey, nil
	}
	if entry[0] == '@' {
		return nil, badSelection(`set %q: %s (write \@ for a name that begins so)`, entry, selectWants)
	}
	return func(f catalog.Feature) bool { return globMatch(entry, f.Name) }, nil
}

// globMatch reports whether name matches pattern: * matches any bytes, ? one byte, and \ makes the next byte literal.
// It takes at most time proportional to the product of the lengths.
func globMatch(pattern, name string) bool {
	p, n := 0, 0
	starP, starN := -1, 0 // after a mismatch, continue after the last *, one byte later in name
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
