package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/version"
)

// TestArchive: the same files give the same bytes, whenever and with whatever rights they were made.
func TestArchive(t *testing.T) {
	at := time.Date(2026, 11, 26, 1, 2, 3, 0, time.UTC)
	var made [2][]byte
	for i := range made {
		programs, documents, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "a.tar.gz")
		for path, mode := range map[string]os.FileMode{
			filepath.Join(programs, "dsi"): 0o755, filepath.Join(documents, "LICENSE"): 0o600 + 0o040*os.FileMode(i),
			filepath.Join(documents, "man", "man1", "dsi.1"): 0o644,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(filepath.Base(path)), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, at.Add(time.Duration(i)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeArchive(out, "dsistore-1", at, programs, documents); err != nil {
			t.Fatal(err)
		}
		var err error
		if made[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two archives of the same files differ")
	}
	z, err := gzip.NewReader(bytes.NewReader(made[0]))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
		if !h.ModTime.Equal(at) || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%+v", h)
		}
	}
	want := "-rwxr-xr-x dsistore-1/dsi, -rw-r--r-- dsistore-1/LICENSE, -rw-r--r-- dsistore-1/man/man1/dsi.1"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("it has %s, want %s", all, want)
	}
}

// TestFit: a wheel's name promises no less than its library needs.
func TestFit(t *testing.T) {
	libc := []string{"libc.so.6", "libresolv.so.2"}
	for _, x := range []struct {
		needs needs
		wheel string
		err   string
	}{
		{needs{[2]int{2, 3}, libc, "x86_64"}, "dsistore-1-py3-none-manylinux_2_17_x86_64.whl", ""},
		{needs{[2]int{2, 17}, libc, "aarch64"}, "dsistore-1-py3-none-manylinux_2_17_aarch64.whl", ""},
		{needs{[2]int{2, 34}, libc, "x86_64"}, "dsistore-1-py3-none-manylinux_2_34_x86_64.whl", ""},
		{needs{[2]int{2, 34}, libc, "x86_64"}, "dsistore-1-py3-none-manylinux_2_17_x86_64.whl",
			"needs x86_64, glibc 2.34"},
		{needs{[2]int{2, 3}, libc, "aarch64"}, "dsistore-1-py3-none-manylinux_2_17_x86_64.whl", "needs aarch64"},
		{needs{[2]int{2, 3}, []string{"libzstd.so.1"}, "x86_64"}, "dsistore-1-py3-none-manylinux_2_17_x86_64.whl",
			"needs libzstd.so.1"},
		{needs{[2]int{}, []string{"libc.musl-x86_64.so.1"}, "x86_64"}, "dsistore-1-py3-none-manylinux_2_17_x86_64.whl",
			"needs x86_64, glibc 0.0"},
		{needs{[2]int{2, 3}, libc, "x86_64"}, "dsistore-1-py3-none-linux_x86_64.whl", "does not say which glibc"},
	} {
		err := x.needs.fit(x.wheel)
		if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%v as %s: %v, want %q", x.needs, x.wheel, err, x.err)
		}
	}
}

// TestStatic: a program that needs the system's libraries is found out.
func TestStatic(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks at a program of Linux")
	}
	if err := checkStatic("/bin/sh", platform{"linux", runtime.GOARCH}); err == nil || !strings.Contains(err.Error(),
		"libc.so") {
		t.Errorf("/bin/sh: %v", err)
	}
}

func TestBOM(t *testing.T) {
	const listed = "| module | version | licence |\n|---|---|---|\n| a.org/x | v1.2.3 | MIT |\n" +
		"| b.org/y | v0.1.0+incompatible | BSD-2-Clause, BSD-3-Clause |\n| npm:d3 | 7.9.2 | ISC |\n"
	x := &debug.Module{Path: "a.org/x", Version: "v1.2.3", Sum: "h1:abc"}
	y := &debug.Module{Path: "b.org/y", Version: "v0.1.0+incompatible"}
	builds := []*debug.BuildInfo{{GoVersion: "go1.26.8", Deps: []*debug.Module{x}}, {GoVersion: "go1.26.8",
		Deps: []*debug.Module{x, {Path: "old", Version: "v1.0.0", Replace: y}}}}
	b, err := newBOM(builds, listed, time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bomFormat":"CycloneDX","specVersion":"1.6"`, `"timestamp":"1970-01-01T00:00:00Z"`,
		`"purl":"pkg:golang/a.org/x@v1.2.3","licenses":[{"license":{"id":"MIT"}}],` +
			`"properties":[{"name":"go:sum","value":"h1:abc"}]`,
		`"purl":"pkg:golang/b.org/y@v0.1.0%2Bincompatible",` +
			`"licenses":[{"license":{"id":"BSD-2-Clause"}},{"license":{"id":"BSD-3-Clause"}}]`,
		`"purl":"pkg:golang/std@1.26.8"`, `"purl":"pkg:npm/d3@7.9.2"`,
		`"dependsOn":["pkg:golang/a.org/x@v1.2.3","pkg:golang/b.org/y@v0.1.0%2Bincompatible",` +
			`"pkg:golang/std@1.26.8","pkg:npm/d3@7.9.2"]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it has no %s:\n%s", want, text)
		}
	}
	builds[0].Deps = append(builds[0].Deps, &debug.Module{Path: "c.org/z", Version: "v1.0.0"})
	_, err = newBOM(builds, listed, time.Time{})
	if err == nil || !strings.Contains(err.Error(), "run make licences") {
		t.Errorf("a module that is not listed: %v", err)
	}
}

// TestUnready: a build of a commit before the release is not published as one.
func TestUnready(t *testing.T) {
	for _, x := range []struct {
		current, changelog, golden string
		reasons                    int
	}{
		{version.Number, "# Changelog\n\n## " + version.Number + " - 2026-12-01\n", `{"version": "x", "views": []}`, 0},
		{version.Number + "-dev", "# Changelog\n\n## Unreleased: " + version.Number + "\n",
			`{"version": "x", "candidate": true}`, 3},
		{version.Number, "# Changelog\n\n## Unreleased\n\n## " + version.Number + " - 2026-12-01\n", `{"version": "x"}`,
			1},
		{version.Number, "# Changelog\n\n## " + version.Number + " - 2026-12-01\n", "", 1},
	} {
		if why := unready(x.current, x.changelog, x.golden); len(why) != x.reasons {
			t.Errorf("%+v: %q", x, why)
		}
	}
}

// TestTakesACommit: what is not committed could not be made again.
func TestTakesACommit(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
		"--allow-empty", "-m", "x"}} {
		if _, err := output("", nil, "git", args...); err != nil {
			t.Skip(err)
		}
	}
	if commit, at, err := source(); err != nil || len(commit) < 40 || time.Since(at) > time.Hour {
		t.Errorf("%s of %v: %v", commit, at, err)
	}
	if err := os.WriteFile("new", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := source(); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("with a file that is not committed: %v", err)
	}
}
