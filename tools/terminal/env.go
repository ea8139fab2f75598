package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// An Env is what a command reads from and prints to.
type Env struct {
	Name string // of the program
	In   io.Reader
	Out  *bufio.Writer // standard output
	Err  io.Writer     // standard error
	JSON bool          // print one object
	// Width is how many columns standard output has, 0 where it is no terminal.
	Width int

	codes   []int // that the program ends with
	closers []func() error
}

// NewEnv returns the Env of a program, which ends with one of the exit codes.
func NewEnv(name string, in io.Reader, out, err io.Writer, codes ...int) *Env {
	return &Env{Name: name, In: in, Out: bufio.NewWriterSize(out, 64<<10), Err: err, Width: Width(out), codes: codes}
}

// AtEnd calls f when the command has ended. What is closed only frees what it read from: its error says nothing of the
// work.
func (e *Env) AtEnd(f func() error) { e.closers = append(e.closers, f) }

// Run runs a command, prints its error, and returns the exit code.
func (e *Env) Run(ctx context.Context, command func() error) int {
	err := command()
	for i := len(e.closers) - 1; i >= 0; i-- {
		_ = e.closers[i]()
	}
	if flushErr := e.Out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("standard output: %w", flushErr)
	}
	return report(ctx, e.Name, e.Err, err)
}

// Printf prints to standard output.
func (e *Env) Printf(format string, args ...any) { fmt.Fprintf(e.Out, format, args...) }

// Warnf prints a line to standard error, after the program's name.
func (e *Env) Warnf(format string, args ...any) {
	fmt.Fprintf(e.Err, "%s: %s\n", e.Name, OneLine(fmt.Sprintf(format, args...)))
}

// PrintJSON prints v as one object.
func (e *Env) PrintJSON(v any) error {
	enc := json.NewEncoder(e.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// PrintFacts prints name and value, a line each, values aligned.
func (e *Env) PrintFacts(facts ...[2]string) {
	width := 0
	for _, f := range facts {
		width = max(width, len(f[0]))
	}
	for _, f := range facts {
		e.Printf("%-*s  %s\n", width, f[0], OneLine(f[1]))
	}
}

// Print prints v with --json, and else the facts.
func (e *Env) Print(v any, facts ...[2]string) error {
	if e.JSON {
		return e.PrintJSON(v)
	}
	e.PrintFacts(facts...)
	return nil
}

// PrintTable prints rows below the names of columns, which are separated by ", ". The columns whose names begin with
// "#" are numbers: they are aligned at the right, and print without it.
func (e *Env) PrintTable(columns string, rows [][]string) {
	names := strings.Split(columns, ", ")
	var right []string
	for i, name := range names {
		if number, found := strings.CutPrefix(name, "#"); found {
			names[i], right = number, append(right, number)
		}
	}
	Table(e.Out, names, rows, right...)
}

// PrintRows is PrintTable for what row makes of the items.
func PrintRows[T any](e *Env, columns string, items []T, row func(T) []string) {
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = row(item)
	}
	e.PrintTable(columns, rows)
}

// PrintList prints v with --json, else the items as PrintRows does, or none where there are none.
func PrintList[T any](e *Env, v any, none, columns string, items []T, row func(T) []string) error {
	switch {
	case e.JSON:
		return e.PrintJSON(v)
	case len(items) == 0:
		e.Printf("%s\n", none)
	default:
		PrintRows(e, columns, items, row)
	}
	return nil
}

// PrintSome is PrintRows for the first items alone, and says how many more there are.
func PrintSome[T any](e *Env, most int, noun, columns string, items []T, row func(T) []string) {
	if len(items) > 0 {
		PrintRows(e, columns, items[:min(len(items), most)], row)
	}
	if more := len(items) - most; more > 0 {
		e.Printf("and %s more (--json has all)\n", Plural(uint64(more), noun))
	}
}

// Did returns what a command did, or with --dry-run that it would do it.
func Did(dryRun bool, did, would string) string {
	if dryRun {
		return "would " + would
	}
	return did
}
