package dsi

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/tools/dsistat"
)

// atEnd reads a text, and calls f before its end is seen.
type atEnd struct {
	io.Reader
	f func()
}

func (r *atEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.f != nil {
		r.f()
		r.f = nil
	}
	return n, err
}

// TestExitCodes: a command ends with each exit code that help lists, and the help of every command lists them.
func TestExitCodes(t *testing.T) {
	if race.Enabled {
		t.Skip("the same commands run as scripts under the race detector")
	}
	t.Chdir(t.TempDir())
	t.Setenv("DSISTORE_USAGE", "off")
	for name, text := range map[string]string{"one.jsonl": `{"id": 1}`, "two.jsonl": `{"id": 2}`} {
		if err := os.WriteFile(name, []byte(text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(ctx context.Context, in io.Reader, line string) (int, string) {
		var out, stderr bytes.Buffer
		args := strings.Fields(line)
		program := Run
		if args[0] == "dsistat" {
			program = dsistat.Run
		}
		code := program(ctx, args[1:], in, &out, &stderr)
		t.Logf("%s: %d: %s", line, code, stderr.String())
		return code, out.String()
	}
	exit := func(line string) func() int {
		return func() int { code, _ := run(t.Context(), strings.NewReader(""), line); return code }
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	interrupted := func(line string) func() int {
		return func() int { code, _ := run(cancelled, strings.NewReader(""), line); return code }
	}
	exit("dsi ingest store ads one.jsonl")()
	exit("dsi ingest damaged ads one.jsonl")()
	_, stream := run(t.Context(), strings.NewReader(""), "dsi export store ads --to -")
	packs, err := filepath.Glob("damaged/*/*/pack-*")
	if err != nil || len(packs) == 0 {
		t.Fatalf("no packs: %v", err)
	}
	if err := os.Truncate(packs[0], 10); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(packs[0]), "index.sst"), make([]byte, 700), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, tries := range map[string]map[int]func() int{
		"dsi": {
			0: exit("dsi tables store"),
			1: exit("dsi export store ads --to one.jsonl/out.jsonl"),
			2: exit("dsi scan store ads"),
			3: exit("dsi verify damaged"),
			4: func() int {
				in := &atEnd{strings.NewReader(stream), func() { exit("dsi ingest store ads two.jsonl --overwrite")() }}
				code, _ := run(t.Context(), in, "dsi ingest store ads - --overwrite")
				return code
			},
			5:   exit("dsi describe store adz"),
			130: interrupted("dsi tables store"),
		},
		"dsistat": {
			0:   exit("dsistat store"),
			1:   exit("dsistat store --html one.jsonl/page.html"),
			2:   exit("dsistat"),
			3:   exit("dsistat damaged ads"),
			5:   exit("dsistat store adz"),
			130: interrupted("dsistat store"),
		},
	} {
		for _, line := range []string{name + " --help", name + " features --help"} {
			_, help := run(t.Context(), strings.NewReader(""), line)
			if listed := codesOf(help); !slices.Equal(listed, slices.Sorted(maps.Keys(tries))) {
				t.Errorf("%s lists the exit codes %v, and commands end with %v", line, listed,
					slices.Sorted(maps.Keys(tries)))
			}
		}
		for code, try := range tries {
			if got := try(); got != code {
				t.Errorf("%s: exit code %d, want %d", name, got, code)
			}
		}
	}
}

// codesOf returns the exit codes that help lists.
func codesOf(help string) (out []int) {
	_, list, _ := strings.Cut(help, "Exit codes: ")
	for _, digits := range regexp.MustCompile(`\d+`).FindAllString(list, -1) {
		code, _ := strconv.Atoi(digits)
		out = append(out, code)
	}
	return out
}

// TestHarmlessSuggestions: no mistyped command is answered with one that takes something away.
func TestHarmlessSuggestions(t *testing.T) {
	for parent, commands := range map[string][]string{
		"": {"gc", "erase", "delete"}, "features": {"drop"}, "snapshots": {"expire"}, "overlay": {"drop"},
		"branch": {"drop"}, "samples": {"drop"}, "leases": {"end"}, "cache": {"clear"},
	} {
		for _, command := range commands {
			for _, typo := range []string{command + "x", command[1:], command[:1] + "x" + command[1:]} {
				var stderr bytes.Buffer
				args := append(strings.Fields(parent), typo)
				if Run(t.Context(), args, strings.NewReader(""), io.Discard, &stderr); stderr.Len() == 0 ||
					strings.Contains(stderr.String(), strconv.Quote(command)) {
					t.Errorf("dsi %s: %s", strings.Join(args, " "), stderr.String())
				}
			}
		}
	}
	var stderr bytes.Buffer
	Run(t.Context(), []string{"lss"}, strings.NewReader(""), io.Discard, &stderr)
	if !strings.Contains(stderr.String(), `did you mean "ls"?`) {
		t.Error(stderr.String())
	}
}
