package main

import (
	"os"
	"slices"
	"testing"
)

// The test binary is its own child.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--child") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A short run measures ingest in a process of its own.
func TestIngestMem(t *testing.T) {
	f := flags{MemoryMiB: 2, Times: 1, Files: 2, Dir: t.TempDir()}
	rep, err := f.measured(t)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Ingest.Rows == 0 || rep.Ingest.Files != 2 {
		t.Errorf("measured %+v", rep)
	}
}

func (f *flags) measured(t *testing.T) (report, error) {
	if err := f.run(t.Context()); err != nil {
		return report{}, err
	}
	return f.measure(t.Context())
}
