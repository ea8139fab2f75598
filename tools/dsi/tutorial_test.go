package dsi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestTutorial runs the tutorial's blocks for a shell, one after the other, on a dump that is generated.
func TestTutorial(t *testing.T) {
	if raceEnabled {
		t.Skip("the scripts do the same")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks", len(blocks))
	}
	var script, files strings.Builder
	script.WriteString("env DSISTORE_USAGE=on\nexec dsi generate dump --rows 4000 --partitions 2\n")
	for i, b := range blocks {
		fmt.Fprintf(&script, "exec sh -e block%d.sh\n! stderr .\n", i)
		fmt.Fprintf(&files, "-- block%d.sh --\n%s", i, b[1])
	}
	file := filepath.Join(t.TempDir(), "tutorial.txtar")
	if err := os.WriteFile(file, []byte(script.String()+"exists report.html\n"+files.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, params([]string{file}, nil))
}
