package ingest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumented: docs/guide/ingest.md has the keys of the report and of the lines about bad rows, and no others.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "ingest.md"))
	if err != nil {
		t.Fatal(err)
	}
	for heading, x := range map[string]reflect.Type{
		"\n## Bad rows\n": reflect.TypeFor[BadRowLine](), "\n## JSON\n": reflect.TypeFor[Report](),
	} {
		_, section, found := strings.Cut(string(text), heading)
		if !found {
			t.Fatalf("the page has no section %q", heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| `(.+?)` \\|").FindAllStringSubmatch(section, -1) {
			got = append(got, m[1])
		}
		want := jsonKeysOf(x, "")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("section %q has the keys\n%q, want\n%q", strings.TrimSpace(heading), got, want)
		}
	}
}

// jsonKeysOf returns the keys of a struct and, after the key and a dot, those of the structs in it.
func jsonKeysOf(x reflect.Type, before string) (keys []string) {
	for i := range x.NumField() {
		f := x.Field(i)
		key, _, tagged := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() && !f.Anonymous || key == "-":
		case f.Anonymous:
			keys = append(keys, jsonKeysOf(f.Type, before)...)
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, jsonKeysOf(f.Type, before+key+".")...)
		case key == "" && !tagged:
			keys = append(keys, before+f.Name+" without a key")
		default:
			keys = append(keys, before+key)
		}
	}
	return keys
}
