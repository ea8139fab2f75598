package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/internal/version"
)

// platforms are those that programs are released for.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// programs are the names of what ./tools/cmd/... has.
var programs = []string{"dsi", "dsistat"}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// A release is one that is being made.
type release struct {
	out    string // directory of what is published
	work   string // temporary directory
	python string // with what requirements.txt has; empty: no wheels
	commit string
	date   time.Time // of the commit
	host   platform
	began  time.Time
	left   []string // what was left out, and why
}

func main() {
	python := flag.String("python", "", "Python with what requirements.txt has, for wheels; none: they are left out")
	wheel := flag.String("check-wheel", "", "say what a wheel's library needs, and fail if its name says otherwise")
	flag.Parse()
	if err := run(*python, *wheel); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(python, wheel string) (err error) {
	if wheel != "" {
		needs, err := checkWheel(wheel)
		fmt.Println(needs)
		return err
	}
	r := &release{python: python, host: platform{runtime.GOOS, runtime.GOARCH}, began: time.Now()}
	if !slices.Contains(platforms, r.host) {
		return fmt.Errorf("releases are made on %v: what is made on %v could not be tried", platforms, r.host)
	}
	if r.commit, r.date, err = source(); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(filepath.Join("out", "release")); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "dsistore-release-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	fmt.Printf("dsistore %s of %s, %s\n", version.Current, r.commit, r.date.Format(time.DateOnly))
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"programs", r.buildPrograms}, {"programs again, elsewhere, with an empty build cache", r.buildAgain},
		{"archives", r.archives}, {"wheels", r.wheels}, {"SBOM", r.sbom}, {"trying them", r.try},
		{"SHA256SUMS", r.sums},
	} {
		begin := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%6.1f s  %s\n", time.Since(begin).Seconds(), step.name)
	}
	return r.report()
}

// source returns the commit that is checked out, and its time. A build of anything else could not be made again.
func source() (string, time.Time, error) {
	changed, err := output("", nil, "git", "status", "--porcelain")
	if err != nil {
		return "", time.Time{}, fmt.Errorf("a release is made from a commit: %w", err)
	}
	if changed != "" {
		return "", time.Time{}, fmt.Errorf("a release is made from a commit: commit or remove first\n%s", changed)
	}
	said, err := output("", nil, "git", "show", "-s", "--format=%H %ct")
	if err != nil {
		return "", time.Time{}, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(said), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	return commit, time.Unix(unix, 0).UTC(), err
}

// output runs a program and returns what it writes to standard output, and as an error what it writes to the other.
func output(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	var stderr bytes.Buffer
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out), nil
}

// stamp is what the linker sets, so that a build knows its commit without a repository.
func (r *release) stamp() string {
	const v = "github.com/dsistore/dsistore/internal/version."
	return "-s -w -X " + v + "Commit=" + r.commit + " -X " + v + "Date=" + r.date.Format(time.RFC3339)
}

// goEnv is the environment of all builds: settings of the machine must not change what is made.
func (r *release) goEnv(p platform) []string {
	return []string{"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + p.os, "GOARCH=" + p.arch,
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.date.Unix(), 10)}
}

// build builds the programs from the sources in a directory.
func (r *release) build(from, to string, p platform, env ...string) error {
	env = append(append(r.goEnv(p), "CGO_ENABLED=0"), env...)
	_, err := output(from, env, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags",
		r.stamp(), "-o", to+string(filepath.Separator), "./tools/cmd/...")
	return err
}

// programsOf is the directory of the programs of a platform.
func (r *release) programsOf(p platform) string { return filepath.Join(r.work, "programs", p.String()) }

func (r *release) buildPrograms() error {
	for _, p := range platforms {
		if err := r.build("", r.programsOf(p), p); err != nil {
			return err
		}
		for _, name := range programs {
			if err := checkStatic(filepath.Join(r.programsOf(p), name), p); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildAgain builds this machine's programs from a copy of the source without a repository: the bytes must be the same.
func (r *release) buildAgain() error {
	copied, to := filepath.Join(r.work, "elsewhere"), filepath.Join(r.work, "again")
	cache := filepath.Join(r.work, "cache")
	if _, err := output("", nil, "git", "checkout-index", "-a", "--prefix="+copied+"/"); err != nil {
		return err
	}
	if err := r.build(copied, to, r.host, "GOCACHE="+cache); err != nil {
		return err
	}
	for _, name := range programs {
		if err := sameFiles(filepath.Join(r.programsOf(r.host), name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(copied), os.RemoveAll(cache))
}

// sameFiles is an error if two files differ.
func sameFiles(a, b string) error {
	x, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	y, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if !bytes.Equal(x, y) {
		return fmt.Errorf("built twice, %s has other bytes: %d and %d of them", filepath.Base(a), len(x), len(y))
	}
	return nil
}

// sums writes SHA256SUMS, which sha256sum -c checks.
func (r *release) sums() error {
	names, err := r.files()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), b.Bytes(), 0o644)
}

// files returns the names of what was made.
func (r *release) files() ([]string, error) {
	entries, err := os.ReadDir(r.out)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// report prints what was made, and what was not.
func (r *release) report() error {
	names, err := r.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		i, err := os.Stat(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Printf("%6.1f MB  %s\n", float64(i.Size())/1e6, name)
	}
	for _, l := range r.left {
		fmt.Println("left out:", l)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	golden, err := os.ReadFile(filepath.Join("internal", "golden", "testdata", version.Number, "golden.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, why := range unready(version.Current, string(changelog), string(golden)) {
		fmt.Println("not to be published:", why)
	}
	fmt.Printf("%6.1f s  in all\n", time.Since(r.began).Seconds())
	return nil
}

// unready says why what was made is not yet a release: what CONTRIBUTING.md's first steps do is not done.
func unready(current, changelog, golden string) (why []string) {
	if current != version.Number {
		why = append(why, "version.go and _version.py have the version of a development build")
	}
	if !strings.Contains(changelog, "\n## "+version.Number+" ") || strings.Contains(changelog, "\n## Unreleased") {
		why = append(why, "CHANGELOG.md has a section Unreleased, or none of "+version.Number+" with a date")
	}
	if golden == "" || strings.Contains(golden, `"candidate": true`) {
		why = append(why, "the golden store of "+version.Number+" is a candidate, or is not there")
	}
	return why
}

// leaveOut says that something is not made here.
func (r *release) leaveOut(what, why string) {
	r.left = append(r.left, what+": "+cmp.Or(why, "not known why"))
}
