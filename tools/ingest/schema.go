package ingest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// A feature is one feature of the table as the ingest sees it. Its number stands for it in buffers and spill files.
type feature struct {
	number int
	name   string
	role   storage.Role
	// Set once the dump has the feature (seen); what the table says is in known.
	seen         bool
	valued       bool        // a file said its type; else typ is a placeholder
	typ          vector.Type // widened over the files read so far
	logical      string
	originColumn string
	originKey    string
	firstFile    string // that had it
	rawBytes     uint64 // decoded, so far
	known        *storage.Feature
	generation   uint32   // of a feature that the table does not have
	class        keyClass // of the first file: keys must keep it
}

// A schema merges the fields of all files with each other and with the table. Safe for concurrent use.
type schema struct {
	// mu guards everything below and the features' fields.
	mu      sync.Mutex
	taken   map[storage.FeatureID]bool
	byName  map[string]*feature
	list    []*feature
	session *feature
	time    *feature
}

// newSchema returns the schema of a table that has the given features. taken are the ids that a new feature must not
// have, those of features that were dropped or renamed.
func newSchema(known []storage.Feature, taken map[storage.FeatureID]bool) *schema {
	s := &schema{byName: make(map[string]*feature, len(known)), taken: taken}
	for i := range known {
		f := s.add(known[i].Name)
		f.known = &known[i]
		f.role = known[i].Role
		s.noteRole(f)
	}
	return s
}

func (s *schema) add(name string) *feature {
	f := &feature{number: len(s.list), name: name}
	for s.taken != nil && s.taken[storage.NewFeatureID(name, f.generation)] {
		f.generation++
	}
	s.list = append(s.list, f)
	s.byName[name] = f
	return f
}

// noteRole remembers f when it is the session or time key, and returns the other feature that claims to be.
func (s *schema) noteRole(f *feature) *feature {
	slot := &s.session
	switch f.role {
	case storage.RoleSessionKey:
	case storage.RoleTimeKey:
		slot = &s.time
	default:
		return nil
	}
	if *slot != nil && *slot != f {
		return *slot
	}
	*slot = f
	return nil
}

// bind returns the feature that a field of a file is, after widening it to hold the field's type. Errors name both
// files.
func (s *schema) bind(file string, f *source.Field) (*feature, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byName[f.Name]
	if x == nil {
		x = s.add(f.Name)
	}
	if err := x.setRole(file, f.Role); err != nil {
		return nil, err
	}
	if other := s.noteRole(x); other != nil {
		return nil, fmt.Errorf("feature %q of %s and feature %q would both be the %s", x.name, file, other.name, x.role)
	}
	if f.NoValue {
		x.noteNoValue(file, f)
		return x, nil
	}
	if err := x.merge(file, f); err != nil {
		return nil, err
	}
	if err := x.checkKnown(file); err != nil {
		return nil, err
	}
	if x == s.session {
		if err := checkSessionType(x.name, f.Type); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if x == s.time {
		if err := checkTimeType(x.name, f.Type); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return x, nil
}

func (x *feature) setRole(file string, role storage.Role) error {
	cluster := role == storage.RoleSessionKey || role == storage.RoleTimeKey
	switch {
	case role == storage.RoleFeature || x.role == role:
		return nil
	case x.role == storage.RoleFeature && (x.known == nil || cluster):
		x.role = role
		return nil
	}
	return fmt.Errorf("feature %q is a %s in %s, but was a %s before: a feature keeps its role", x.name, role, file,
		x.role)
}

// noteNoValue remembers that a file has the feature, null in every row and of no type.
func (x *feature) noteNoValue(file string, f *source.Field) {
	if x.seen {
		return
	}
	x.seen, x.firstFile = true, file
	x.originColumn, x.originKey = f.OriginColumn, f.OriginKey
	x.typ, x.logical = f.Type, f.Logical
	if x.known != nil {
		x.typ, x.logical = x.known.Type, x.known.Logical
		x.originColumn, x.originKey = x.known.OriginColumn, x.known.OriginKey
	}
}

// merge widens x to hold a field of a file.
func (x *feature) merge(file string, f *source.Field) error {
	if !x.valued {
		x.seen, x.valued, x.firstFile = true, true, file
		x.typ, x.logical = f.Type, f.Logical
		x.originColumn, x.originKey = f.OriginColumn, f.OriginKey
		x.class = classOf(f.Type)
		return nil
	}
	if logical, ok := widerDecimal(x.logical, f.Logical); ok && f.Type == x.typ {
		x.logical = logical
	} else if f.Logical != x.logical {
		return fmt.Errorf("feature %q is %s in %s and %s in %s: they do not mix%s", x.name,
			typeName(x.typ, x.logical), x.firstFile, typeName(f.Type, f.Logical), file, mixHint(x.logical, f.Logical))
	}
	if f.OriginColumn != x.originColumn || f.OriginKey != x.originKey {
		return fmt.Errorf("feature %q comes from %s in %s and from %s in %s: rename one of them with --mapping", x.name,
			originName(x.name, x.originColumn, x.originKey), x.firstFile, originName(f.Name, f.OriginColumn,
				f.OriginKey), file)
	}
	if f.Type == x.typ {
		return nil
	}
	w, err := vector.Widen(x.typ, f.Type)
	if err != nil {
		return fmt.Errorf("feature %q is %v in %s and %v in %s: no type holds both exactly; rename or drop one "+
			"with --mapping, or say the \"elem\" of its numbers",
			x.name, x.typ, x.firstFile, f.Type, file)
	}
	if keyed := x.role == storage.RoleSessionKey || x.role == storage.RoleTimeKey; keyed && classOf(f.Type) != x.class {
		return fmt.Errorf("%s %q is %v in %s and %v in %s: a key is of one kind in all files of a dump",
			x.role, x.name, x.typ, x.firstFile, f.Type, file)
	}
	x.typ = w
	return nil
}

// checkKnown returns an error when the table's feature of that name cannot hold x.
func (x *feature) checkKnown(file string) error {
	k := x.known
	if k == nil {
		return nil
	}
	if k.OriginColumn != x.originColumn || k.OriginKey != x.originKey {
		return fmt.Errorf("feature %q comes from %s in the table and from %s in %s: rename it with --mapping", x.name,
			originName(x.name, k.OriginColumn, k.OriginKey), originName(x.name, x.originColumn, x.originKey), file)
	}
	if logical, ok := widerDecimal(k.Logical, x.logical); ok && k.Type == x.typ && logical == k.Logical {
		x.logical = logical
	} else if k.Logical != x.logical {
		return fmt.Errorf("feature %q is %s in the table and %s in %s: they do not mix%s", x.name,
			typeName(k.Type, k.Logical), typeName(x.typ, x.logical), file, mixTable(k.Logical, x.logical))
	}
	if _, err := vector.Widen(k.Type, x.typ); err != nil {
		return fmt.Errorf("feature %q is %v in the table and %v in %s: no type holds both exactly; rename or drop "+
			"it with --mapping",
			x.name, k.Type, x.typ, file)
	}
	return nil
}

// stored returns what the feature's files in the new segments say of it. A feature that has no role in the table gets
// none there, even when this ingest clusters by it.
func (x *feature) stored() storage.Feature {
	f := storage.Feature{
		Name: x.name, Type: x.typ, Role: x.role, Logical: x.logical,
		OriginColumn: x.originColumn, OriginKey: x.originKey,
	}
	if x.known != nil {
		f.ID, f.Generation, f.Role = x.known.ID, x.known.Generation, x.known.Role
	} else {
		f.ID, f.Generation = storage.NewFeatureID(x.name, x.generation), x.generation
	}
	return f
}

// committed returns what the table's schema shall say of the feature: the type holds old and new values.
func (x *feature) committed() (f storage.Feature, widened bool, err error) {
	f = x.stored()
	if x.known == nil {
		return f, false, nil
	}
	f.Type, err = vector.Widen(x.known.Type, x.typ)
	return f, f.Type != x.known.Type, err
}

// sessionKey returns the feature that is the session key, or nil.
func (s *schema) sessionKey() *feature {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// timeKey returns the feature that is the time key, or nil.
func (s *schema) timeKey() *feature {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

// types returns the types so far by feature number; that of a feature that the dump has not shown yet has no kind.
func (s *schema) types() []vector.Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]vector.Type, len(s.list))
	for i, f := range s.list {
		out[i] = f.typ
	}
	return out
}

// packOrder returns the features of the dump in the order in which packs hold them.
func (s *schema) packOrder(p writer.Popularity) []*writer.Feature {
	seen := make([]*feature, 0, len(s.list))
	for _, f := range s.list {
		if f.seen {
			seen = append(seen, f)
		}
	}
	writer.SortForPacks(seen, p, func(f *feature) (storage.Feature, uint64) {
		known := f.stored()
		known.Role = f.role
		return known, f.rawBytes
	})
	out := make([]*writer.Feature, len(seen))
	for i, f := range seen {
		out[i] = &writer.Feature{Feature: f.stored(), Number: f.number, RawBytes: f.rawBytes}
	}
	return out
}

// widerDecimal returns the one of two logical types that holds the values of both, stored alike, where they are
// decimals of one scale.
func widerDecimal(a, b string) (string, bool) {
	var p, q, scale, other int
	if _, err := fmt.Sscanf(a, "decimal(%d, %d)", &p, &scale); err != nil {
		return "", false
	}
	if _, err := fmt.Sscanf(b, "decimal(%d, %d)", &q, &other); err != nil || scale != other {
		return "", false
	}
	const narrowest = 38 // digits of the wide ones that are stored in 16 bytes
	if (p > narrowest) != (q > narrowest) {
		return "", false
	}
	if q > p {
		return b, true
	}
	return a, true
}

// mixHint says what to do about logical types that do not mix, where something can be done.
func mixHint(a, b string) string {
	if strings.HasPrefix(a, "timestamp[") && strings.HasPrefix(b, "timestamp[") {
		return `; say with --mapping what they shall be, as in {"timestamp": "us"}`
	}
	return ""
}

// mixTable is mixHint where the table has one of them, which stays as it is.
func mixTable(table, file string) string {
	if mixHint(table, file) == "" {
		return ""
	}
	return fmt.Sprintf(`; say with --mapping that the file's shall be as the table's, {"timestamp": %q}, or give `+
		`them another name, {"rename": ...}`,
		strings.TrimSuffix(strings.TrimPrefix(table, "timestamp["), "]"))
}

func typeName(t vector.Type, logical string) string {
	if logical == "" {
		return t.String()
	}
	return t.String() + " (" + logical + ")"
}

func originName(name, column, key string) string {
	if column == "" {
		return fmt.Sprintf("column %q", name)
	}
	return fmt.Sprintf("%q of column %q", key, column)
}
