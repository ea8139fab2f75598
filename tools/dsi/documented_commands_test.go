package dsi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dsistore/dsistore/internal/race"
)

// TestDocumentedCommands runs the blocks for a shell of some pages, one after the other, in an empty directory. A dump
// that a page generates has fewer rows here.
func TestDocumentedCommands(t *testing.T) {
	if race.Enabled {
		t.Skip("the scripts do the same")
	}
	for _, c := range []struct {
		page   string
		blocks int
		left   string // a file that the last block makes
		before string // a command that makes what the page supposes
	}{
		{"README.md", 1, "part.parquet", ""}, {"docs/guide/tutorial.md", 8, "report.html", ""},
		{"docs/guide/ingest.md", 3, "dump2", ""},
		{"docs/guide/upgrade.md", 4, "ads.arrow", "exec dsi generate dump --rows 4000 --partitions 2\n" +
			"exec dsi ingest store ads dump --session-key session_id\n"},
	} {
		t.Run(filepath.Base(c.page), func(t *testing.T) {
			page, err := os.ReadFile(filepath.Join("..", "..", c.page))
			if err != nil {
				t.Fatal(err)
			}
			page = regexp.MustCompile(`(dsi generate dump --rows) \d+`).ReplaceAll(page, []byte("$1 4000"))
			blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(page, -1)
			if len(blocks) < c.blocks {
				t.Fatalf("%d blocks", len(blocks))
			}
			var script, files strings.Builder
			script.WriteString("env DSISTORE_USAGE=on\n" + c.before)
			for i, b := range blocks {
				fmt.Fprintf(&script, "exec sh -e block%d.sh\n! stderr .\n", i)
				fmt.Fprintf(&files, "-- block%d.sh --\n%s", i, b[1])
			}
			file := filepath.Join(t.TempDir(), "commands.txtar")
			all := script.String() + "exists " + c.left + "\n" + files.String()
			if err := os.WriteFile(file, []byte(all), 0o644); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, params([]string{file}, nil))
		})
	}
}
