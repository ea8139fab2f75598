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
	// What cannot be removed stays, and stops nobody: here a directory that is not empty, in /tmp another user's file.
	stuck := filepath.Join(dir, Prefix+"stuck")
	if err := os.MkdirAll(filepath.Join(stuck, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
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
	if err != nil || len(left) != 2 || left[0].Name() != "another's" || left[1].Name() != filepath.Base(stuck) {
		t.Fatalf("in the directory: %v, %v", left, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
