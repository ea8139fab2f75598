package ingest

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/writer"
)

// TestProfilesHoldTheDump: what each profile stores is the dump, the table remembers the profile named last, and what
// is stored for speed is no smaller than what is balanced, nor that than what is stored for size.
func TestProfilesHoldTheDump(t *testing.T) {
	s := openStore(t, t.TempDir())
	dumps := t.TempDir()
	var rows []testRow
	version, each := 0, 1500
	if race.Enabled {
		each = 300
	}
	for _, step := range []struct{ asked, want string }{
		{"", "balanced"}, {"size", "size"}, {"", "size"}, {"speed", "speed"}, {"", "speed"}, {"balanced", "balanced"},
		{"", "balanced"},
	} {
		version++
		more := dumpRows(version, each)
		for i := range more {
			more[i].session += int64(version) << 40
		}
		rows = append(rows, more...)
		opts := testOptions()
		opts.Profile = step.asked
		report, err := Run(t.Context(), s, "ads", []string{writeDump(t, dumps, more)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if report.Profile != step.want {
			t.Errorf("ingest %d, asked for %q: profile %q, want %q", version, step.asked, report.Profile, step.want)
		}
		checkStored(t, s, uint64(version), expectedRows(slices.Clone(rows)))
	}
}

func TestProfilesAreOrdered(t *testing.T) {
	onlyWhole(t)
	sum, err := workload.Generate(t.Context(), t.TempDir(), workload.Options{Rows: 8000, Sparse: 24, Weighted: 3,
		Dense: 24})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range sum.Files {
		paths = append(paths, f.Path)
	}
	var sizes []int64
	for _, name := range format.ProfileNames() {
		report, _ := ingestFiles(t, paths, Options{SessionKey: workload.SessionColumn, TimeKey: workload.TimeColumn,
			Options: writer.Options{Profile: name}})
		sizes = append(sizes, report.BytesOut)
	}
	if sizes[0] <= sizes[1] || sizes[1] <= sizes[2] {
		t.Errorf("%v take %d bytes: want them to fall", format.ProfileNames(), sizes)
	}
	if err := (&Options{Options: writer.Options{Profile: "fast"}}).Validate(); err == nil {
		t.Error("profile fast is taken")
	}
}
