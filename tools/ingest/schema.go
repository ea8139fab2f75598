package ingest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// A feature is one feature of the table as the ingest sees it. Its number stands for it in buffers and spill files.
type feature struct {
	// Feature is what the files read so far say of it, once the dump has it (seen). Its type is widened to hold all
	// values.
	catalog.Feature
	known     *catalog.Feature // what the table says of it; nil: it is new
	number    int
	seen      bool
	valued    bool     // a file said its type; else it is a placeholder, and a new feature is left out (kept)
	says      []say    // what files say of its type, each type once
	firstFile string   // that had it
	rawBytes  uint64   // decoded, so far
	class     keyClass // of the first file: keys must keep it
}

// A say is a type that files have of a feature.
type say struct {
	t       vector.Type
	logical string
	noValue bool // the type is a placeholder
	files   int  // that say so, but for those that were left out
}

// A schema merges the fields of all files with each other and with the table. Safe for concurrent use.
type schema struct {
	// mu guards everything below and the features' fields.
	mu      sync.Mutex
	taken   map[catalog.FeatureID]bool
	byName  map[string]*feature
	byFold  map[string][]*feature // by name in lower case
	beside  map[string]bool       // names in lower case of which a file has several spellings
	list    []*feature
	session *feature
	time    *feature
}

// newSchema returns the schema of a table that has the given features. taken are the ids that a new feature must not
// have, those of features that were dropped or renamed.
func newSchema(known []catalog.Feature, taken map[catalog.FeatureID]bool) *schema {
	s := &schema{byName: make(map[string]*feature, len(known)), byFold: make(map[string][]*feature, len(known)),
		beside: map[string]bool{}, taken: taken}
	for i := range known {
		f := s.add(known[i].Name)
		f.known = &known[i]
		f.Role = known[i].Role
		s.noteRole(f)
	}
	return s
}

func (s *schema) add(name string) *feature {
	f := &feature{number: len(s.list), Feature: catalog.Feature{Name: name}}
	f.ID, f.Generation = catalog.FreshID(name, s.taken)
	s.list = append(s.list, f)
	s.byName[name] = f
	fold := strings.ToLower(name)
	s.byFold[fold] = append(s.byFold[fold], f)
	return f
}

// noteSpellings notes of which names a file has several spellings, before its fields are bound.
func (s *schema) noteSpellings(fields []*source.Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := make(map[string]string, len(fields))
	for _, f := range fields {
		if f.OriginKey != "" {
			continue
		}
		fold := strings.ToLower(f.Name)
		if name, ok := first[fold]; !ok {
			first[fold] = f.Name
		} else if name != f.Name {
			s.beside[fold] = true
		}
	}
}

// checkCase returns an error when a field of a file, whose fields have been bound, differs from a feature of another
// file or of the table by upper and lower case alone: to Hive and Spark they are one column, and here each would be
// null in the rows of the other. A file or a table that has both makes them two. Members and keys of maps are not
// looked at: keys are data.
func (s *schema) checkCase(file string, fields []*source.Field) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	inTheTable := func(x *feature) bool { return x.known != nil && x.known.Status == catalog.FeatureActive }
	for _, f := range fields {
		fold := strings.ToLower(f.Name)
		if len(s.byFold[fold]) < 2 || f.OriginKey != "" {
			continue
		}
		for _, other := range s.byFold[fold] {
			switch {
			case other.Name == f.Name || other.key() != "" || s.beside[fold]:
			case inTheTable(other) && inTheTable(s.byName[f.Name]):
			case other.present():
				return caseError(f, file, other.Name, other.firstFile)
			case inTheTable(other) && s.byName[f.Name].known == nil:
				return caseError(f, file, other.Name, inTable)
			}
		}
	}
	return nil
}

// key returns the key or member that the feature was; empty: it was a column.
func (x *feature) key() string {
	if x.known != nil {
		return x.known.OriginKey
	}
	return x.OriginKey
}

func caseError(f *source.Field, file, other, where string) error {
	return fmt.Errorf("feature %q of %s and feature %q of %s differ by upper and lower case alone: each would be null "+
		"in the rows of the other; {\"columns\": {%q: {\"rename\": %q, \"optional\": true}}} in a mapping file makes "+
		"one of them, another name there keeps both", f.Name, file, other, where, f.Path, other)
}

// noteRole remembers f when it is the session or time key, and returns the other feature that claims to be.
func (s *schema) noteRole(f *feature) *feature {
	slot := &s.session
	switch f.Role {
	case catalog.RoleSessionKey:
	case catalog.RoleTimeKey:
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
		return nil, fmt.Errorf("feature %q of %s and feature %q would both be the %s", x.Name, file, other.Name, x.Role)
	}
	if f.NoValue {
		x.noteNoValue(file, f)
		x.say(f).files++
		return x, nil
	}
	if err := x.merge(file, f); err != nil {
		return nil, err
	}
	if err := x.checkKnown(file); err != nil {
		return nil, err
	}
	class := classOf(f.Type)
	if x == s.session && class == noClass {
		return nil, fmt.Errorf("%s: session key %q is %v: want a number or a string", file, x.Name, f.Type)
	}
	if x == s.time && class != intClass && class != floatClass {
		return nil, fmt.Errorf("%s: time key %q is %v: want a number, a date or a timestamp; "+
			"time_format in a mapping file reads times that are not written like 2026-11-01 12:00:00", file, x.Name,
			f.Type)
	}
	x.say(f).files++
	return x, nil
}

// unbind takes back what a file that is left out whole said of a feature.
func (s *schema) unbind(x *feature, f *source.Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.say(f).files--
}

// say returns what is counted for the type of a field.
func (x *feature) say(f *source.Field) *say {
	for i := range x.says {
		if s := &x.says[i]; s.t == f.Type && s.logical == f.Logical && s.noValue == f.NoValue {
			return s
		}
	}
	x.says = append(x.says, say{t: f.Type, logical: f.Logical, noValue: f.NoValue})
	return &x.says[len(x.says)-1]
}

func (x *feature) setRole(file string, role catalog.Role) error {
	cluster := role == catalog.RoleSessionKey || role == catalog.RoleTimeKey
	switch {
	case role == catalog.RoleFeature || x.Role == role:
		return nil
	case x.Role == catalog.RoleFeature && (x.known == nil || cluster):
		x.Role = role
		return nil
	}
	how := ""
	if x.known != nil {
		how = anew(x.known)
	}
	return fmt.Errorf("feature %q is a %s in %s, but was a %s before: a feature keeps its role%s", x.Name, role, file,
		x.Role, how)
}

// noteNoValue remembers that a file has the feature, null in every row and of no type.
func (x *feature) noteNoValue(file string, f *source.Field) {
	if x.seen {
		return
	}
	x.seen, x.firstFile = true, file
	x.describe(f.Type, f.Logical, f.OriginColumn, f.OriginKey)
	if k := x.known; k != nil {
		x.describe(k.Type, k.Logical, k.OriginColumn, k.OriginKey)
	}
}

// present reports whether a file of those that are kept has the feature.
func (x *feature) present() bool {
	return slices.ContainsFunc(x.says, func(s say) bool { return s.files > 0 })
}

// kept reports whether the dump's rows have the feature. One that the table does not have, and of which no file says
// the type, is not made: a type that was guessed would refuse the values of a later dump.
func (x *feature) kept() bool {
	return slices.ContainsFunc(x.says, func(s say) bool { return s.files > 0 && (!s.noValue || x.known != nil) })
}

// widenedByLeftOut reports whether the type would be another if the files that were left out had never been read.
func (x *feature) widenedByLeftOut() bool {
	if !x.kept() {
		return false
	}
	var t vector.Type
	logical, some := "", false
	if x.known != nil { // the type of a feature without values is the table's
		t, logical = x.known.Type, x.known.Logical
	}
	for _, s := range x.says {
		switch {
		case s.files <= 0 || s.noValue:
		case !some:
			t, logical, some = s.t, s.logical, true
		default:
			if wide, err := vector.Widen(t, s.t); err == nil { // bind has widened them
				t = wide
			}
			if wide, ok := widerDecimal(logical, s.logical); ok {
				logical = wide
			}
		}
	}
	if x.known != nil {
		if wide, ok := widerDecimal(x.known.Logical, logical); ok {
			logical = wide
		}
	}
	return t != x.Type || logical != x.Logical
}

// widenedByLeftOut returns the names of the features whose types the files that were left out have widened.
func (s *schema) widenedByLeftOut() []string {
	var out []string
	for _, x := range s.list {
		if x.widenedByLeftOut() {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (x *feature) describe(t vector.Type, logical, originColumn, originKey string) {
	x.Type, x.Logical, x.OriginColumn, x.OriginKey = t, logical, originColumn, originKey
}

// merge widens x to hold a field of a file.
func (x *feature) merge(file string, f *source.Field) error {
	if !x.valued {
		x.seen, x.valued, x.firstFile = true, true, file
		x.describe(f.Type, f.Logical, f.OriginColumn, f.OriginKey)
		x.class = classOf(f.Type)
		return nil
	}
	t, logical, err := mix(&x.Feature, &catalog.Feature{Type: f.Type, Logical: f.Logical, OriginColumn: f.OriginColumn,
		OriginKey: f.OriginKey}, x.firstFile, file)
	if err != nil {
		return err
	}
	keyed := x.Role == catalog.RoleSessionKey || x.Role == catalog.RoleTimeKey
	if keyed && classOf(f.Type) != x.class {
		return fmt.Errorf("%s %q is %v in %s and %v in %s: a key is of one kind in all files of a dump",
			x.Role, x.Name, x.Type, x.firstFile, f.Type, file)
	}
	x.Type, x.Logical = t, logical
	return nil
}

// checkKnown returns an error when the table's feature of that name cannot hold x.
func (x *feature) checkKnown(file string) (err error) {
	if x.known != nil {
		_, x.Logical, err = mix(x.known, &x.Feature, inTable, file)
	}
	return err
}

// inTable is where what is known of a feature comes from, where no file does.
const inTable = "the table"

// A mixError says which types of a feature do not mix, and what to do.
type mixError struct {
	known         *catalog.Feature
	types, remedy string
}

func (e *mixError) Error() string { return e.types + e.remedy }

// mix returns the type that holds what is known of a feature and what a file says of it, or an error that says why they
// do not mix. The table's logical type stays as it is.
func mix(known, f *catalog.Feature, where, file string) (t vector.Type, logical string, err error) {
	one, rename := "it", "rename or drop it with --mapping"+anew(known)
	if where != inTable {
		one, rename = "one of them", `rename or drop one with --mapping, or say the "elem" of its numbers`
	}
	logical, ok := widerDecimal(known.Logical, f.Logical)
	if !ok || f.Type != known.Type || where == inTable && logical != known.Logical {
		if logical = f.Logical; logical != known.Logical {
			return t, logical, &mixError{known, fmt.Sprintf("feature %q is %s in %s and %s in %s: they do not mix",
				known.Name, source.TypeName(known.Type, known.Logical), where, source.TypeName(f.Type, f.Logical),
				file), mixHint(known, logical, where)}
		}
	}
	if f.OriginColumn != known.OriginColumn || f.OriginKey != known.OriginKey {
		return t, logical, fmt.Errorf("feature %q comes from %s in %s and from %s in %s: rename %s with --mapping",
			known.Name, originName(known.Name, known), where, originName(known.Name, f), file, one)
	}
	if t, err = vector.Widen(known.Type, f.Type); err != nil {
		return t, logical, &mixError{known, fmt.Sprintf("feature %q is %v in %s and %v in %s: no type holds both "+
			"exactly", known.Name, known.Type, where, f.Type, file), "; " + rename}
	}
	return t, logical, nil
}

// stored returns what the feature's files in the new segments say of it. A feature that has no role in the table gets
// none there, even when this ingest clusters by it.
func (x *feature) stored() catalog.Feature {
	f := x.Feature
	if x.known != nil {
		f.ID, f.Generation, f.Role = x.known.ID, x.known.Generation, x.known.Role
	}
	return f
}

// committed returns what the table's schema shall say of the feature: the type holds old and new values.
func (x *feature) committed() (f catalog.Feature, widened bool, err error) {
	f = x.stored()
	if x.known == nil {
		return f, false, nil
	}
	f.Type, err = vector.Widen(x.known.Type, x.Type)
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
		out[i] = f.Type
	}
	return out
}

// packOrder returns the features of the dump in the order in which packs hold them.
func (s *schema) packOrder(p writer.Popularity) []*writer.Feature {
	kept := make([]*feature, 0, len(s.list))
	for _, f := range s.list {
		if f.kept() {
			kept = append(kept, f)
		}
	}
	writer.SortForPacks(kept, p, func(f *feature) (catalog.Feature, uint64) {
		known := f.stored()
		known.Role = f.Role
		return known, f.rawBytes
	})
	out := make([]*writer.Feature, len(kept))
	for i, f := range kept {
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

// mixHint says what to do about logical types that do not mix, where something can be done. What is in the table stays
// as it is.
func mixHint(known *catalog.Feature, file, where string) string {
	times := strings.HasPrefix(known.Logical, "timestamp[") && strings.HasPrefix(file, "timestamp[")
	switch {
	case where != inTable && times:
		return `; say with --mapping what they shall be, as in {"timestamp": "us"}`
	case where != inTable:
		return ""
	case !times:
		return anew(known)
	}
	return fmt.Sprintf(`; say with --mapping that the file's shall be as the table's, {"timestamp": %q}, or give them `+
		`another name, {"rename": ...}%s`, strings.TrimSuffix(strings.TrimPrefix(known.Logical, "timestamp["), "]"),
		anew(known))
}

// anew says how a feature of the table gets another role or type: as a new feature of its name.
func anew(known *catalog.Feature) string {
	if known.Role.IsKey() {
		return "; if the table is wrong, ingest into another table: a key cannot be dropped"
	}
	return fmt.Sprintf("; if the table is wrong, drop its feature (dsi features drop STORE TABLE %q), then ingest "+
		"with --overwrite", known.Name)
}

func originName(name string, f *catalog.Feature) string {
	if f.OriginColumn == "" {
		return fmt.Sprintf("column %q", name)
	}
	return fmt.Sprintf("%q of column %q", f.OriginKey, f.OriginColumn)
}
