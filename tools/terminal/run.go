package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/selection"
)

// The exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDamage      = 3
	ExitConflict    = 4
	ExitNotFound    = 5
	ExitInterrupted = 130
)

// Main runs a command with the process's arguments, and ends the process with the code that run returns.
func Main(run func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	ignoreFileSizeSignal()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in good order; a second one ends the process, as without a handler.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// A UsageError is an error of the arguments.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// ErrDamage is matched by the error of a command that found damage, which it has printed.
var ErrDamage = errors.New("damage found")

// report prints err as one line that begins with the command's name, on a terminal with a picture of the place below
// it, and returns the exit code that it stands for.
func report(ctx context.Context, name string, stderr io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, name+": interrupted")
		return ExitInterrupted
	}
	fmt.Fprintln(stderr, name+": "+OneLine(err.Error()))
	var place *expr.Error
	if errors.As(err, &place) {
		if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprintln(stderr, place.Picture())
		}
		return ExitUsage
	}
	var usage UsageError
	switch {
	case errors.As(err, &usage), errors.Is(err, reader.ErrSelection), errors.Is(err, selection.ErrQuery),
		errors.Is(err, storage.ErrName):
		return ExitUsage
	case errors.Is(err, ErrDamage):
		return ExitDamage
	case errors.Is(err, storage.ErrConflict):
		return ExitConflict
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, object.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return ExitNotFound
	}
	return ExitFailed
}

// errExit ends Parse early when kong has printed help or the version.
var errExit = errors.New("exit")

// Parse parses args into grammar, a pointer to a struct with kong's tags. nil without an error: help or the version was
// asked for, and printed.
func (e *Env) Parse(description string, grammar any, args []string) (parsed *kong.Context, err error) {
	for _, arg := range args {
		// kong would put U+FFFD for such bytes, and one name would stand for many.
		if !utf8.ValidString(arg) {
			return nil, Usagef("argument %.100q is not UTF-8", arg)
		}
	}
	// kong prints help and the version itself and then calls Exit, which must not return.
	defer func() {
		if r := recover(); r != nil {
			if r != errExit {
				panic(r)
			}
			parsed, err = nil, nil
		}
	}()
	parser, err := kong.New(grammar,
		kong.Name(e.Name),
		kong.Description(description),
		kong.Writers(e.Out, e.Err),
		kong.Exit(func(int) { panic(errExit) }),
		kong.Vars{"version": version(e.Name)},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		return nil, err
	}
	if parsed, err = parser.Parse(args); err != nil {
		return nil, badArguments(e.Name, err)
	}
	return parsed, nil
}

// badArguments turns what kong says of wrong arguments into a usage error that says where help is.
func badArguments(name string, err error) error {
	help := name + " --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if n := parse.Context.Selected(); n != nil {
			help = name + " " + strings.TrimSpace(n.Path()) + " --help"
		}
	}
	return Usagef("%v (see %s)", err, help)
}

// version returns the version of the module that this binary was built from.
func version(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return name + " " + info.Main.Version
	}
	return name + " (unknown version)"
}
