package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// The demo runs to its end on a small table and leaves its store where it says.
func TestDemo(t *testing.T) {
	f := flags{Dir: t.TempDir(), Rows: 400, Share: 0.1, Rounds: 1, Dsi: "dsi"}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "store", "tables")); err != nil {
		t.Error(err)
	}
	if err := (&flags{Dir: t.TempDir(), Rows: -1, Share: 0.1, Rounds: 1}).run(t.Context()); err == nil {
		t.Error("a negative number of rows was accepted")
	}
}

// The demo leaves its table in an object store, and does not touch one that is there.
func TestDemoInAnObjectStore(t *testing.T) {
	server := objectserver.StartS3(t, "tables") // or skips, and says why
	for name, value := range server.Environment() {
		t.Setenv(name, value)
	}
	const uri = "s3://tables/demo"
	f := flags{Dir: t.TempDir(), Store: uri, Rows: 400, Share: 0.1, Rounds: 1, Dsi: "dsi"}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	blobs, err := object.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(t.Context(), blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, snap, err := s.Newest(t.Context(), versus.Table); err != nil || snap.Info().Rows != 400 {
		t.Errorf("the table in the bucket: %v; want 400 rows", err)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "store")); err == nil {
		t.Error("a store was left in the directory too")
	}
	if err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), "another prefix") {
		t.Errorf("a second demo at the same place: %v; want an error that says to choose another", err)
	}
}
