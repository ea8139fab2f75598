//go:build unix

package object_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestNamedPipe: a pipe in the place of an object is refused; to open it would wait for ever.
func TestNamedPipe(t *testing.T) {
	ctx := t.Context()
	s := local(t)
	l := object.AsLocal(s)
	if err := s.PutIfAbsent(ctx, "a/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(l.Root(), "a", "2"), 0o644); err != nil {
		t.Skip(err)
	}
	_, stat := s.Stat(ctx, "a/2")
	read := make(chan error, 1)
	go func() { read <- s.ReadAt(ctx, "a/2", make([]byte, 1), 0) }()
	// Were it opened, this would let it go on.
	w, err := os.OpenFile(filepath.Join(l.Root(), "a", "2"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write([]byte("z")); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"stat": stat, "read": <-read, "put": s.PutIfAbsent(ctx, "a/2", nil)} {
		if err == nil || errors.Is(err, object.ErrNotFound) || errors.Is(err, object.ErrExists) ||
			!strings.Contains(err.Error(), "plain file") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := listed(ctx, t, s); got != "a/1" {
		t.Errorf("listed %s", got)
	}
}

func listed(ctx context.Context, t *testing.T, s object.Store) string {
	t.Helper()
	var names []string
	for info, err := range s.List(ctx, "", "") {
		if err != nil {
			return err.Error()
		}
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

// TestSymbolicLinks: a link to a file is that file; one to a directory, which may lead out of the store or round in
// circles, is not followed but named, and so is a directory for temporary files that is a link: gc would empty what it
// leads to.
func TestSymbolicLinks(t *testing.T) {
	ctx := t.Context()
	for _, to := range []string{".", "..", t.TempDir()} {
		s := local(t)
		l := object.AsLocal(s)
		if err := s.PutIfAbsent(ctx, "a/1", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("1", filepath.Join(l.Root(), "a", "2")); err != nil {
			t.Skip(err)
		}
		if err := os.Symlink("nothing", filepath.Join(l.Root(), "a", "3")); err != nil {
			t.Fatal(err)
		}
		if got := listed(ctx, t, s); got != "a/1 a/2" {
			t.Fatalf("listed %s", got)
		}
		var b [1]byte
		if err := s.ReadAt(ctx, "a/2", b[:], 0); err != nil || b[0] != 'x' {
			t.Fatal(err)
		}
		for _, name := range []string{"loop1", "loop2"} {
			if err := os.Symlink(to, filepath.Join(l.Root(), "a", name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := listed(ctx, t, s); !strings.Contains(got, "a/loop1 is a symbolic link") {
			t.Errorf("listed %s", got)
		}
	}
	s := local(t)
	l := object.AsLocal(s)
	theirs := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(theirs, "thesis"), nil, 0o644), os.MkdirAll(l.Root(), 0o755),
		os.Symlink(theirs, filepath.Join(l.Root(), "_tmp"))); err != nil {
		t.Fatal(err)
	}
	if tmp, err := l.Temporary(ctx); err == nil {
		t.Errorf("%v are temporary files", tmp)
	}
}
