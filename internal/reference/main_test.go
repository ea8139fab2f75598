package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestUpToDate: the generated pages are what the code makes of them.
func TestUpToDate(t *testing.T) {
	made, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		if got := read(t, name); got != want {
			t.Errorf("%s is not what the code makes of it: run make reference", name)
		}
		if !strings.Contains(want, "Do not edit") || len(want) < 1000 {
			t.Errorf("%s is too short: %q", name, want)
		}
	}
}

// TestExitCodes: errors.md has every exit code.
func TestExitCodes(t *testing.T) {
	page := read(t, "docs/reference/errors.md")
	codes := regexp.MustCompile(`(?m)^\tExit\w+ += (\d+)$`).FindAllStringSubmatch(read(t, "tools/terminal/run.go"), -1)
	if len(codes) < 7 {
		t.Fatalf("%d exit codes", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(page, "| "+c[1]+" | ") {
			t.Errorf("docs/reference/errors.md has no exit code %s", c[1])
		}
	}
}

// TestErrors: errors.md has every exported error of the packages that programs import.
func TestErrors(t *testing.T) {
	page := read(t, "docs/reference/errors.md")
	declared := regexp.MustCompile(`(?m)^(?:var |\t|type )(Err[A-Z]\w+|[A-Z]\w*Error)(?: +=| struct)`)
	found := 0
	for _, dir := range []string{"format", "storage", "storage/object", "reader", "reader/expr", "reader/batch",
		"compaction", "tools/ingest/source", "tools/selection"} {
		for _, file := range sources(t, dir, ".go", false) {
			for _, m := range declared.FindAllStringSubmatch(read(t, file), -1) {
				if name := filepath.Base(dir) + "." + m[1]; !strings.Contains(page, "`"+name+"`") {
					t.Errorf("docs/reference/errors.md has no `%s`", name)
				}
				found++
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d errors", found)
	}
}

// TestConfiguration: configuration.md has every variable that programs of users read, and every option of a store.
func TestConfiguration(t *testing.T) {
	page := read(t, "docs/reference/configuration.md")
	var names []string
	variable := regexp.MustCompile(`"(DSISTORE_[A-Z_]+)"`)
	for _, dir := range []string{"storage", "usage", "reader", "tools", "internal/simd", "internal/python"} {
		for _, file := range sources(t, dir, ".go", true) {
			names = append(names, groups(variable, read(t, file))...)
		}
	}
	for _, file := range sources(t, "python/src", ".py", true) {
		names = append(names, groups(variable, read(t, file))...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 7 {
		t.Fatalf("found only %q", names)
	}
	option := regexp.MustCompile(`"([a-z0-9_]+)":`)
	for _, service := range []string{"s3", "gcs", "azure"} {
		text := read(t, "storage/object/"+service+"/uri.go")
		of := groups(option, text[strings.Index(text, "\nvar keys ="):strings.Index(text, "\n// ParseOptions")])
		if len(of) < 10 {
			t.Errorf("%s: found only %q", service, of)
		}
		names = append(names, of...)
	}
	for _, name := range names {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/reference/configuration.md has no `%s`", name)
		}
	}
}

func groups(of *regexp.Regexp, text string) (out []string) {
	for _, m := range of.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// sources returns the files of a directory that have an ending, without tests, and with deep those of all below it.
func sources(t *testing.T, dir, ending string, deep bool) (out []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && (!deep || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ending) && !strings.HasSuffix(name, "_test.go"):
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
