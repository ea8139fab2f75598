package version

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// The Python package has the same version.
func TestPythonAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "python", "src", "dsistore", "_version.py"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^VERSION = "(.*)"$`).FindSubmatch(text)
	if m == nil || string(m[1]) != Python() {
		t.Errorf("_version.py has %q, want %s", m, Python())
	}
}

func TestString(t *testing.T) {
	for want, i := range map[string]Info{
		"0.1.0":            {Version: "0.1.0"},
		"0.1.0 (669fe7c0)": {Version: "0.1.0", Commit: "669fe7c0aaaa"},
		"0.1.0 (669 with changes, 2026-11-25)": {Version: "0.1.0", Commit: "669", Modified: true,
			Date: "2026-11-25T01:02:03Z"},
	} {
		if got := i.String(); got != want {
			t.Errorf("%+v is %q, want %q", i, got, want)
		}
	}
}

// What the linker sets comes before what the repository says.
func TestGet(t *testing.T) {
	Commit, Date = "abc", "2026-01-02"
	defer func() { Commit, Date = "", "" }()
	want := Info{Version: Current, Commit: "abc", Date: "2026-01-02", Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
	if got := Get(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A program that go install made of a commit without a tag says which.
func TestPseudoVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v0.0.0-20261127054212-5a5d174b9c1e":       "5a5d174b9c1e 2026-11-27T05:42:12Z",
		"v0.2.0-rc1.0.20261127054212-5a5d174b9c1e": "5a5d174b9c1e 2026-11-27T05:42:12Z",
		"v0.1.0":  " ",
		"(devel)": " ",
	} {
		var i Info
		if i.fromPseudo(version); i.Commit+" "+i.Date != want {
			t.Errorf("%s: %+v", version, i)
		}
	}
}
