package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/selection"
)

// documentedTypes are the objects of docs/reference/dsistat-report.md.
var documentedTypes = map[string]reflect.Type{
	"report": reflect.TypeFor[Report](), "table": reflect.TypeFor[Table](), "summary": reflect.TypeFor[Summary](),
	"cost":    reflect.TypeFor[Cost](),
	"reads":   reflect.TypeFor[Reads](),
	"feature": reflect.TypeFor[Feature](), "use": reflect.TypeFor[Use](), "distinct": reflect.TypeFor[Distinct](),
	"encoding": reflect.TypeFor[StreamEncoding](),
	"group":    reflect.TypeFor[Group](), "job": reflect.TypeFor[Job](), "day": reflect.TypeFor[Day](),
	"curve": reflect.TypeFor[Curve](),
	"point": reflect.TypeFor[CurvePoint](), "savings": reflect.TypeFor[Savings](), "cause": reflect.TypeFor[Cause](),
	"saved by an overlay": reflect.TypeFor[OverlaySaving](), "saved by a list": reflect.TypeFor[ListSaving](),
	"waiting": reflect.TypeFor[Waiting](),
	"health":  reflect.TypeFor[Health](), "segments": reflect.TypeFor[SegmentHealth](),
	"packs":   reflect.TypeFor[PackHealth](),
	"overlay": reflect.TypeFor[OverlayHealth](), "sample list": reflect.TypeFor[ListHealth](),
	"snapshots": reflect.TypeFor[SnapshotHealth](),
	"holding":   reflect.TypeFor[SnapshotHolder](), "branch": reflect.TypeFor[BranchHealth](),
	"lease":         reflect.TypeFor[LeaseHealth](),
	"usage records": reflect.TypeFor[UsageHealth](), "segment": reflect.TypeFor[SegmentSummary](),
	"advice": reflect.TypeFor[Advice](),
}

func documentation(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "dsistat-report.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documented returns the words in backticks of each row of a table of the documentation, by its first column.
func documented(t *testing.T, head string) map[string][]string {
	t.Helper()
	_, rest, found := strings.Cut(documentation(t), head+"\n|---|---|\n")
	if !found {
		t.Fatalf("no table %q", head)
	}
	out := map[string][]string{}
	for line := range strings.Lines(rest) {
		cells := strings.SplitN(strings.TrimSpace(line), " | ", 2)
		if len(cells) < 2 {
			break
		}
		name := strings.TrimPrefix(cells[0], "| ")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			out[name] = append(out[name], m[1])
		}
	}
	return out
}

// keysOf returns the keys of a type, and the types that it takes the keys of.
func keysOf(x reflect.Type) (keys []string, embedded []reflect.Type) {
	for i := range x.NumField() {
		f := x.Field(i)
		if f.Anonymous {
			embedded = append(embedded, f.Type)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys, embedded
}

// TestDocumented: docs/reference/dsistat-report.md has every key of a report, under its object, and no others; and
// every object.
func TestDocumented(t *testing.T) {
	docs, text := documented(t, "| object | keys |"), documentation(t)
	seen := map[reflect.Type]bool{}
	for name, x := range documentedTypes {
		seen[x] = true
		want, embedded := keysOf(x)
		got := docs[name]
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: documented %q, want %q", name, got, want)
		}
		for _, e := range embedded {
			if phrase := "and the keys of " + strings.ToLower(e.Name()) + " |\n"; !strings.Contains(text, phrase) {
				t.Errorf("%s: no %q", name, phrase)
			}
		}
	}
	for name := range docs {
		if documentedTypes[name] == nil {
			t.Errorf("%s is documented, and nothing is called so", name)
		}
	}
	var look func(x reflect.Type)
	look = func(x reflect.Type) {
		for x.Kind() == reflect.Slice || x.Kind() == reflect.Pointer {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct {
			return
		}
		if !seen[x] {
			t.Errorf("%v is not documented", x)
		}
		for i := range x.NumField() {
			look(x.Field(i).Type)
		}
	}
	look(reflect.TypeFor[Report]())
}

// TestDocumentedKeysAreThere: every key that is documented is in the golden report, or in one of some other tables.
func TestDocumentedKeysAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]byte{text}
	add := func(s *storage.Store, o Options) {
		t.Helper()
		o.Now = clock
		r, err := Build(t.Context(), s, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	s, _, summary := small(t)
	add(s, Options{Usage: reads(summary), UnreadDays: 5})
	s = openStore(t)
	for i := range 5 { // a map, in segments that are worth merging
		jsonRows(t, s, fmt.Sprintf(`{"m": {"a": %d, "b": 2}}`+"\n", i), ingest.Options{})
	}
	add(s, Options{})
	s = openStore(t)
	table := generated(t, s, 600) // groups, partial duplicates; rows deleted; and what an old snapshot has
	if _, err := selection.Delete(t.Context(), table, &selection.Query{Where: "click = 1"},
		selection.Options{}); err != nil {
		t.Fatal(err)
	}
	add(s, Options{})
	plan, err := compaction.NewPlan(t.Context(), table, compaction.Options{Repack: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compaction.Run(t.Context(), table, plan, compaction.Options{}); err != nil {
		t.Fatal(err)
	}
	add(s, Options{})
	there := map[reflect.Type]map[string]bool{}
	var walk func(x reflect.Type, v any)
	walk = func(x reflect.Type, v any) {
		for x.Kind() == reflect.Pointer {
			x = x.Elem()
		}
		switch x.Kind() {
		case reflect.Slice:
			for _, e := range v.([]any) {
				walk(x.Elem(), e)
			}
		case reflect.Struct:
			object := v.(map[string]any)
			if there[x] == nil {
				there[x] = map[string]bool{}
			}
			for i := range x.NumField() {
				f := x.Field(i)
				if f.Anonymous {
					walk(f.Type, v)
					continue
				}
				key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if value, ok := object[key]; ok {
					there[x][key] = true
					walk(f.Type, value)
				}
			}
		}
	}
	for _, text := range texts {
		var report any
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		walk(reflect.TypeFor[Report](), report)
	}
	for name, x := range documentedTypes {
		keys, _ := keysOf(x)
		for _, key := range keys {
			if !there[x][key] {
				t.Errorf("%s of %s is in no report", key, name)
			}
		}
	}
}

// TestDocumentedColumns: docs/reference/dsistat-report.md has the columns of CSV, in their order.
func TestDocumentedColumns(t *testing.T) {
	docs := documented(t, "| command | columns |")
	l, err := Tables(&Report{}, ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"`dsistat STORE`": l.Keys}
	for name, view := range Views {
		sections, err := view(&Table{}, ViewOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(sections, func(s Section) bool { return s.Listing != nil })
		want["`dsistat "+name+"`"] = append([]string{"table"}, sections[at].Listing.Keys...)
	}
	for name, columns := range want {
		if !slices.Equal(docs[name], columns) {
			t.Errorf("%s: documented\n%q, want\n| %s | `%s` |", name, docs[name], name, strings.Join(columns, "`, `"))
		}
	}
	if len(docs) != len(want) {
		t.Errorf("%d commands are documented, want %d", len(docs), len(want))
	}
}
