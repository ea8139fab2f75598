package dsi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsistat"
	"github.com/dsistore/dsistore/tools/terminal"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dsi": func() { terminal.Main(Run) },
		"dsistat": func() { terminal.Main(dsistat.Run) }})
}

// TestScripts runs the scripts of testdata/script. Beside testscript's own commands they have
//
//	exits CODE COMMAND...    runs the command and checks its exit code and that its errors are for people
//	json KEY[=VALUE]...      checks that standard output is one object with these keys; points part a path
//	damage OFFSET GLOB       flips a bit of the largest file that matches, OFFSET bytes from its start (or end)
//	cut BYTES GLOB           takes bytes off the end of that file
//	remove GLOB              removes that file
//	count N GLOB             checks how many files match
//	old GLOB                 dates files that match two hours back
//	lease STORE TABLE OWNER  takes a lease for an hour on the newest snapshot, as who is killed leaves it
//	noise FILE MIB           makes a file of rows for the table of dsi generate, 16 for each MiB that they take in a
//	                         table: more than 8 MiB are uploaded in parts
//	interrupt SIGNAL FILE COMMAND...
//	                         runs the command with the file on a standard input that does not end, sends it the
//	                         signal when it has read most of the file, and checks that it exits with 130 and has
//	                         not waited for more
//	race CODE FILE COMMAND... -- OTHER...
//	                         runs the command on the file, and OTHER before it sees the file's end; checks its
//	                         exit code
//
// Under the race detector, where all take ten times as long, those run that do the whole of the work on few rows and
// that interrupt it; make test runs all of them without as well.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if race.Enabled {
		files = slices.DeleteFunc(files, func(f string) bool {
			return !slices.Contains([]string{"brief.txtar", "interrupt.txtar"}, filepath.Base(f))
		})
	}
	testscript.Run(t, params(files, nil))
}

// TestS3Scripts runs the scripts of testdata/s3, with a server of S3 that has a bucket tables. "put DIRECTORY URI"
// uploads the files below a directory.
func TestS3Scripts(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: package s3's own tests are")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "s3", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	server := objectserver.StartS3(t, "tables")
	environment := server.Environment()
	part := slowUploads(t, server.Endpoint, environment, func(r *http.Request) bool {
		return r.URL.Query().Has("partNumber")
	})
	p := params(files, environment)
	p.Cmds["uploading"] = part.cmdUploading
	p.Cmds["uploads"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if n := server.Uploads(t, "tables", args[0]); (strconv.Itoa(n) == args[1]) == neg {
			ts.Fatalf("%d uploads are under way", n)
		}
		part.cmdUploading(ts, true, nil)
	}
	p.Cmds["put"] = cmdPut("s3://tables/", func(key string, data []byte) { server.Put(t, "tables", key, data) })
	testscript.Run(t, p)
}

// cmdPut is the command that uploads the files below a directory to a URI in a bucket.
func cmdPut(bucket string, put func(key string, data []byte)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		from := ts.MkAbs(args[0])
		err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			put(strings.TrimPrefix(args[1], bucket)+filepath.ToSlash(strings.TrimPrefix(path, from)), data)
			return nil
		})
		ts.Check(err)
	}
}

// TestGCSScripts runs the scripts of testdata/gcs, with a server of Google Cloud Storage that has a bucket tables, and
// with the command put.
func TestGCSScripts(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: package gcs's own tests are")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "gcs", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	server := objectserver.StartGCS(t, "tables")
	environment := server.Environment()
	part := slowUploads(t, server.Endpoint, environment, func(r *http.Request) bool {
		return r.Method == http.MethodPut
	})
	p := params(files, environment)
	p.Cmds["put"] = cmdPut("gs://tables/", func(key string, data []byte) { server.Put(t, "tables", key, data) })
	p.Cmds["uploading"] = part.cmdUploading
	testscript.Run(t, p)
}

// uploading tells of each part of an upload that a server gets.
type uploading chan struct{}

// slowUploads starts a proxy, by way of which each part of an upload takes long, and names it in the environment.
func slowUploads(t *testing.T, endpoint string, environment map[string]string, isPart func(*http.Request) bool,
) uploading {
	proxy, part := objectserver.StartProxy(t, endpoint), make(uploading, 100)
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if !isPart(r) {
			return objectserver.Fault{}
		}
		part <- struct{}{}
		return objectserver.Fault{Delay: time.Second}
	})
	environment["SLOW"] = proxy.URL
	return part
}

// cmdUploading waits for a part; negated, it forgets those of commands that have ended.
func (u uploading) cmdUploading(ts *testscript.TestScript, neg bool, _ []string) {
	for neg && len(u) > 0 {
		<-u
	}
	if neg {
		return
	}
	select {
	case <-u:
	case <-time.After(time.Minute):
		ts.Fatalf("no part of an upload came")
	}
}

// TestAzureScripts runs the scripts of testdata/azure, with a server of Azure that has a container tables.
func TestAzureScripts(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: package azure's own tests are")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "azure", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, params(files, objectserver.StartAzure(t, "tables").Environment()))
}

// params are those of scripts, which get variables beside the usual ones.
func params(files []string, environment map[string]string) testscript.Params {
	return testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DSISTORE_USAGE", "off") // scripts count files; those about usage records switch them on
			for name, value := range environment {
				e.Setenv(name, value)
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  cmdExits,
			"json":   cmdJSON,
			"damage": cmdDamage,
			"cut":    cmdCut,
			"remove": cmdRemove,
			"count":  cmdCount,
			"old":    cmdOld,
			"lease":  cmdLease,
			"noise":  cmdNoise,

			"interrupt": cmdInterrupt,
			"race":      cmdRace,
		},
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	stderr := ts.ReadFile("stderr")
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	program := "dsi"
	if args[1] == "dsistat" {
		program = args[1]
	}
	if err := forPeople(program, stderr, code); err != nil {
		ts.Fatalf("%v", err)
	}
}

var (
	// systemCall is how a line begins that quotes a system call: it says nothing to most users.
	systemCall = regexp.MustCompile(`\b(open|openat|stat|lstat|fstat|mkdir|mkdirat|read|pread|write|pwrite|` +
		`readdirent|fdopendir|unlink|rename|remove|truncate|fsync|sync|dial tcp|lookup|listen tcp|connect|` +
		`getaddrinfow) [^ ]*: `)
	// goWords are those of programmers in Go.
	goWords = regexp.MustCompile(`%!|\*?\b[a-z0-9]+\.[A-Z]\w+|cannot unmarshal|strconv|nil pointer|interface \{`)
)

// forPeople checks what every error keeps to: one line that begins with the program's name, and for an expression the
// line and the caret below it; no words of the system or of Go; and nothing twice.
func forPeople(program, stderr string, code int) error {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	switch {
	case strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, "panic"):
		return errors.New("a stack trace")
	case code == 0:
		return nil
	case !strings.HasPrefix(stderr, program+": "):
		return fmt.Errorf("standard error does not begin with \"%s: \"", program)
	case strings.HasPrefix(lines[0], program+": "+program):
		return errors.New("it has the program's name twice")
	case strings.Contains(stderr, "failed to"):
		return errors.New("\"failed to\" says nothing")
	case systemCall.MatchString(lines[0]):
		return fmt.Errorf("it names a system call: %q", systemCall.FindString(lines[0]))
	case goWords.MatchString(lines[0]):
		return fmt.Errorf("it has a word of Go: %q", goWords.FindString(lines[0]))
	}
	var parts []string
	for _, part := range strings.Split(lines[0], ": ") {
		if len(part) > 3 && slices.Contains(parts, part) {
			return fmt.Errorf("it says %q twice", part)
		}
		parts = append(parts, part)
	}
	if len(lines) == 3 && strings.Contains(lines[0], "expression, ") && strings.TrimSpace(lines[2]) == "^" {
		return nil
	}
	if len(lines) != 1 {
		return fmt.Errorf("an error of %d lines", len(lines))
	}
	return nil
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	var object map[string]any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &object); err != nil {
		ts.Fatalf("standard output is not one object: %v", err)
	}
	for _, arg := range args {
		path, want, compare := strings.Cut(arg, "=")
		var at any = object
		for _, part := range strings.Split(path, ".") {
			switch container := at.(type) {
			case map[string]any:
				v, ok := container[part]
				if !ok {
					ts.Fatalf("%s: no key %q", path, part)
				}
				at = v
			case []any:
				i, err := strconv.Atoi(part)
				if err != nil || i >= len(container) {
					ts.Fatalf("%s: no element %s of %d", path, part, len(container))
				}
				at = container[i]
			default:
				ts.Fatalf("%s: %q is not inside an object or a list", path, part)
			}
		}
		got, err := json.Marshal(at)
		ts.Check(err)
		if compare && (string(got) == want || string(got) == strconv.Quote(want)) == neg {
			ts.Fatalf("%s is %s, want %s", path, got, want)
		}
	}
}

// largest returns the largest file that matches.
func largest(ts *testscript.TestScript, glob string) (path string, size int64) {
	matches, err := filepath.Glob(ts.MkAbs(glob))
	ts.Check(err)
	for _, m := range matches {
		info, err := os.Stat(m)
		ts.Check(err)
		if info.Size() > size {
			path, size = m, info.Size()
		}
	}
	if path == "" {
		ts.Fatalf("no file matches %s", glob)
	}
	return path, size
}

func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage OFFSET GLOB")
	}
	offset, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	path, size := largest(ts, args[1])
	if offset < 0 {
		offset += size
	}
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[offset] ^= 0x10
	ts.Check(os.WriteFile(path, data, 0o666))
}

func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut BYTES GLOB")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	path, size := largest(ts, args[1])
	ts.Check(os.Truncate(path, size-n))
}

func cmdRemove(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: remove GLOB")
	}
	path, _ := largest(ts, args[0])
	ts.Check(os.Remove(path))
}

func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: count N GLOB")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	matches, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if (len(matches) == want) == neg {
		ts.Fatalf("%d files match %s", len(matches), args[1])
	}
}

func cmdOld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: old GLOB")
	}
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	then := time.Now().Add(-2 * time.Hour)
	for _, m := range matches {
		ts.Check(os.Chtimes(m, then, then))
	}
}

func cmdLease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: lease STORE TABLE OWNER")
	}
	ctx := context.Background()
	blobs, err := object.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	store, err := storage.Open(ctx, blobs, storage.Options{})
	ts.Check(err)
	defer store.Close()
	_, snap, err := store.Newest(ctx, args[1])
	ts.Check(err)
	_, err = snap.Lease(ctx, args[2], time.Hour)
	ts.Check(err)
}

func cmdNoise(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: noise FILE MIB")
	}
	mib, err := strconv.Atoi(args[1])
	ts.Check(err)
	random := rand.NewChaCha8(sha256.Sum256([]byte(args[0])))
	text := make([]byte, 64<<10)
	var out bytes.Buffer
	for i := range 16 * mib {
		_, _ = random.Read(text) // it has no end
		fmt.Fprintf(&out, `{"session_id": %d, "event_time": %d, "text": "%x"}`+"\n", i, i, text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o666))
}

func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}
	if neg || len(args) < 3 || signals[args[0]] == nil {
		ts.Fatalf("usage: interrupt INT|TERM FILE COMMAND...")
	}
	w := startWaiting(ts, args[1], args[2:])
	defer w.cancel()
	ts.Check(w.cmd.Process.Signal(signals[args[0]]))
	w.exits(ts, terminal.ExitInterrupted)
	if got := w.stderr.String(); got != "dsi: interrupted\n" {
		ts.Fatalf("standard error: %s", got)
	}
}

func cmdRace(ts *testscript.TestScript, neg bool, args []string) {
	between := slices.Index(args, "--")
	if neg || between < 3 || between == len(args)-1 {
		ts.Fatalf("usage: race CODE FILE COMMAND... -- COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	w := startWaiting(ts, args[1], args[2:between])
	defer w.cancel()
	ts.Check(ts.Exec(args[between+1], args[between+2:]...))
	_, err = w.in.Write(w.rest)
	ts.Check(err)
	ts.Check(w.in.Close())
	w.exits(ts, want)
	ts.Logf("[stderr of %s] %s", args[2], w.stderr.String())
	if err := forPeople("dsi", w.stderr.String(), want); err != nil {
		ts.Fatalf("%v", err)
	}
}

// A waiting is a command that has read most of its standard input and waits for the rest.
type waiting struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	rest   []byte // of the input
	stderr bytes.Buffer
	cancel func()
}

// startWaiting starts a command on a file. The caller calls cancel in the end.
func startWaiting(ts *testscript.TestScript, file string, command []string) *waiting {
	feed := []byte(ts.ReadFile(file))
	if len(feed) < 1<<20 {
		ts.Fatalf("%s is too short to tell when the command reads it", file)
	}
	var path string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, command[0]); path == "" {
			if _, err := os.Stat(p); err == nil {
				path = p
			}
		}
	}
	w := &waiting{}
	// The command ends itself when it is told to; the deadline is for when it does not.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.cancel = cancel
	w.cmd = exec.CommandContext(ctx, path, command[1:]...)
	w.cmd.Dir = ts.MkAbs(".")
	w.cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"),
		"DSISTORE_USAGE=" + ts.Getenv("DSISTORE_USAGE")}
	w.cmd.Stderr = &w.stderr
	var err error
	w.in, err = w.cmd.StdinPipe()
	ts.Check(err)
	ts.Check(w.cmd.Start())
	// A pipe holds less than the file: when all but its end is written, the command has begun to read.
	end := len(feed) - 16
	w.rest = feed[end:]
	if _, err := w.in.Write(feed[:end]); err != nil {
		ts.Fatalf("the command ended too soon: %v: %s", err, w.stderr.String())
	}
	return w
}

// exits waits for the end of the command and checks its exit code.
func (w *waiting) exits(ts *testscript.TestScript, want int) {
	err := w.cmd.Wait()
	if got := w.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d (%v), want %d: %s", got, err, want, w.stderr.String())
	}
}
