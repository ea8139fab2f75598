//go:build unix

package source

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/stream"
)

// TestPipes: a pipe is read when it is named itself, once, and never waited for inside a directory.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "in")
	if err := syscall.Mkfifo(p, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	if _, err := Discover(t.Context(), []string{dir}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "name it itself") {
		t.Errorf("in a directory: got %v", err)
	}
	if _, err := Discover(t.Context(), []string{p}, Options{Format: "parquet"}); err == nil ||
		!strings.Contains(err.Error(), "cannot be read from a pipe") {
		t.Errorf("as Parquet: got %v", err)
	}
	if _, err := Discover(t.Context(), []string{"/dev/null"}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("a device: got %v", err)
	}
	for format, data := range map[string]string{"jsonl": "{\"a\":1}\n", "auto": string(smallStream(t))} {
		written := make(chan error)
		go func() { written <- os.WriteFile(p, []byte(data), 0) }()
		files, err := Discover(t.Context(), []string{p}, Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		s, err := files[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if chunks, err := readAll(t, s); err != nil || len(chunks) == 0 {
			t.Fatalf("%s: %v", format, err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		whole := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(whole, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		want, err := stream.Fingerprint(t.Context(), whole)
		if got, err2 := files[0].Fingerprint(t.Context()); err != nil || err2 != nil || got != want {
			t.Errorf("%s: fingerprint %s, want %s; %v, %v", format, got, want, err2, err)
		}
	}
}
