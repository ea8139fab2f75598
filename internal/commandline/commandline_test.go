package commandline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

type size int64

func (s *size) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%dKiB", (*int64)(s))
	if err != nil {
		return fmt.Errorf("size %q: want KiB", text)
	}
	return nil
}

type tableArgs struct {
	Store string `arg:"" complete:"dirs" help:"The store."`
	Table string `arg:"" complete:"tables" help:"The table."`
}

type copyCommand struct {
	tableArgs
	From       []string          `arg:"" name:"file" help:"What to copy."`
	Format     string            `default:"auto" enum:"auto,text" help:"Its format."`
	Memory     size              `default:"7KiB" help:"How much memory."`
	Rows       int               `short:"n" default:"10" help:"How many rows."`
	Only       []string          `default:"a,b" complete:"columns" help:"Columns."`
	Exprs      []string          `sep:"none" placeholder:"EXPR" help:"Expressions."`
	Shares     []float64         `default:"0.5" help:"Shares."`
	Wait       time.Duration     `default:"2s" help:"How long."`
	Dedup      string            `bare:"ikjt" help:"How."`
	Check      bool              `default:"true" help:"Check."`
	Seed       uint64            `help:"Seed."`
	Limit      *int              `help:"A number, or none."`
	InMemory   bool              `hidden:"" help:"Not shown."`
	Store2     string            `env:"COMMANDLINE_TEST" help:"Of the environment."`
	Options    map[string]string `commandline:"-"`
	unexported int
}

func (*copyCommand) Help() string { return "More of it." }

type listCommand struct {
	tableArgs
	Names []string `arg:"" optional:"" help:"Names."`
	Long  bool     `help:"More."`
	Must  string   `required:"" help:"It must be given."`
}

type grammar struct {
	JSON   bool        `name:"json" help:"As JSON."`
	Copy   copyCommand `cmd:"" group:"Write" help:"Copy files." example:"prog copy s t x"`
	Tables struct {
		List listCommand `cmd:"" default:"withargs" help:"List." example:"prog tables s t --must x"`
		Drop struct {
			tableArgs
		} `cmd:"" aliases:"rm" help:"Drop ${what}."`
	} `cmd:"" help:"Tables."`
}

func parseLine(t *testing.T, line string) (*grammar, *Command, string, error) {
	t.Helper()
	g, out := &grammar{}, &bytes.Buffer{}
	g.Copy.unexported = 3
	p := &Program{Name: "prog", Description: "Tries things.", Version: "v1.2", Out: out, Err: out,
		Vars: map[string]string{"what": "tables"}}
	c, err := p.Parse(t.Context(), g, strings.Fields(line))
	if wrong := (*Error)(nil); err != nil && !errors.As(err, &wrong) {
		t.Errorf("%s: %T is no Error", line, err)
	}
	return g, c, out.String(), err
}

// What is named is found, and filled.
func TestParse(t *testing.T) {
	t.Setenv("COMMANDLINE_TEST", "from outside")
	defaults := copyCommand{tableArgs: tableArgs{"s", "t"}, From: []string{"x"}, Format: "auto", Memory: 7, Rows: 10,
		Only: []string{"a", "b"}, Shares: []float64{0.5}, Wait: 2 * time.Second, Check: true,
		Store2: "from outside", unexported: 3}
	for line, change := range map[string]func(*copyCommand){
		"copy s t x":                            func(*copyCommand) {},
		"copy --json s t x":                     func(*copyCommand) {},
		"copy s t x y -":                        func(c *copyCommand) { c.From = []string{"x", "y", "-"} },
		"copy s t x -- -y":                      func(c *copyCommand) { c.From = []string{"x", "-y"} },
		"copy s --only c,d t --only e x":        func(c *copyCommand) { c.Only = []string{"c", "d", "e"} },
		`copy s t x --only c\,d`:                func(c *copyCommand) { c.Only = []string{"c,d"} },
		"copy s t x --only=":                    func(c *copyCommand) { c.Only = nil },
		"copy s t x --exprs a,b --exprs c":      func(c *copyCommand) { c.Exprs = []string{"a,b", "c"} },
		"copy s t x -n5 --seed=7 --memory 9KiB": func(c *copyCommand) { c.Rows, c.Seed, c.Memory = 5, 7, 9 },
		"copy s t x -n -5":                      func(c *copyCommand) { c.Rows = -5 },
		"copy s t --dedup x":                    func(c *copyCommand) { c.Dedup = "ikjt" },
		"copy s t --dedup=no x":                 func(c *copyCommand) { c.Dedup = "no" },
		"copy s t x --check=false --wait 90s":   func(c *copyCommand) { c.Check, c.Wait = false, 90*time.Second },
		"copy s t x --shares 1,2 --in-memory":   func(c *copyCommand) { c.Shares, c.InMemory = []float64{1, 2}, true },
		"copy s t x --format text --store2 z":   func(c *copyCommand) { c.Format, c.Store2 = "text", "z" },
		"copy s t a,b":                          func(c *copyCommand) { c.From = []string{"a,b"} },
		"copy s t x --limit 0":                  func(c *copyCommand) { c.Limit = new(int) },
	} {
		want := defaults
		change(&want)
		g, c, out, err := parseLine(t, line)
		if err != nil || c == nil || c.Target != &g.Copy || c.Path != "copy" || out != "" {
			t.Errorf("%s: %+v, %v, %s", line, c, err, out)
		} else if !reflect.DeepEqual(g.Copy, want) {
			t.Errorf("%s: %+v, want %+v", line, g.Copy, want)
		}
		if strings.Contains(line, "--json") != g.JSON {
			t.Errorf("%s: json %v", line, g.JSON)
		}
	}
	for line, names := range map[string][]string{"tables s t --must x": nil, "tables list --must x s t": nil,
		"tables s t a b --must x": {"a", "b"}, "tables list s t --must=x list": {"list"}} {
		g, c, _, err := parseLine(t, line)
		l := &g.Tables.List
		if err != nil || c.Target != l || c.Path != "tables list" || l.Must != "x" || l.Table != "t" ||
			!reflect.DeepEqual(l.Names, names) {
			t.Errorf("%s: %+v, %+v, %v", line, c, l, err)
		}
	}
	g, c, _, err := parseLine(t, "tables rm s t")
	if err != nil || c.Target != &g.Tables.Drop || c.Path != "tables drop" {
		t.Errorf("%+v, %v", c, err)
	}
}

// What is wrong is said, with where help is.
func TestErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   `expected a command: copy, tables (see prog --help)`,
		"--json":                             `expected a command: copy, tables (see prog --help)`,
		"help copi":                          `there is no command "copi"; did you mean "copy"? (see prog --help)`,
		"help copy s":                        `there is no command "s" (see prog copy --help)`,
		"copi":                               `there is no command "copi"; did you mean "copy"? (see prog --help)`,
		"remove s t":                         `there is no command "remove" (see prog --help)`,
		"copy":                               `<store> <table> <file> ... is missing (see prog copy --help)`,
		"copy s t":                           `<file> ... is missing (see prog copy --help)`,
		"tables drop s t more":               `unexpected argument "more" (see prog tables drop --help)`,
		"tables s t":                         `--must MUST is missing (see prog tables --help)`,
		"copy s t x --frmat text":            `unknown flag --frmat; did you mean "--format"? (see prog copy --help)`,
		"copy s t x --mem 1KiB":              `unknown flag --mem; did you mean "--memory"? (see prog copy --help)`,
		"copy s t x --what":                  `unknown flag --what (see prog copy --help)`,
		"copy s t x --nothing-such":          `unknown flag --nothing-such (see prog copy --help)`,
		"copy s t x -q":                      `unknown flag -q (see prog copy --help)`,
		"copy s t x -memory 5":               `unknown flag -memory; did you mean "--memory"? (see prog copy --help)`,
		"copy s t x --memory":                `--memory: MEMORY is missing (see prog copy --help)`,
		"copy s t x --memory 5":              `--memory: size "5": want KiB (see prog copy --help)`,
		"copy s t x --format parquet":        `--format: "parquet": want one of auto, text (see prog copy --help)`,
		"copy s t x -n many":                 `--rows: "many": want a whole number (see prog copy --help)`,
		"copy s t x -n 1e99":                 `--rows: "1e99": want a whole number (see prog copy --help)`,
		"copy s t x -n 99999999999999999999": `--rows: "99999999999999999999" is too large (see prog copy --help)`,
		"copy s t x --seed -1":               `--seed: "-1": want a whole number from 0 on (see prog copy --help)`,
		"copy s t x --shares 1,x":            `--shares: "x": want a number (see prog copy --help)`,
		"copy s t x --wait 3": `--wait: "3": want a time with its unit, as in 90s, 15m or 24h ` +
			`(see prog copy --help)`,
		"copy s t x --check=maybe": `--check: "maybe": want true or false (see prog copy --help)`,
		"copy s t x\xff":           `argument "x\xff" is not UTF-8`,
	} {
		_, c, out, err := parseLine(t, line)
		if c != nil || err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: %v, want %s; printed %s", line, err, want, out)
		}
	}
}

// A flag may come from the environment, where it counts as given.
func TestEnvironment(t *testing.T) {
	type flags struct {
		Data string `env:"COMMANDLINE_DATA" required:""`
		Rows int    `env:"COMMANDLINE_ROWS" default:"7"`
	}
	for _, c := range []struct{ data, rows, wrong string }{
		{"d", "5", ""}, {"d", "", ""}, {"", "", "--data DATA is missing"},
		{"d", "many", "COMMANDLINE_ROWS in the environment"},
	} {
		t.Setenv("COMMANDLINE_DATA", c.data)
		t.Setenv("COMMANDLINE_ROWS", c.rows)
		var f flags
		_, err := (&Program{Name: "prog", Out: io.Discard, Err: io.Discard}).Parse(t.Context(), &f, nil)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c, err)
		}
		if want := (flags{c.data, map[string]int{"5": 5, "": 7}[c.rows]}); err == nil && f != want {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// Help says all that there is, in lines that fit.
func TestHelp(t *testing.T) {
	for line, want := range map[string][]string{
		"--help": {"Usage: prog <command> [flags]", "Tries things.", "Write:\n  copy  Copy files.", "Others:\n  tables",
			"  help        Print help of a command.", "--json"},
		"help":           {"Usage: prog <command> [flags]"},
		"help help":      {"Usage: prog help [<command> ...] [flags]"},
		"help tables rm": {"Usage: prog tables drop <store> <table> [flags]"},
		"copy -h": {"Usage: prog copy <store> <table> <file> ... [flags]", "  <store>     The store.", "(default auto)",
			"-n, --rows ROWS", "--exprs EXPR", "(default 7KiB)", "--dedup DEDUP[=ikjt]",
			"Copy files.\n\nMore of it.\n", "Flags of all commands:", "\nExample:\n  prog copy s t x\n"},
		"help tables": {"Usage: prog tables [<command>] <store> <table> [<names> ...] [flags]",
			"drop  Drop tables.", "\nExample:\n  prog tables s t --must x\n"},
		"tables --help":   {"Usage: prog tables [<command>] <store>"},
		"--version":       {"prog version v1.2"},
		"completion bash": {"# bash completion V2 for prog"},
		"__complete tab":  {"tables\tTables."},
	} {
		_, c, out, err := parseLine(t, line)
		if c != nil || err != nil {
			t.Errorf("%s: %+v, %v", line, c, err)
		}
		for _, s := range append(want, "") {
			if !strings.Contains(out, s) {
				t.Errorf("%s: no %q in %s", line, s, out)
			}
		}
		if strings.Contains(out, "in-memory") || strings.Contains(out, "[=true]") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// Reference has every command with its arguments and flags, and no markup that a help text means otherwise.
func TestReference(t *testing.T) {
	type marked struct {
		Only []string `default:"a|b" placeholder:"A|B" help:"As user_* or <all> (see X_Y): a|b."`
		In   string   `help:"Rows, as in ds >= '2026-11-01' AND x_y IN (1, 2), and some more. As in a file, or as in b."`
	}
	p := &Program{Name: "prog", Description: "Tries things.", Vars: map[string]string{"what": "tables"}}
	page := p.Reference(&grammar{})
	for _, s := range []string{"## prog\n\nTries things.\n\n    prog <command> [flags]\n",
		"## prog: Write\n\n### prog copy\n",
		"    prog copy <store> <table> <file> ... [flags]\n", "| `<file> ...` | What to copy. |",
		"| `--rows ROWS`, `-n` | How many rows. Default: `10`. |", "| `--dedup[=DEDUP]` | How. |", "More of it.",
		"### prog tables\n\nTables.\n\nWithout a command: `prog tables list`.\n\n### prog tables list\n",
		"### prog tables drop\n\nDrop tables.\n\nAlso: `rm`.\n"} {
		if !strings.Contains(page, s) {
			t.Errorf("no %q in %s", s, page)
		}
	}
	if strings.Contains(page, "in-memory") {
		t.Errorf("a hidden flag: %s", page)
	}
	page = p.Reference(&marked{})
	for _, want := range []string{"| `--only A\\|B` | As `user_*` or `<all>` (see `X_Y`): a\\|b. Default: `a\\|b`. |",
		"| Rows, as in `ds >= '2026-11-01' AND x_y IN (1, 2)`, and some more. As in a file, or as in b. |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
}

// A shell completes commands, values, and what the program knows.
func TestComplete(t *testing.T) {
	for _, c := range []struct{ line, begun, want string }{
		{"", "co", "copy\tCopy files.|completion\tPrint what makes a shell complete commands and names.|:4"},
		{"help tables", "", "list\tList.|drop\tDrop tables.|:4"},
		{"copy s t x --format", "", "auto|text|:4"},
		{"copy s t x --only", "", `columns_of_st|x\,y|:6`},
		{"copy s t --only", "a,b,co", `a,b,columns_of_st|a,b,x\,y|:6`},
		{"copy", "", ":16"}, // directories
		{"copy s", "", "tables_of_s|x,y|:4"},
		{"copy s t", "", ":0"}, // files
		{"copy s t x", "", ":0"},
		{"copy s t x --exprs", "", ":0"},
		{"tables drop s t", "", ":4"}, // nothing
	} {
		out := &bytes.Buffer{}
		p := &Program{Name: "prog", Out: out, Err: io.Discard, Vars: map[string]string{"what": "tables"},
			Complete: func(_ context.Context, target any, what string) []string {
				c := target.(*copyCommand)
				return []string{what + "_of_" + c.Store + c.Table, "x,y"}
			}}
		args := append(append([]string{"__complete"}, strings.Fields(c.line)...), c.begun)
		_, err := p.Parse(t.Context(), &grammar{}, args)
		if got := strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "|"); err != nil || got != c.want {
			t.Errorf("%s %s: %v, %s, want %s", c.line, c.begun, err, got, c.want)
		}
	}
}

// A grammar that is wrong is a mistake in the program.
func TestWrongGrammar(t *testing.T) {
	for _, g := range []any{
		&struct {
			X complex128 `default:"1"`
		}{},
		&struct {
			X int `default:"x"`
		}{},
		&struct {
			X int `help:"Of ${nothing}."`
		}{},
		&struct{ X [][]int }{},
		&struct{ X map[string]int }{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is accepted", g)
				}
			}()
			(&Program{Name: "prog", Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}).Parse(t.Context(), g, nil)
		}()
	}
}

// A program with this package has no method that the linker keeps because somebody might call it by reflection.
func TestLinkedMethods(t *testing.T) {
	build := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "program"),
		"./testdata/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
	if !bytes.Contains(out, []byte(" -> main.main")) {
		t.Fatalf("no dependencies: %.500s", out)
	}
	for line := range strings.Lines(string(out)) {
		if _, to, _ := strings.Cut(line, " -> "); strings.Contains(to, "<ReflectMethod>") {
			t.Error(line)
		}
	}
}
