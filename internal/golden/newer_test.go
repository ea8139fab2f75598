package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/internal/version"
	"github.com/dsistore/dsistore/tools/dsi"
)

// TestOtherVersion: what a later version wrote, or a build of the development before the first release, is refused as
// such, by readers and writers, and nothing is changed.
func TestOtherVersion(t *testing.T) {
	marker := func(version string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			path := filepath.Join(root, "dsistore")
			b := read(t, path)
			head := bytes.Replace(b[:len(b)-17], []byte("dsistore 2 "), []byte("dsistore "+version+" "), 1)
			write(t, path, fmt.Appendf(head, "%016x\n", xxhash.Sum64(head)))
		}
	}
	for name, x := range map[string]struct {
		change func(t *testing.T, root string)
		says   []string
	}{
		"marker":       {marker("3"), []string{"store of version 3", "use a newer program"}},
		"older marker": {marker("1"), []string{"store of version 1", "development builds", "ingest"}},
		"newest snapshot": {func(t *testing.T, root string) {
			found, err := filepath.Glob(filepath.Join(root, "tables", "ads", "snapshots", "*", "*"))
			if err != nil || len(found) == 0 {
				t.Fatal(found, err)
			}
			b := read(t, found[0]) // names sort newest first
			b[7]++                 // with the checksum of before it would be a damaged byte
			binary.LittleEndian.PutUint64(b[176:], xxhash.Sum64(b[:176]))
			write(t, found[0], b)
		}, []string{"snapshot of version 2", "use a newer program"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.CopyFS(root, os.DirFS(filepath.Join(testdata, version.Number, "store"))); err != nil {
				t.Fatal(err)
			}
			x.change(t, root)
			before := objects(t, root)
			more := filepath.Join(t.TempDir(), "more.jsonl")
			write(t, more, []byte(`{"row": 999999, "session": 5, "time": 1, "user": "new", "day": "2026-12-24"}`))
			for _, args := range [][]string{
				{"head", root, "ads", "--no-lease"}, {"describe", root, "ads"}, {"ingest", root, "ads", more},
				{"delete", root, "ads", "--where", "click = 1"}, {"compact", root, "ads", "--repack"},
			} {
				var stdout, stderr strings.Builder
				code := dsi.Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
				said := stderr.String()
				if code != 1 || !strings.Contains(said, "unsupported data") || strings.Contains(said, "corrupt") {
					t.Errorf("dsi %s: exit code %d, %s", strings.Join(args, " "), code, said)
				}
				for _, part := range x.says {
					if !strings.Contains(said, part) {
						t.Errorf("dsi %s: %s: want %q", strings.Join(args, " "), said, part)
					}
				}
			}
			if name == "newest snapshot" { // earlier ones are read by their numbers, other tables as ever
				dsiOK(t, "head", root, "ads", "--at", "18", "--no-lease", "--no-usage")
				dsiOK(t, "head", root, "plain", "--no-lease", "--no-usage")
			}
			// It is no damage that a repair takes out, and gc leaves what it cannot read about.
			for _, c := range []struct {
				args       []string
				ofSnapshot int // the exit code where the newest snapshot is a later version's; 1 where the store is
			}{
				{[]string{"repair", root, "ads", "--apply"}, 1}, {[]string{"gc", root, "--grace", "1ns"}, 3},
				{[]string{"verify", root}, 3},
			} {
				var stdout, stderr strings.Builder
				want := 1
				if name == "newest snapshot" {
					want = c.ofSnapshot
				}
				if code := dsi.Run(t.Context(), c.args, nil, &stdout, &stderr); code != want {
					t.Errorf("dsi %s: exit code %d, want %d: %s%s", strings.Join(c.args, " "), code, want, &stdout,
						&stderr)
				}
			}
			if after := objects(t, root); after != before {
				t.Errorf("the store's objects were\n%s and are\n%s", before, after)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// objects lists what lies in a store, with its size.
func objects(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			fmt.Fprintln(&b, path, i.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
