package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/internal/version"
)

// A bom is a CycloneDX document, as far as we fill it.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Licences   []licence  `json:"licenses"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	Licence struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// sbom writes what the programs and wheels contain, as the Go toolchain wrote it into them, with the licences of
// THIRD_PARTY.md. A module that is not listed there is an error.
func (r *release) sbom() error {
	var builds []*debug.BuildInfo
	for _, p := range platforms {
		for _, name := range programs {
			b, err := buildinfo.ReadFile(filepath.Join(r.programsOf(p), name))
			if err != nil {
				return err
			}
			builds = append(builds, b)
		}
	}
	wheels, err := filepath.Glob(filepath.Join(r.out, "*.whl"))
	if err != nil {
		return err
	}
	for _, w := range wheels {
		name, content, err := library(w)
		if err != nil {
			return err
		}
		b, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("%s in %s: %w", name, w, err)
		}
		builds = append(builds, b)
	}
	listed, err := os.ReadFile("THIRD_PARTY.md")
	if err != nil {
		return err
	}
	b, err := newBOM(builds, string(listed), r.date)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "dsistore-"+version.Current+".cdx.json"), append(text, '\n'), 0o644)
}

// row is a line of THIRD_PARTY.md: a module, its version and its licences.
var row = regexp.MustCompile(`(?m)^\| (\S+) \| (\S+) \| (\S.*\S) \|$`)

// newBOM returns the document of some builds.
func newBOM(builds []*debug.BuildInfo, listed string, at time.Time) (*bom, error) {
	licences := map[string]string{}
	var assets []component
	for _, m := range row.FindAllStringSubmatch(listed, -1) {
		licences[m[1]+"@"+m[2]] = m[3]
		if name, ok := strings.CutPrefix(m[1], "npm:"); ok { // a file in the programs that is no module
			assets = append(assets, newComponent("pkg:npm/", name, m[2], m[3]))
		}
	}
	all := map[string]component{}
	for _, b := range builds {
		std := newComponent("pkg:golang/", "std", strings.TrimPrefix(b.GoVersion, "go"), "BSD-3-Clause")
		all[std.Ref] = std
		for _, m := range b.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			kinds, ok := licences[m.Path+"@"+m.Version]
			if !ok {
				return nil, fmt.Errorf("%s %s is in a program and not in THIRD_PARTY.md: run make licences", m.Path,
					m.Version)
			}
			c := newComponent("pkg:golang/", m.Path, m.Version, kinds)
			c.Properties = []property{{"go:sum", m.Sum}}
			all[c.Ref] = c
		}
	}
	us := newComponent("pkg:golang/", "github.com/dsistore/dsistore", "v"+version.Current, "Apache-2.0")
	us.Type = "application"
	out := &bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{at.Format(time.RFC3339), us}, Components: assets, Dependencies: []dependency{{Ref: us.Ref}},
	}
	for _, c := range all {
		out.Components = append(out.Components, c)
	}
	slices.SortFunc(out.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	for _, c := range out.Components {
		out.Dependencies[0].DependsOn = append(out.Dependencies[0].DependsOn, c.Ref)
	}
	return out, nil
}

// newComponent returns a library, with the licences that are named with commas between them.
func newComponent(kind, name, version, licences string) component {
	purl := kind + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
	for id := range strings.SplitSeq(licences, ", ") {
		var l licence
		l.Licence.ID = id
		c.Licences = append(c.Licences, l)
	}
	return c
}
