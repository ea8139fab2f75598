package read

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/internal/python"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// sqlScript runs the query in DuckDB, in a child process:
//
//	            stdin   the query, where the tables are, what to give back
//	dsi  ────────────────────────────────────────────────────────────────────>  python: DuckDB
//	     <────────────────────────────────────────────────────────────────────
//	            stdout  the result: rows in JSON, or a file's bytes
//
//	     <──── connection to a socket, for each scan: table, columns, filter
//	     ────> Arrow IPC stream of only those columns and rows
//
//go:embed sql.py
var sqlScript string

const (
	installDuckDB = "dsi sql runs DuckDB in Python 3.11 or newer: python3 -m pip install 'duckdb>=2' pyarrow (" +
		python.Variable + " names another interpreter)"
	exitRefused = 65  // of sql.py: DuckDB says what is wrong
	maxSocket   = 100 // bytes of a socket's path, of which systems take 104 or 108
)

// SQL runs a query in DuckDB.
type SQL struct {
	app.StoreArg
	Query string `arg:"" help:"SQL for DuckDB, or - to read it from standard input. Tables are those of the store; \"TABLE@BRANCH\", in double quotes, is what a branch reads, \"TABLE@N\" snapshot N."`
	To    string `placeholder:"FILE" help:"Write the rows to out.parquet, out.csv, out.arrow (an IPC file), out.arrows (an IPC stream), out.jsonl (an object per row), or - for an IPC stream on standard output."`
	terminal.ForceFlag
	Rows int `short:"n" default:"40" help:"Print at most this many rows; --json and --to give all."`
	cachedFlags
	app.AtFlag
	app.UsageFlags
	NoLease bool `help:"Take no lease, for example if the store is read-only. Then a concurrent gc may delete files that are being read: those of a branch, or of any snapshot after 5 minutes."`
	app.MetricsFlag
}

// Help says what the query may be.
func (c *SQL) Help() string {
	return `Only the columns in the query are read. dsi evaluates simple conditions on partition keys and features
itself, and skips the other rows. DuckDB 2 and pyarrow must be installed for Python. More queries are in
docs/guide/sql.md.`
}

// Run runs the command.
func (c *SQL) Run(ctx context.Context, e *app.Env) error {
	return terminal.OutlivePipe(func() error { return c.run(ctx, e) })
}

func (c *SQL) run(ctx context.Context, e *app.Env) error {
	format, err := c.format(e.JSON)
	if err != nil {
		return err
	}
	if c.Rows < 1 {
		return terminal.Usagef("--rows %d: want 1 or more", c.Rows)
	}
	if c.Query == "-" {
		text, err := io.ReadAll(e.Interruptible(ctx))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		c.Query = string(text)
	}
	store, err := c.cached(c.StoreArg).Open(ctx, e)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dsi-sql-") // for its owner alone
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	if len(socket) > maxSocket {
		short, err := os.MkdirTemp("/tmp", "dsi-sql-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(short)
		socket = filepath.Join(short, "socket")
	}
	s, err := serveScans(ctx, socket, e, store, c)
	if err != nil {
		return err
	}
	defer s.close()
	task := sqlTask{Query: c.Query, Socket: socket, Spill: dir, Format: format, Rows: c.Rows + 1}
	if e.JSON {
		task.Rows = 0
	}
	switch {
	case format == "rows" && e.JSON:
		if err := s.run(ctx, task, func(r io.Reader) error { return printJSONRows(e, r) }); err != nil {
			return err
		}
		e.Printf("\n]}\n") // not after a query that failed: what it gave is no object
		return nil
	case format == "rows":
		var rows sqlRows
		if err := s.run(ctx, task, rows.read); err != nil {
			return err
		}
		rows.print(e, c.Rows)
		return nil
	case c.To == "-":
		return s.run(ctx, task, func(r io.Reader) error {
			_, err := io.Copy(e.Out, r)
			return err
		})
	}
	var ran, copied error
	n, err := c.WriteFile(c.To, func(w io.Writer) error {
		ran = s.run(ctx, task, func(r io.Reader) error {
			_, copied = io.Copy(w, r)
			return copied
		})
		return ran
	})
	if ran != nil && copied == nil {
		return ran // of the query, and not of the file
	}
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(struct {
			To    string `json:"to"`
			Bytes int64  `json:"bytes"`
		}{c.To, n})
	}
	e.Printf("%s: %s\n", terminal.OneLine(c.To), terminal.Bytes(uint64(n)))
	return nil
}

// format returns what the script is to give: rows, or a format of files.
func (c *SQL) format(asJSON bool) (string, error) {
	switch {
	case c.To == "":
		return "rows", nil
	case c.To == "-" && asJSON:
		return "", terminal.Usagef("--json with --to -: both want standard output")
	case strings.EqualFold(filepath.Ext(c.To), ".csv"):
		return "csv", nil
	}
	f, err := arrowbatch.ParseFormat(c.To)
	if err != nil {
		return "", terminal.Usagef("--to %s: want a name that ends in .parquet, .csv, .arrow, .arrows or .jsonl, or - "+
			"for an Arrow stream", c.To)
	}
	return f.String(), nil
}

// sqlTask is what the script is told.
type sqlTask struct {
	Query  string `json:"query"`
	Socket string `json:"socket"` // where scans are asked for
	Spill  string `json:"spill"`  // a directory for what DuckDB has no memory for
	Format string `json:"format"`
	Rows   int    `json:"rows"` // give no more in the format rows; 0: all
}

// run runs the script, whose output result reads.
func (s *scanServer) run(ctx context.Context, task sqlTask, result func(io.Reader) error) error {
	cmd, err := python.Command(sqlScript)
	if err != nil {
		return fmt.Errorf("%w; %s", err, installDuckDB)
	}
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	var stderr python.Stderr
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe() // open as long as this process is there
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	_, _ = in.Write(append(text, '\n')) // a script that has ended says why
	err = result(out)
	if err != nil {
		cmd.Process.Kill() // nobody reads what it writes
	}
	ended := cmd.Wait()
	switch failed := s.failure(stderr.String()); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && ended == nil: // whatever failed beyond the rows that the query needed
		return nil
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	var exit *exec.ExitError
	tooOld := strings.HasPrefix(stderr.LastLine(), "SyntaxError") // for the script
	switch errors.As(ended, &exit); {
	case exit != nil && exit.ExitCode() == python.Missing, tooOld:
		return fmt.Errorf("%s; %s", stderr.LastLine(), installDuckDB)
	case exit != nil && exit.ExitCode() == exitRefused:
		return duckDBError(stderr.String())
	case stderr.LastLine() != "":
		return fmt.Errorf("DuckDB: %s", stderr.LastLine())
	}
	return fmt.Errorf("DuckDB: %w", ended)
}

// duckDBError returns DuckDB's message on one line, without the copy of the query that it ends with.
func duckDBError(message string) error {
	text, _, _ := strings.Cut(message, "\nLINE ")
	text = strings.Join(strings.Fields(text), " ")
	for _, kind := range []string{"Parser Error", "Binder Error", "Catalog Error"} {
		if strings.HasPrefix(text, kind) {
			return terminal.Usagef("%s", text)
		}
	}
	return errors.New(text)
}

// sqlRows are the rows that the script gives, as a table shows them.
type sqlRows struct {
	head struct{ Columns, Types []string }
	rows [][]string
	plan string // the last value, which is what EXPLAIN gives
}

// read reads a line of JSON with the columns, then one per row.
func (q *sqlRows) read(r io.Reader) error {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	if err := decoder.Decode(&q.head); err != nil {
		return nilIfEnded(err)
	}
	for i, name := range q.head.Columns {
		q.head.Columns[i] = terminal.OneLine(name)
	}
	for {
		var values []any
		if err := decoder.Decode(&values); err != nil {
			return nilIfEnded(err)
		}
		cells := make([]string, len(values))
		for i, v := range values {
			q.plan, _ = v.(string)
			cells[i] = sqlCell(v)
		}
		q.rows = append(q.rows, cells)
	}
}

// nilIfEnded returns nil for the end of what the script gives, or would have given: its exit code says whether it
// failed.
func nilIfEnded(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// print prints at most so many rows.
func (q *sqlRows) print(e *app.Env, most int) {
	if len(q.head.Columns) == 0 {
		return
	}
	if slices.Equal(q.head.Columns, []string{"explain_key", "explain_value"}) { // a drawing
		for line := range strings.Lines(q.plan) {
			e.Printf("%s\n", terminal.OneLine(strings.TrimRight(line, "\n")))
		}
		return
	}
	left := terminal.FittingTable(e.Out, e.Width, q.head.Columns, q.rows[:min(len(q.rows), most)],
		numericColumns(q.head.Columns, q.head.Types)...)
	if len(q.rows) > most {
		e.Printf("... and more: -n, --json or --to\n")
	}
	if left > 0 {
		e.Printf("... and %s more: in a wider terminal, or by --json\n", terminal.Plural(uint64(left), "column"))
	}
}

// printJSONRows prints an object of the columns and rows, as they come, but for its end.
func printJSONRows(e *app.Env, r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nilIfEnded(err)
		}
		line = bytes.TrimRight(line, "\n")
		switch n {
		case 0:
			_, err = fmt.Fprintf(e.Out, "%s,\n\"rows\": [\n", bytes.TrimSuffix(line, []byte("}")))
		case 1:
			_, err = e.Out.Write(line)
		default:
			_, err = fmt.Fprintf(e.Out, ",\n%s", line)
		}
		if err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
}

// numericColumns returns the names of columns whose types are of numbers.
func numericColumns(names, types []string) []string {
	var out []string
	for i, t := range types {
		if t, _, _ = strings.Cut(t, "("); strings.HasSuffix(t, "INT") || strings.HasSuffix(t, "INTEGER") ||
			t == "FLOAT" || t == "DOUBLE" || t == "DECIMAL" {
			out = append(out, names[i])
		}
	}
	return out
}

// sqlCell returns a value of JSON as a table shows it: lists and strings are cut short.
func sqlCell(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if r := []rune(v); len(r) > shownBytes {
			return fmt.Sprintf("%s... %d characters in all", string(r[:shownBytes]), len(r))
		}
		return v
	case []any:
		var cells []string
		for _, x := range v[:min(len(v), shownElements)] {
			cells = append(cells, sqlCell(x))
		}
		if len(v) > shownElements {
			cells = append(cells, fmt.Sprintf("... %d in all", len(v)))
		}
		return "[" + strings.Join(cells, " ") + "]"
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	return fmt.Sprint(v)
}

// sqlView opens what a name of a query stands for: a table, "table@branch", or "table@3", a snapshot, where no branch
// has that name.
func (c *SQL) sqlView(ctx context.Context, store *storage.Store, name string) (*storage.View, error) {
	if _, branch := storage.SplitRef(name); branch == "" {
		snap, err := c.Snapshot(ctx, store, name)
		return &storage.View{Snapshot: snap}, err
	}
	view, err := store.Open(ctx, name)
	table, version := storage.SplitRef(name)
	var at app.Moment
	if errors.Is(err, storage.ErrNotFound) && at.UnmarshalText([]byte(version)) == nil {
		snap, err := app.AtFlag{At: at}.Snapshot(ctx, store, table)
		return &storage.View{Snapshot: snap}, err
	}
	return view, err
}

// options returns how scans read.
func (c *SQL) options() reader.Options {
	return reader.Options{Usage: c.Usage("sql"), Lease: reader.LeaseOptions{Off: c.NoLease}}
}
