// Notice says whose software is in our programs. It writes NOTICE (the notices that the Apache licence asks to be
// passed on) and THIRD_PARTY.md (every module in the programs, and what they carry in files, its version and its
// licence), and with -texts DIR copies the licences themselves, and that of the standard library, which go beside a
// program that is given to others. Run it in the root of the repository, "make licences", when a dependency changes;
// its test fails until then.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	noticeFile = "NOTICE"
	listFile   = "THIRD_PARTY.md"
	programs   = "./tools/cmd/..."
)

// assets are the directories with software of others that programs carry in files; an asset.json in each names it.
var assets = []string{"tools/report/page/assets"}

func main() {
	texts := flag.String("texts", "", "copy the licences into this directory, and write nothing else")
	flag.Parse()
	if err := run(*texts); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(texts string) error {
	modules, err := all(".")
	if err != nil {
		return err
	}
	if texts != "" {
		std, err := standard(".", modules)
		if err != nil {
			return err
		}
		return copyTexts(texts, append(modules, std))
	}
	return errors.Join(os.WriteFile(noticeFile, notice(modules), 0o644), os.WriteFile(listFile, table(modules), 0o644))
}

// A module is one whose packages are in the programs, or an asset.
type module struct {
	path, version string
	licences      []document
	notices       []document
}

// A document is a licence or a notice of a module.
type document struct {
	file  string
	text  []byte
	kinds []string // of a licence: see kinds
}

// all returns what list and the assets have.
func all(root string) ([]module, error) {
	modules, err := list(root)
	if err != nil {
		return nil, err
	}
	for _, dir := range assets {
		m, err := readAsset(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// readAsset reads a directory of files that were published elsewhere.
func readAsset(dir string) (module, error) {
	text, err := os.ReadFile(filepath.Join(dir, "asset.json"))
	if err != nil {
		return module{}, err
	}
	var asset struct{ Registry, Name, Version string }
	if err := json.Unmarshal(text, &asset); err != nil {
		return module{}, fmt.Errorf("%s: %w", dir, err)
	}
	m := module{path: asset.Registry + ":" + asset.Name, version: asset.Version}
	return m, m.read(dir)
}

// list returns the modules in the programs, of a build with cgo and of one without, in the order of their paths.
func list(root string) ([]module, error) {
	dirs := map[string]string{}
	var modules []module
	for _, cgo := range []string{"0", "1"} {
		cmd := exec.Command("go", "list", "-buildvcs=false", "-deps",
			"-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", programs)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED="+cgo)
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return nil, fmt.Errorf("go list: %s", exit.Stderr)
		} else if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 3 || f[1] == "" || dirs[f[0]] != "" { // the standard library, this module, seen
				continue
			}
			dirs[f[0]] = f[2]
			modules = append(modules, module{path: f[0], version: f[1]})
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	for i := range modules {
		if err := modules[i].read(dirs[modules[i].path]); err != nil {
			return nil, err
		}
	}
	return modules, nil
}

// standard returns the standard library as a module. Some distributions of Go leave its licence out; golang.org/x/sys,
// which is among modules, has the same one.
func standard(root string, modules []module) (module, error) {
	cmd := exec.Command("go", "env", "GOVERSION", "GOROOT")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return module{}, fmt.Errorf("go env: %w", err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	std := module{path: "std", version: strings.TrimPrefix(version, "go")}
	if _, err := os.Stat(filepath.Join(dir, "LICENSE")); err == nil {
		return std, std.read(dir)
	}
	i := slices.IndexFunc(modules, func(m module) bool { return m.path == "golang.org/x/sys" })
	if i < 0 {
		return std, fmt.Errorf("%s has no LICENSE", dir)
	}
	std.licences = modules[i].licences
	return std, nil
}

var (
	licenceName = regexp.MustCompile(`(?i)^([a-z]+_)?(licen[cs]e|copying)(\.(txt|md))?$`)
	noticeName  = regexp.MustCompile(`(?i)^notice(\.(txt|md))?$`)
)

// read finds the licences and notices in the root of the module.
func (m *module) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		licence, notice := licenceName.MatchString(e.Name()), noticeName.MatchString(e.Name())
		if e.IsDir() || !licence && !notice {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		d := document{file: e.Name(), text: text}
		if notice {
			m.notices = append(m.notices, d)
			continue
		}
		if d.kinds = kinds(text); len(d.kinds) == 0 {
			return fmt.Errorf("%s %s: %s is no licence that this program knows: read it, and teach it", m.path,
				m.version, e.Name())
		}
		m.licences = append(m.licences, d)
	}
	if len(m.licences) == 0 {
		return fmt.Errorf("%s %s: no licence found", m.path, m.version)
	}
	return nil
}

// kinds returns the SPDX identifiers of the licences in a text, which may hold those of several parts of a module.
func kinds(text []byte) []string {
	s := strings.Join(strings.Fields(string(text)), " ")
	var out []string
	if strings.Contains(s, "Apache License Version 2.0, January 2004") {
		out = append(out, "Apache-2.0")
	}
	bsd := strings.Count(s, "Redistribution and use in source and binary forms, with or without modification")
	three := strings.Count(s, "to endorse or promote products derived from")
	if bsd > three {
		out = append(out, "BSD-2-Clause")
	}
	if three > 0 && bsd > 0 {
		out = append(out, "BSD-3-Clause")
	}
	if strings.Contains(s, "Permission is hereby granted, free of charge, to any person obtaining a copy") {
		out = append(out, "MIT")
	}
	if strings.Contains(s, "Permission to use, copy, modify, and/or distribute this software for any purpose with "+
		"or without fee is hereby granted") {
		out = append(out, "ISC")
	}
	return out
}

// notice returns NOTICE: ours, and those of the modules as they are.
func notice(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("dsistore\n\nLicensed under the Apache License, Version 2.0: see LICENSE. Its programs contain " +
		"software of others,\n" +
		"listed in " + listFile + ". The notices of those that ask to have them passed on follow.\n")
	for _, m := range modules {
		for _, d := range m.notices {
			fmt.Fprintf(&b, "\n%s\n%s %s\n\n%s\n", strings.Repeat("-", 80), m.path, m.version,
				bytes.TrimRight(tidy(d.text), "\n"))
		}
	}
	return b.Bytes()
}

// tidy takes out what editors differ about.
func tidy(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.Write(bytes.TrimRight(line, " \t\r\n"))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// table returns THIRD_PARTY.md.
func table(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("# Software of others in dsi and dsistat\n\n" +
		"Written by `make licences` from the modules' own files. A build contains the Go standard library too " +
		"(BSD-3-Clause, The\nGo Authors). Those who give a built program to others add the licences, which " +
		"`make licences` copies to bin/licences,\nand NOTICE. Where there are several, they are those of parts of " +
		"the module. What begins with npm: is a file in dsistat's\npage.\n\n" +
		"| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		var all []string
		for _, d := range m.licences {
			all = append(all, d.kinds...)
		}
		slices.Sort(all)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.path, m.version, strings.Join(slices.Compact(all), ", "))
	}
	return b.Bytes()
}

// copyTexts copies every licence and notice to dir, by module.
func copyTexts(dir string, modules []module) error {
	for _, m := range modules {
		to := filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(m.path)+"@"+m.version)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, d := range append(slices.Clone(m.licences), m.notices...) {
			if err := os.WriteFile(filepath.Join(to, d.file), d.text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
