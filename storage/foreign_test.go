//go:build unix

package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// TestGCStaysInTheStore: gc deletes nothing through a symbolic link, and neither does a rebuild of the index.
func TestGCStaysInTheStore(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := populate(t, l)
	theirs := t.TempDir()
	precious := filepath.Join(theirs, "pack-000000")
	if err := os.WriteFile(precious, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	i := names.RandomID()
	if err := os.MkdirAll(filepath.Join(l.Root(), i.String()[:2]), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(l.Root(), i.String()[:2], i.String())
	if err := os.Symlink(theirs, link); err != nil {
		t.Skip(err)
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Skipped) != 1 ||
		!strings.Contains(r.Skipped[0].Err.Error(), "symbolic link") {
		t.Errorf("%+v %v", r, err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Fatal(err)
	}
	// A table that is a link elsewhere is not passed over, which would make garbage of its segments.
	tables := filepath.Join(l.Root(), "tables")
	if err := os.Rename(filepath.Join(tables, "ads"), filepath.Join(theirs, "ads")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(theirs, "ads"), filepath.Join(tables, "ads")); err != nil {
		t.Fatal(err)
	}
	s, err := Create(ctx, object.NewLocalFS(l.FS(), l.Root()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.GC(ctx, gc.Options{NoWait: true}); err == nil {
		t.Errorf("removed %v", r.Removed)
	}
	if r, err := newTable(t, l).s.Verify(ctx, "ads", true, nil); err != nil || r.DamageCount > 0 {
		t.Fatal(err, r)
	}
}

// TestGCLeavesTemporaryFilesOfOthers: a directory that became a store may have one that others call _tmp: gc takes none
// of their files.
func TestGCLeavesTemporaryFilesOfOthers(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	theirs := filepath.Join(l.Root(), "_tmp", "thesis.tex")
	if err := errors.Join(os.Mkdir(filepath.Dir(theirs), 0o755), os.WriteFile(theirs, []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	tab := populate(t, l)
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}
