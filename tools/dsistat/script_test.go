package dsistat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/terminal"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dsistat": func() { terminal.Main(Run) }})
}

// TestScripts runs the scripts of testdata/script beside a store with the tables ads and other. "exits CODE COMMAND..."
// runs a command and checks its exit code, and that an error is one line.
func TestScripts(t *testing.T) {
	if race.Enabled {
		t.Skip("starts the command many times, each of them slow under the race detector; make test runs it without " +
			"as well")
	}
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error { return makeStore(filepath.Join(e.WorkDir, "store"), e.WorkDir) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
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
				if code != want || code != 0 && (!strings.HasPrefix(stderr, "dsistat: ") ||
					strings.Count(stderr, "\n") != 1) {
					ts.Fatalf("exit code %d, want %d: %s", code, want, stderr)
				}
			},
		},
	})
}

func makeStore(root, dir string) error {
	ctx := context.Background()
	blobs, err := object.Open(root)
	if err != nil {
		return err
	}
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	for i, table := range []string{"ads", "other"} {
		var b strings.Builder
		for n := range 100 {
			fmt.Fprintf(&b, `{"user_id": %d, "user_items": [%d, %d, 3], "click": %d}`+"\n", n/10, n/10, n/20, (n+i)%2)
		}
		path := filepath.Join(dir, table+".jsonl")
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			return err
		}
		if _, err := ingest.Run(ctx, store, table, []string{path}, ingest.Options{}); err != nil {
			return err
		}
	}
	return store.Close()
}
