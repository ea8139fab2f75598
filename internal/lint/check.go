package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/dsistore/dsistore"

// maxLines is the length at which a file certainly holds a second concept.
const maxLines = 700

const arrowPrefix = "github.com/apache/arrow"

// drawers are names that say nothing of what a package is for.
var drawers = map[string]bool{
	"base": true, "common": true, "core": true, "helper": true, "helpers": true, "lib": true, "misc": true,
	"shared": true, "tool": true, "util": true, "utils": true,
}

// skipped are directories that are not checked: data of tests, and what builds, environments and package managers
// write.
var skipped = map[string]bool{
	"testdata": true, "out": true, "bin": true, "node_modules": true, "shared": true, "build": true, "licences": true,
}

// unfinished matches the marks of unfinished work. They are put together here so that this file does not match itself.
var unfinished = regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME|XX" + `X)\b`)

// Rules are what a source tree is checked against.
type Rules struct {
	Layers   *Layers
	Glossary Glossary
	Prose    []Pattern
	Pending  Exceptions
}

// Check returns everything in the source tree that breaks a rule, in file order. It reads *.go files of every build tag
// and, for the rules about text, Python, shell, assembly and Markdown. It skips testdata and directories that start
// with "." or "_", as the go command does, and what a build leaves behind.
func Check(tree fs.FS, rules Rules) ([]string, error) {
	layers := rules.Layers
	c := &checker{
		layers: layers, glossary: rules.Glossary, prose: rules.Prose, pending: rules.Pending,
		seen: map[string]bool{}, files: map[string]int{},
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || skipped[base]) {
				return fs.SkipDir
			}
			return nil
		}
		if !checkedText[path.Ext(base)] {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		c.text(name, src)
		if path.Ext(base) == ".md" && !generated.Match(src[:min(len(src), 1000)]) {
			c.links(tree, name, src)
			if isDocument(name) {
				c.document(name, src)
			}
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		return c.file(name, src)
	})
	if err != nil {
		return nil, err
	}
	for _, pkg := range layers.Packages {
		if !c.seen[pkg] {
			c.add("internal/lint/layers.txt", layers.lines[pkg],
				"package %s is listed and does not exist: remove its line", pkg)
		}
	}
	for pkg, n := range c.files {
		if n > maxFiles && !c.pending["files"][pkg] {
			c.add(pkg, 1, "%d Go files without tests, want at most %d: split the package by concept", n, maxFiles)
		}
	}
	sort.Strings(c.findings)
	return c.findings, nil
}

type checker struct {
	layers   *Layers
	glossary Glossary
	prose    []Pattern
	pending  Exceptions
	seen     map[string]bool // packages met
	files    map[string]int  // Go files of a package, tests aside
	findings []string
}

func (c *checker) add(file string, line int, format string, args ...any) {
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
}

func (c *checker) file(name string, src []byte) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	pkg := path.Dir(name)
	isTest := strings.HasSuffix(name, "_test.go")
	if !isTest {
		c.files[pkg]++
	}

	if !c.seen[pkg] {
		c.seen[pkg] = true
		if c.layers.Imports[pkg] == nil {
			c.add(name, 1, "package %s is not listed in internal/lint/layers.txt: add it with what it may import", pkg)
		}
		for _, part := range strings.Split(pkg, "/") {
			if drawers[part] {
				c.add(name, 1, "package %s: %q says nothing of what the package is for: name it for its concept", pkg,
					part)
			}
		}
	}

	allowed := c.layers.Imports[pkg]
	if isTest {
		allowed = c.layers.TestImports[pkg]
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		ours, isOurs := strings.CutPrefix(imported, Module)
		ours = strings.TrimPrefix(ours, "/")
		switch {
		case isOurs && c.layers.Imports[pkg] != nil && !allowed[ours]:
			c.add(name, line(spec.Pos()), "%s may not import %s: see internal/lint/layers.txt", pkg, ours)
		case strings.HasPrefix(imported, arrowPrefix) && !c.layers.Arrow[pkg]:
			c.add(name, line(spec.Pos()), "%s may not import Arrow: see internal/lint/layers.txt", pkg)
		}
	}

	if n := bytes.Count(src, []byte("\n")); n > maxLines && !ast.IsGenerated(f) {
		c.add(name, maxLines, "%d lines: look for the second concept and give it its own file", n)
	}
	for i, text := range strings.Split(string(src), "\n") {
		if unfinished.MatchString(text) {
			c.add(name, i+1, "mark of unfinished work: finish it, or write it in an issue")
		}
	}
	if pkg == "format" || strings.HasPrefix(pkg, "format/") {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "iota" {
				c.add(name, line(id.Pos()), "iota in a format package: numbers on disk are explicit constants")
			}
			return true
		})
	}
	return nil
}
