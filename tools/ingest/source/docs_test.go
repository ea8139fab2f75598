package source

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestMappingGuide parses every mapping file that docs/mapping.md shows, and runs its worked example.
func TestMappingGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/mapping.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	for _, b := range blocks {
		if _, err := ParseMapping(b[1]); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
	ddl := regexp.MustCompile("(?s)```\n(CREATE TABLE.*?)```").FindSubmatch(text)
	data := regexp.MustCompile("(?s)```\ndump/ds=2026-11-01/000000_0:\n(.*?)```").FindSubmatch(text)
	if ddl == nil || data == nil || len(blocks) < 3 {
		t.Fatal("the worked example is not where this test looks for it")
	}
	dir := writeFiles(t, map[string]string{
		"ads.sql": string(ddl[1]), "ads.json": string(blocks[len(blocks)-1][1]), "dump/ds=2026-11-01/000000_0": string(data[1]),
	})
	chunks, err := readPath(t, filepath.Join(dir, "dump"), Options{
		Format: "text", DDLFile: filepath.Join(dir, "ads.sql"), MappingFile: filepath.Join(dir, "ads.json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `ds=2026-11-01: user_id=7 click=1 price=1250 items=[31,44] scores=[5:0.5,9:0.25]
ds=2026-11-01: user_id=7 click=0 price=null items=[] scores=null
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
