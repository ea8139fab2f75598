// Package version says what a program was built from.
package version

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Number is the version that this source is, or becomes.
const Number = "0.1.0"

// development follows Number in all source but that of a release: no other build has the version of a release.
const development = "-dev"

// Current is the version of dsi, dsistat and the engine: "0.1.0", or "0.1.0-dev" where it is not released.
const Current = Number + development

// Python returns Current as PEP 440 has it: "0.1.0", or "0.1.0.dev0". The package's _version.py has the same: a test
// holds them together.
func Python() string { return strings.Replace(Current, "-dev", ".dev0", 1) }

// Commit and Date are those of the source. The linker sets them (-X) where no repository says them.
var Commit, Date string

// An Info says what this program was built from. Its JSON keys are stable.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty: not known
	Modified bool   `json:"modified"` // the source had changes that were not committed
	Date     string `json:"date"`     // of the commit; empty: not known
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Get returns the Info of this program.
func Get() Info {
	i := Info{Version: Current, Commit: Commit, Date: Date, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	if build.Main.Path != module { // linked into another program, whose repository it would be
		return i
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = cmp.Or(i.Commit, s.Value)
		case "vcs.time":
			i.Date = cmp.Or(i.Date, s.Value)
		case "vcs.modified":
			i.Modified = Commit == "" && s.Value == "true"
		}
	}
	i.fromPseudo(build.Main.Version)
	return i
}

// module is the path of this module.
const module = "github.com/dsistore/dsistore"

// fromPseudo takes the commit and its time from the version of a module that has no tag, as go install ...@main has it:
// v0.0.0-20261127054212-5a5d174b9c1e.
func (i *Info) fromPseudo(version string) {
	m := pseudo.FindStringSubmatch(version)
	if m == nil || i.Commit != "" {
		return
	}
	at, err := time.Parse("20060102150405", m[1])
	if err == nil {
		i.Commit, i.Date = m[2], at.Format(time.RFC3339)
	}
}

var pseudo = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})$`)

// String returns it in one line: "0.1.0 (669fe7c0, 2026-11-25)".
func (i Info) String() string {
	if i.Commit == "" {
		return i.Version
	}
	s := i.Version + " (" + i.Commit[:min(len(i.Commit), 8)]
	if i.Modified {
		s += " with changes"
	}
	if i.Date != "" {
		s += ", " + i.Date[:min(len(i.Date), len("2006-01-02"))]
	}
	return s + ")"
}
