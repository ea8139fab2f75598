package dsi

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/object/diskcache"
	"github.com/dsistore/dsistore/tools/dsistat"
)

// commandExamples adds the examples of commands, by their names with the program's, from a part of the reference.
func commandExamples(reference string, into map[string]string) {
	for _, section := range strings.Split(reference, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if !strings.Contains(text, "\n    "+name) { // it only has commands, or stands for one of them
			continue
		}
		into[name] = ""
		if blocks := strings.Split(text, "\n```"); len(blocks) > 2 {
			lines := strings.Split(blocks[len(blocks)-2], "\n")
			into[name] = lines[len(lines)-1]
		}
	}
}

// TestExamples: the help of each command ends with an example, and each example works on a small store.
func TestExamples(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: the scripts are")
	}
	examples := map[string]string{}
	commandExamples(Reference(), examples)
	commandExamples(dsistat.Reference(), examples)
	if len(examples) < 50 {
		t.Errorf("%d commands: are they all found?", len(examples))
	}
	for _, line := range regexp.MustCompile(`(?m)^ {1,3}\S.*`).FindAllString(Reference()+dsistat.Reference(), -1) {
		t.Errorf("help runs this line into the one before it; give it as the example: %q", line)
	}
	dir, scripts, remote := t.TempDir(), t.TempDir(), t.TempDir()
	exampleStore(t, dir)
	for name, example := range examples {
		short := name // a group's name stands for the command that is meant where none is named
		for _, implied := range []string{" list", " stat", " summary"} {
			short = strings.TrimSuffix(short, implied)
		}
		if !strings.HasPrefix(example, short) {
			t.Errorf("%s has the example %q", name, example)
			continue
		}
		if name == "dsi sql" || name == "dsi ui" { // need DuckDB, and a browser: they have tests of their own
			continue
		}
		script, into := "exec "+example+"\n! stderr .\n", scripts
		switch name {
		case "dsi leases end":
			script = "lease store ads trainer\n" + script
		case "dsi erase": // the branch would keep the rows
			script = "exec dsi branch drop store ads exp\n" + script
		}
		if strings.Contains(example, "s3://") {
			script, into = "put store s3://tables/store\n"+script, remote
		}
		file := filepath.Join(into, strings.ReplaceAll(name, " ", "_")+".txtar")
		if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(t *testing.T, scripts string, environment map[string]string, put func(key string, data []byte)) {
		files, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples: %v", err)
		}
		environment["DSISTORE_CACHE_SIZE"] = "1GiB"
		p := params(files, environment)
		before := p.Setup
		p.Setup = func(e *testscript.Env) error {
			if err := before(e); err != nil {
				return err
			}
			return os.CopyFS(e.WorkDir, os.DirFS(dir))
		}
		if put != nil {
			p.Cmds["put"] = cmdPut("s3://tables/", put)
		}
		testscript.Run(t, p)
	}
	t.Run("local", func(t *testing.T) { run(t, scripts, map[string]string{}, nil) })
	t.Run("s3", func(t *testing.T) {
		server := objectserver.StartS3(t, "tables")
		run(t, remote, server.Environment(), func(key string, data []byte) { server.Put(t, "tables", key, data) })
	})
}

// exampleStore makes what the examples work on: a store, and files beside it.
func exampleStore(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	t.Setenv("DSISTORE_USAGE", "off")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(first, n int) string {
		text := "request_id,user_id,country,price,old_price,click\n"
		for i := first; i < first+n; i++ {
			text += fmt.Sprintf("r%d,%d,%s,%g,%d,%d\n", i, i%40, []string{"de", "fr", "jp"}[i%3], float64(i%90)/4,
				i%7, i%2)
		}
		return text
	}
	keys := func(name string, first, n int) string {
		text := "request_id," + name + "\n"
		for i := first; i < first+n; i++ {
			text += fmt.Sprintf("r%d,%d\n", i, i%2)
		}
		return text
	}
	write("first.csv", rows(0, 200))
	write("clicks.csv", rows(200, 100))
	write("labels.csv", keys("bought", 0, 100))
	write("more_labels.csv", keys("bought", 100, 50))
	write("returns.csv", keys("returned", 0, 150))
	write("users.txt", "3\n17\n")
	write("roles.json", `{"columns": {"request_id": {"role": "request_key"}, "user_id": {"role": "user_key"}, `+
		`"click": {"role": "label"}}}`)
	for _, line := range []string{
		"ingest store ads first.csv --mapping roles.json",
		"features deprecate store ads old_price",
		"overlay add store ads bought --from labels.csv --key request_id",
		"samples create store ads hard --where price>10",
		"branch create store ads exp --overlay bought",
	} {
		var out strings.Builder
		if code := Run(t.Context(), strings.Fields(line), strings.NewReader(""), io.Discard, &out); code != 0 {
			t.Fatalf("%s: %d, %s", line, code, out.String())
		}
	}
	packs, err := filepath.Glob("store/*/*/pack-*")
	if err != nil || len(packs) == 0 {
		t.Fatalf("no pack: %v", err)
	}
	pack, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	write("pack-000000", string(pack))
	if _, err := diskcache.Shared("cache", 1<<30); err != nil {
		t.Fatal(err)
	}
}
