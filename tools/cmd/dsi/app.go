package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/dsistore/dsistore/tools/command"
	"github.com/dsistore/dsistore/tools/metrics"
)

// app is what every command prints to and reads from.
type app struct {
	in   io.Reader
	out  *bufio.Writer // standard output
	err  io.Writer     // standard error
	json bool

	metrics *metrics.Metrics // nil: nobody asked for any
	command string           // that they are of
}

func newApp(in io.Reader, out, err io.Writer) *app {
	return &app{in: in, out: bufio.NewWriterSize(out, 64<<10), err: err}
}

func (a *app) flush() error { return a.out.Flush() }

// usageError is an error of the arguments.
type usageError = command.UsageError

func usagef(format string, args ...any) error { return command.Usagef(format, args...) }

// printJSON prints v as one object.
func (a *app) printJSON(v any) error { return command.JSON(a.out, v) }

// printTable prints rows under the names. Columns named in right are set against the right edge, as numbers are.
func (a *app) printTable(names []string, rows [][]string, right ...string) {
	command.Table(a.out, names, rows, right...)
}

// printFacts prints name and value, a line each, values aligned.
func (a *app) printFacts(facts [][2]string) { command.Facts(a.out, facts) }

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }
