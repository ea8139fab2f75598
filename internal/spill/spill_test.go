package spill

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestFiles: they lie in a local store, have no name, and names that killed processes left are removed.
func TestFiles(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[store] *")
	blobs, err := object.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Dir("", blobs)
	if err != nil || dir != filepath.Join(root, "_tmp") {
		t.Fatalf("directory %q, %v", dir, err)
	}
	stale := filepath.Join(dir, Prefix+"17")
	other := filepath.Join(dir, "another's")
	for _, name := range []string{stale, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Dir(dir, object.NewMemory()); err != nil {
		t.Fatal(err)
	}
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "another's" {
		t.Fatalf("in the directory: %v, %v", left, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
