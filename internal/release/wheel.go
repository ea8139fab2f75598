package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/internal/version"
)

// oldestGlibc is what wheels are linked against: that of manylinux2014, which pip knows everywhere.
const oldestGlibc = "2.17"

// wheels builds the Python package for Linux, on both processors, with the C compiler of zig, which has the symbols of
// old versions of glibc; on macOS for this machine, with its own.
func (r *release) wheels() error {
	if r.python == "" {
		r.leaveOut("wheels", "no Python was given")
		return nil
	}
	for _, p := range platforms {
		if err := r.wheel(p); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

func (r *release) wheel(p platform) error {
	env := append(r.goEnv(p), "CGO_ENABLED=1", "DSISTORE_COMMIT="+r.commit,
		"DSISTORE_DATE="+r.date.Format(time.RFC3339))
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]
	switch {
	case p.os == "linux":
		cache := filepath.Join(r.work, "zig")
		env = append(env, "CC="+r.python+" -m ziglang cc -target "+machine+"-linux-gnu."+oldestGlibc,
			"_PYTHON_HOST_PLATFORM=linux-"+machine, "ZIG_LOCAL_CACHE_DIR="+cache, "ZIG_GLOBAL_CACHE_DIR="+cache)
	case p != r.host:
		r.leaveOut("the wheel for "+p.String(), "it is made by make release on such a Mac, whose SDK it needs")
		return nil
	}
	var made [2]string
	for i := range made {
		dir := filepath.Join(r.work, fmt.Sprint("wheel", i), p.String())
		_, err := output("", env, r.python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps",
			"--no-build-isolation", "--wheel-dir", dir, "./python")
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if len(entries) != 1 {
			return fmt.Errorf("%d files in place of a wheel", len(entries))
		}
		made[i] = filepath.Join(dir, entries[0].Name())
		if p != r.host {
			break
		}
	}
	if made[1] != "" {
		if err := sameFiles(made[0], made[1]); err != nil {
			return err
		}
	}
	if _, err := checkWheel(made[0]); err != nil {
		return err
	}
	content, err := os.ReadFile(made[0])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, filepath.Base(made[0])), content, 0o644)
}

// needs says what a library wants of the system.
type needs struct {
	glibc     [2]int
	libraries []string
	machine   string
}

func (n needs) String() string {
	return fmt.Sprintf("%s, glibc %d.%d, %s", n.machine, n.glibc[0], n.glibc[1], strings.Join(n.libraries, " "))
}

// promised are the libraries of glibc that each system of the policy manylinux has (PEP 513, 571, 599).
var promised = []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2", "librt.so.1", "libm.so.6",
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

// platformTag is that of a manylinux wheel (PEP 600).
var platformTag = regexp.MustCompile(`-py3-none-manylinux_(\d+)_(\d+)_(\w+)\.whl$`)

// library returns the engine's library in a wheel, and the name of its entry.
func library(wheel string) (name string, content []byte, err error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, "dsistore/libdsistore.") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return "", nil, err
		}
		content, err := io.ReadAll(r)
		return f.Name, content, errors.Join(err, r.Close())
	}
	return "", nil, fmt.Errorf("%s has no library", wheel)
}

// checkWheel reads what a wheel's library needs, and returns an error if the wheel's name promises that less will do:
// pip installs by the name, and the library would not load. Wheels of macOS are not looked into.
func checkWheel(path string) (needs, error) {
	if base := filepath.Base(path); !strings.HasPrefix(base, "dsistore-"+version.Python()+"-") {
		return needs{}, fmt.Errorf("%s is not of version %s", base, version.Python())
	}
	name, content, err := library(path)
	if err != nil || strings.HasSuffix(name, ".dylib") {
		return needs{}, err
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return needs{}, fmt.Errorf("%s: %w", name, err)
	}
	n, err := needsOf(f)
	if err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	for _, want := range []string{"dsi_begin", "dsi_next", "dsi_release"} { // of those that Python calls
		exports := func(s elf.Symbol) bool { return s.Name == want && s.Section != elf.SHN_UNDEF }
		if !slices.ContainsFunc(symbols, exports) {
			return n, fmt.Errorf("%s does not export %s", name, want)
		}
	}
	return n, n.fit(filepath.Base(path))
}

func needsOf(f *elf.File) (needs, error) {
	n := needs{machine: map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}[f.Machine]}
	var err error
	if n.libraries, err = f.ImportedLibraries(); err != nil {
		return n, err
	}
	symbols, err := f.ImportedSymbols()
	for _, s := range symbols {
		text, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		var v [2]int
		for i, part := range strings.SplitN(text, ".", 3)[:2] {
			if v[i], err = strconv.Atoi(part); err != nil {
				return n, fmt.Errorf("symbol %s is of version %s", s.Name, s.Version)
			}
		}
		if cmp.Or(cmp.Compare(v[0], n.glibc[0]), cmp.Compare(v[1], n.glibc[1])) > 0 {
			n.glibc = v
		}
	}
	return n, err
}

// fit is an error if a system that a wheel's name promises to be enough is not.
func (n needs) fit(wheel string) error {
	m := platformTag.FindStringSubmatch(wheel)
	if m == nil {
		return fmt.Errorf("%s does not say which glibc it needs: %v", wheel, n)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if n.glibc[0] != major || n.glibc[1] > minor || n.machine != m[3] {
		return fmt.Errorf("%s needs %v", wheel, n)
	}
	for _, l := range n.libraries {
		if !slices.Contains(promised, l) {
			return fmt.Errorf("%s needs %s, which not every system has", wheel, l)
		}
	}
	return nil
}
