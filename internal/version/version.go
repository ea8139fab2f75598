// Package version says what a program was built from.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Number is the version of dsi, dsistat, the engine and the Python package, whose _version.py has it too: a test holds
// them together.
const Number = "0.1.0"

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
	i := Info{Version: Number, Commit: Commit, Date: Date, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
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
	return i
}

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
