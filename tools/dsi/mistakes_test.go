package dsi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/tools/dsistat"
)

var update = flag.Bool("update", false, "write what the commands of testdata/mistakes.txtar print into it")

// leastMistakes is how many mistakes are tried at least.
const leastMistakes = 60

// TestMistakes makes the mistakes of testdata/mistakes.txtar, which has what each command prints, and its exit code. A
// line of it that begins with
//
//	#   says something to the reader
//	%   prepares what follows: a command that must succeed, or one of prepare
//	$   is a mistake: a command, perhaps after variables of the environment; the lines up to the next empty one are
//	    what it prints
//
// A condition in brackets before a command leaves it out where it does not hold, and what it prints stays as it is.
//
// The files at its end lie in the directory where the commands run. "go test ./tools/dsi -run Mistakes -update" writes
// it anew: read what has changed as a user would.
func TestMistakes(t *testing.T) {
	if race.Enabled {
		t.Skip("the same commands run as scripts under the race detector")
	}
	golden := filepath.Join("testdata", "mistakes.txtar")
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	golden, err = filepath.Abs(golden)
	if err != nil {
		t.Fatal(err)
	}
	m := newMistakes(t, archive)
	var got strings.Builder
	commands := strings.SplitAfter(string(archive.Comment), "\n")
	for i := 0; i < len(commands); i++ {
		line := strings.TrimSuffix(commands[i], "\n")
		got.WriteString(commands[i])
		switch command := strings.TrimPrefix(strings.TrimPrefix(line, "% "), "$ "); {
		case strings.HasPrefix(line, "% "):
			if err := m.prepare(command); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case strings.HasPrefix(line, "$ "):
			var want strings.Builder
			for ; i+1 < len(commands) && strings.TrimSpace(commands[i+1]) != ""; i++ {
				want.WriteString(commands[i+1])
			}
			said := m.make(command, want.String())
			if said != want.String() && !*update {
				t.Errorf("%s\ngot\n%swant\n%s", line, said, want.String())
			}
			got.WriteString(said)
		}
	}
	if m.made < leastMistakes {
		t.Errorf("%d mistakes were made, want at least %d", m.made, leastMistakes)
	}
	if *update && !t.Failed() {
		archive.Comment = []byte(got.String())
		if err := os.WriteFile(golden, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// mistakes are made in a directory of their own.
type mistakes struct {
	t          *testing.T
	work       *strings.Replacer // of what is another in each run
	made       int
	conditions map[string]bool // whether they hold
}

// newMistakes makes the directory, with the files of an archive.
func newMistakes(t *testing.T, archive *txtar.Archive) *mistakes {
	server, stop, noServer := objectserver.RunS3(t.Context(), t.TempDir(), "tables") // built where the module is
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, f.Data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	attempts := endpoint.Attempts
	endpoint.Attempts = 2
	t.Cleanup(func() { endpoint.Attempts = attempts })
	for name, value := range map[string]string{"HOME": dir, "DSISTORE_USAGE": "off", "DSISTORE_CACHE": "",
		"DSISTORE_PRICES": "", "GOOGLE_APPLICATION_CREDENTIALS": "", "STORAGE_EMULATOR_HOST": "",
		"AZURE_STORAGE_ACCOUNT_NAME": "", "AZURE_STORAGE_ENDPOINT": "", "AZURE_STORAGE_CONNECTION_STRING": "",
		"AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	_, noDevFull := os.Stat("/dev/full")
	m := &mistakes{t: t, work: strings.NewReplacer(dir, "$WORK"), conditions: map[string]bool{
		"s3": noServer == nil, "user": os.Geteuid() != 0, "devfull": noDevFull == nil,
		"mount": mountSmall(t, filepath.Join(dir, "full"))}}
	if noServer != nil {
		t.Logf("without a server of S3: %v", noServer)
		return m
	}
	t.Cleanup(stop)
	for name, value := range server.Environment() {
		t.Setenv(name, value)
	}
	m.work = strings.NewReplacer(dir, "$WORK", strings.TrimPrefix(server.Endpoint, "http://"), "$S3")
	return m
}

// prepare runs a command that is no mistake.
func (m *mistakes) prepare(command string) error {
	command, holds := m.condition(command)
	if !holds {
		return nil
	}
	args := words(command)
	switch args[0] {
	case "mkdir":
		return os.MkdirAll(args[1], 0o777)
	case "chmod":
		m.t.Cleanup(func() { _ = os.Chmod(args[1], 0o700) })
		return os.Chmod(args[1], 0)
	case "link":
		return os.Symlink(args[1], args[2])
	case "cut": // all but the first bytes off a file
		files, err := filepath.Glob(args[1])
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no file matches %s", args[1])
		}
		return os.Truncate(files[0], 10)
	case "flip": // a bit of a file
		at, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		files, err := filepath.Glob(args[2])
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no file matches %s", args[2])
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		b[at] ^= 0x10
		return os.WriteFile(files[0], b, 0o666)
	case "newer": // the marker of a store becomes that of a later version
		path := filepath.Join(args[1], "dsistore")
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		head := strings.Replace(string(b[:len(b)-17]), "dsistore 2 ", "dsistore 9 ", 1)
		return os.WriteFile(path, fmt.Appendf(nil, "%s%016x\n", head, xxhash.Sum64String(head)), 0o666)
	}
	if code, _, stderr := m.run(command); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, stderr)
	}
	return nil
}

// make makes a mistake, and returns what the golden file has of it: want, where its condition does not hold.
func (m *mistakes) make(command, want string) string {
	command, holds := m.condition(command)
	if !holds {
		return want
	}
	m.made++
	code, stdout, stderr := m.run(command)
	program := "dsi"
	if strings.Contains(command, "dsistat ") || command == "dsistat" {
		program = "dsistat"
	}
	if code == 0 {
		m.t.Errorf("%s: no mistake", command)
	}
	if err := forPeople(program, stderr, code); err != nil {
		m.t.Errorf("%s: %v: %s", command, err, stderr)
	}
	return changing.ReplaceAllString(m.work.Replace(stdout+stderr), "...") + fmt.Sprintf("exit code %d\n", code)
}

// condition returns a command without the condition in brackets before it, and whether that holds.
func (m *mistakes) condition(command string) (rest string, holds bool) {
	condition, rest, ok := strings.Cut(strings.TrimPrefix(command, "["), "] ")
	if !ok || command[0] != '[' {
		return command, true
	}
	holds, known := m.conditions[condition]
	if !known {
		m.t.Fatalf("%s: unknown condition", command)
	}
	return rest, holds
}

// run runs a command in this process.
func (m *mistakes) run(command string) (code int, stdout, stderr string) {
	args := words(command)
	for strings.Contains(args[0], "=") {
		name, value, _ := strings.Cut(args[0], "=")
		before, was := os.LookupEnv(name)
		os.Setenv(name, value)
		defer func() {
			if os.Unsetenv(name); was {
				os.Setenv(name, before)
			}
		}()
		args = args[1:]
	}
	run := map[string]func(context.Context, []string, io.Reader, io.Writer, io.Writer) int{"dsi": Run,
		"dsistat": dsistat.Run}[args[0]]
	if run == nil {
		m.t.Fatalf("%s: no such program", command)
	}
	var out, err strings.Builder
	code = run(m.t.Context(), args[1:], strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// changing are ids, checksums, and times of the test.
var changing = regexp.MustCompile(`\b([0-9a-f]{2}/)?[0-9a-f]{16,}\b|\b20\d\d-\d\d-\d\dT[0-9:]+\.\d+Z|` +
	`request [A-Z0-9]{8,}|\(\d+\.\d s\)|checksum [0-9a-f]{8}, want [0-9a-f]{8}`)

var word = regexp.MustCompile(`'([^']*)'|[^ ]+`)

// words returns the words of a command, as a shell does that knows spaces and single quotes.
func words(command string) []string {
	var out []string
	for _, w := range word.FindAllStringSubmatch(command, -1) {
		if strings.HasPrefix(w[0], "'") {
			w[0] = w[1]
		}
		out = append(out, w[0])
	}
	return out
}
