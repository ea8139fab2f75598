package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakePython puts a script in the place of the interpreter that reads ORC files.
func fakePython(t *testing.T, script string) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DSISTORE_PYTHON", p)
}

func TestORCChild(t *testing.T) {
	stream := smallStream(t)
	dir := writeFiles(t, map[string]string{"a.orc": "ORC...", "stream": string(stream)})
	send := "cat '" + filepath.Join(dir, "stream") + "'\n"
	file := filepath.Join(dir, "a.orc")
	for _, tc := range []struct{ name, script, want string }{
		{"all is well", send, ""},
		{"fails before the schema", "echo warming up >&2; echo 'OSError: bad stripe' >&2; exit 1", "pyarrow: OSError: bad stripe"},
		{"fails within the stream", "head -c 700 '" + filepath.Join(dir, "stream") + "'; echo 'OSError: later stripe' >&2; exit 1", "pyarrow: OSError: later stripe"},
		{"fails after the stream", send + "echo late >&2; exit 2", "pyarrow: late"},
		{"ends quietly within the stream", "head -c 700 '" + filepath.Join(dir, "stream") + "'", "cut short"},
		{"no pyarrow", "echo \"No module named 'pyarrow'\" >&2; exit 77", "python3 -m pip install pyarrow"},
		{"type not supported", "echo 'pyarrow.lib.ArrowNotImplementedError: union' >&2; exit 1", "does not support this one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakePython(t, tc.script)
			chunks, err := readPath(t, file, Options{})
			if tc.want == "" {
				if err != nil || len(chunks) != 2 {
					t.Fatalf("%v, %d chunks", err, len(chunks))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("no interpreter", func(t *testing.T) {
		t.Setenv("DSISTORE_PYTHON", filepath.Join(dir, "nowhere"))
		if _, err := readPath(t, file, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "pip install pyarrow") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("killed when the context ends", func(t *testing.T) {
		fakePython(t, "exec sleep 600")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		files, err := Discover(ctx, []string{file}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := files[0].Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
