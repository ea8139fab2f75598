package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/metrics"
	"github.com/dsistore/dsistore/tools/samples"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamage      = 3
	exitConflict    = 4
	exitNotFound    = 5
	exitInterrupted = 130
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
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errDamage is matched by what verify returns when it found damage; the damage has been printed.
var errDamage = errors.New("damage found")

// report prints err as one line, on a terminal with a picture of the place below it, and returns the exit code that it stands for.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil {
		fmt.Fprintln(a.err, "dsi: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(a.err, "dsi: "+oneLine(err.Error()))
	var place *expr.Error
	if errors.As(err, &place) {
		if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprintln(a.err, place.Picture())
		}
		return exitUsage
	}
	var usage usageError
	switch {
	case errors.As(err, &usage), errors.Is(err, reader.ErrSelection), errors.Is(err, samples.ErrQuery):
		return exitUsage
	case errors.Is(err, errDamage):
		return exitDamage
	case errors.Is(err, storage.ErrConflict):
		return exitConflict
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, object.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailed
}

// oneLine joins the lines of a message and takes the control characters out, so that what data says cannot reach the
// terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
}

// printJSON prints v as one object.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }
