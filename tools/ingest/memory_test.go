package ingest

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
)

// TestMemoryIsBounded ingests, in a process of its own, a dump that decodes to more than three times the memory, and
// looks at the most that the process ever held.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("measures memory, with a dump of 200 MiB")
	}
	const budget = 64 << 20
	root, dumps := t.TempDir(), t.TempDir()
	rows := dumpRows(1, 250_000)
	history := make([]int64, 200)
	for i := range rows {
		rows[i].history = history[:50+i%150]
	}
	text, err := json.Marshal(childJob{Store: root, Dump: writeDump(t, dumps, rows), Memory: budget})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var report childReport
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if report.BytesRaw < 3*budget || report.Spills < 4 || report.Rows != int64(len(rows)) {
		t.Fatalf("the dump is too small to say anything: %+v", report)
	}
	peak := report.PeakBytes
	if peak == 0 {
		t.Skip("the system does not say what a process held")
	}
	t.Logf("%d MiB decoded in %d runs, memory %d MiB, peak %d MiB", report.BytesRaw>>20, report.Spills, budget>>20,
		peak>>20)
	// Beside the budget: the program's own data, and what the runtime's soft limit lets through.
	if most := int64(budget + 32<<20); peak > most {
		t.Fatalf("the process held %d bytes at its peak: want at most %d", peak, most)
	}
}
