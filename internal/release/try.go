package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dsistore/dsistore/internal/version"
)

// rows are ingested by the released program, and read by the released Python package.
const rows = `{"clicks": [5, 7], "day": "2026-11-01", "user": 1}
{"clicks": [], "day": "2026-11-01", "user": 2}
{"clicks": [7], "day": "2026-11-02", "user": 3}
`

// script is what a user of the package does. It prints the version of the package and of its engine, and rows.
const script = `
import sys
import dsistore
from dsistore import _engine
(batch,) = dsistore.open(sys.argv[1]).table("t").numpy(["user", "clicks"], batch_size=10)
clicks = batch["clicks"]
print(dsistore.__version__, _engine.call("version"), batch["user"].tolist(), clicks.values.tolist(),
      clicks.offsets.tolist())
`

// try installs what was made for this machine as a user does, and uses it.
func (r *release) try() error {
	dir := filepath.Join(r.work, "try")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	name := archiveName(r.host)
	if _, err := output(dir, nil, "tar", "-xzf", filepath.Join(r.out, name+".tar.gz")); err != nil {
		return err
	}
	installed := filepath.Join(dir, name)
	for _, f := range []string{"LICENSE", "NOTICE", "THIRD_PARTY.md", "man/man1/dsi-ingest.1", "completions/dsi.fish",
		"licences/std@" + strings.TrimPrefix(runtime.Version(), "go") + "/LICENSE"} {
		if _, err := os.Stat(filepath.Join(installed, f)); err != nil {
			return err
		}
	}
	for _, p := range programs {
		program := filepath.Join(installed, p)
		line, err := output(dir, nil, program, "--version")
		if err != nil {
			return err
		}
		text, err := output(dir, nil, program, "version", "--json")
		if err != nil {
			return err
		}
		var info version.Info
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return err
		}
		if info.Version != version.Current || info.Commit != r.commit || info.Modified || !strings.Contains(line,
			info.String()) {
			return fmt.Errorf("%s is %s, and %s", p, text, line)
		}
	}
	return r.tryTable(dir, filepath.Join(installed, "dsi"))
}

// tryTable ingests rows with the program, and reads them with it and with the wheel for this machine, if there is one.
func (r *release) tryTable(dir, dsi string) error {
	source, table := filepath.Join(dir, "rows.jsonl"), []string{filepath.Join(dir, "store"), "t"}
	if err := os.WriteFile(source, []byte(rows), 0o644); err != nil {
		return err
	}
	if _, err := output(dir, nil, dsi, append([]string{"ingest", table[0], table[1], source}, "--partition-by",
		"day")...); err != nil {
		return err
	}
	exported := filepath.Join(dir, "read.jsonl")
	if _, err := output(dir, nil, dsi, "export", table[0], table[1], "--features", "user,clicks,day", "--to",
		exported); err != nil {
		return err
	}
	read, err := os.ReadFile(exported)
	if err != nil {
		return err
	}
	if got, want := strings.ReplaceAll(string(read), " ", ""), strings.ReplaceAll(rows, " ", ""); got != want {
		return fmt.Errorf("dsi reads\n%s, want\n%s", got, want)
	}
	wheel, err := r.wheelFor(r.host)
	if wheel == "" {
		return err
	}
	venv := filepath.Join(dir, "venv")
	if _, err := output(dir, nil, r.python, "-m", "venv", venv); err != nil {
		return err
	}
	own := filepath.Join(venv, "bin", "python")
	if _, err := output(dir, nil, own, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
		"--no-compile", wheel); err != nil {
		return err
	}
	said, err := output(dir, []string{"PYTHONPATH="}, own, "-c", script, table[0])
	want := version.Python() + " " + version.Python() + " [1.0, 2.0, 3.0] [5, 7, 7] [0, 2, 2, 3]\n"
	if err == nil && said != want {
		return fmt.Errorf("the wheel reads %q, want %q", said, want)
	}
	return err
}

// wheelFor returns the wheel for a platform, empty if none was made.
func (r *release) wheelFor(p platform) (string, error) {
	pattern := map[platform]string{{"linux", "amd64"}: "*linux*_x86_64.whl", {"linux", "arm64"}: "*linux*_aarch64.whl",
		{"darwin", "amd64"}: "*macosx*_x86_64.whl", {"darwin", "arm64"}: "*macosx*_arm64.whl"}[p]
	found, err := filepath.Glob(filepath.Join(r.out, pattern))
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}
