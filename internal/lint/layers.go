package lint

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Layers is the parsed form of layers.txt.
type Layers struct {
	// Packages in the order of the file; each may name only packages before it.
	Packages []string
	// Imports and TestImports say, by package, what it and its tests may import of this module.
	Imports, TestImports map[string]map[string]bool
	// Arrow holds the packages that may import Arrow.
	Arrow map[string]bool

	lines map[string]int // by package, where it is listed
}

// ParseLayers reads the format that layers.txt describes at its head.
func ParseLayers(r io.Reader) (*Layers, error) {
	l := &Layers{
		Imports:     map[string]map[string]bool{},
		TestImports: map[string]map[string]bool{},
		Arrow:       map[string]bool{},
		lines:       map[string]int{},
	}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		pkg, rest, found := strings.Cut(text, ":")
		if !found {
			return nil, fmt.Errorf("layers.txt:%d: want \"package: imports\"", n)
		}
		imports, tests, _ := strings.Cut(rest, "|")
		if pkg == "arrow" {
			for _, p := range strings.Fields(imports) {
				if l.Imports[p] == nil {
					return nil, fmt.Errorf("layers.txt:%d: arrow: package %s is not listed", n, p)
				}
				l.Arrow[p] = true
			}
			continue
		}
		if l.Imports[pkg] != nil {
			return nil, fmt.Errorf("layers.txt:%d: package %s is listed twice", n, pkg)
		}
		allowed, allowedInTests := map[string]bool{}, map[string]bool{}
		for _, p := range strings.Fields(imports) {
			if l.Imports[p] == nil {
				return nil, fmt.Errorf("layers.txt:%d: %s names %s, which does not stand above it", n, pkg, p)
			}
			allowed[p] = true
			allowedInTests[p] = true
		}
		for _, p := range strings.Fields(tests) {
			if l.Imports[p] == nil {
				return nil, fmt.Errorf("layers.txt:%d: tests of %s name %s, which does not stand above it", n, pkg, p)
			}
			allowedInTests[p] = true
		}
		allowedInTests[pkg] = true // package x_test imports x
		l.Packages = append(l.Packages, pkg)
		l.lines[pkg] = n
		l.Imports[pkg] = allowed
		l.TestImports[pkg] = allowedInTests
	}
	return l, lines.Err()
}
