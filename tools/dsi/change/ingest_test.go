package change

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest"
)

// TestReportDocumented: docs/guide/ingest.md explains every line of the report.
func TestReportDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "ingest.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a"}
	r := ingest.Report{Known: 1, Missing: names, Spills: 1, Profile: "size", Widened: names, Valueless: names,
		Replaced: ingest.Replaced{Partitions: 1}, Partitioned: true}
	facts := reportFacts(r)
	for _, f := range facts {
		if !strings.Contains(string(page), "\n| `"+f[0]+"` | ") {
			t.Errorf("the page does not explain the line %q", f[0])
		}
	}
	if f := reportFacts(ingest.Report{})[2]; !strings.Contains(string(page), "just `"+f[0]+"`") {
		t.Errorf("the page does not explain the line %q", f[0])
	}
	// Its example has the lines that are always there, in their order.
	_, example, _ := strings.Cut(string(page), "\n```text\n")
	example, _, _ = strings.Cut(example, "\n```\n")
	var shown, want []string
	for line := range strings.Lines(example) {
		shown = append(shown, strings.Fields(line)[0])
	}
	for _, f := range reportFacts(ingest.Report{Profile: "balanced", Partitioned: true}) {
		want = append(want, f[0])
	}
	if !slices.Equal(shown, want) || len(want) == len(facts) {
		t.Errorf("the example has the lines %q, want %q", shown, want)
	}
}
