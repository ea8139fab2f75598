package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/commandline"
	"github.com/dsistore/dsistore/internal/plain"
	"github.com/dsistore/dsistore/internal/version"
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

// meanings of the exit codes, for help.
var meanings = map[int]string{
	ExitDone: "done", ExitFailed: "failed", ExitUsage: "wrong arguments", ExitDamage: "damage found",
	ExitConflict: "another commit was in the way", ExitNotFound: "not found", ExitInterrupted: "interrupted",
}

// helpOf says what exit codes mean, at the end of each command's help.
func helpOf(codes []int) string {
	all := make([]string, len(codes))
	for i, code := range codes {
		all[i] = fmt.Sprintf("%d %s", code, meanings[code])
	}
	return "Exit codes: " + strings.Join(all, ", ") + "."
}

// Main runs a command with the process's arguments, and ends the process with the code that run returns.
func Main(run func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	ignoreFileSizeSignal()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in good order; a second one ends the process, as without a handler.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// OutlivePipe runs f, for which it is an error to write to a standard output that nobody reads any more. Without it a
// signal would end the process, and what f is to remove would stay. The signal comes when f has ended.
func OutlivePipe(f func() error) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	err := f()
	signal.Stop(signals)
	if errors.Is(err, syscall.EPIPE) {
		_, _ = os.Stdout.WriteString("\n")
	}
	return err
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
	fmt.Fprintln(stderr, name+": "+ErrorText(err))
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
	case errors.Is(err, ErrDamage), errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported):
		return ExitDamage
	case errors.Is(err, storage.ErrConflict):
		return ExitConflict
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, object.ErrNotFound), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, object.ErrNoBucket):
		return ExitNotFound
	}
	return ExitFailed
}

// ErrorText returns what an error says to a person, in one line.
func ErrorText(err error) string { return OneLine(strings.ReplaceAll(plain.Text(err), "\n", "; ")) }

// CompleteTime is how long a shell waits for names at most.
const CompleteTime = 3 * time.Second

// Parse parses args into grammar, a pointer to a struct with the tags of package commandline. nil without an error:
// help, the version or a completion was asked for, and printed. complete is that of commandline.Program, or nil.
func (e *Env) Parse(ctx context.Context, description string, grammar any, args []string,
	complete func(ctx context.Context, command any, what string) []string) (*commandline.Command, error) {
	p := commandline.Program{Name: e.Name, Description: description, Version: version.Get().String(), Out: e.Out,
		Err: e.Err, Width: e.Width, Complete: complete, Note: helpOf(e.codes)}
	c, err := p.Parse(ctx, grammar, args)
	if wrong := (*commandline.Error)(nil); errors.As(err, &wrong) {
		return nil, UsageError{err}
	}
	return c, err
}

// PrintVersion says what the program was built from.
func (e *Env) PrintVersion() error {
	i := version.Get()
	commit := cmp.Or(i.Commit, "not known")
	if i.Modified {
		commit += ", with changes"
	}
	return e.Print(i, [][2]string{{"version", i.Version}, {"commit", commit}, {"date", cmp.Or(i.Date, "not known")},
		{"go", i.Go}, {"platform", i.OS + "/" + i.Arch}}...)
}

// Reference returns Markdown about the commands of a program.
func Reference(name, description string, grammar any) string {
	p := commandline.Program{Name: name, Description: description, Version: version.Current}
	return p.Reference(grammar)
}

// Man writes man pages of the commands of a program into a directory.
func Man(name, description string, grammar any, dir string) error {
	p := commandline.Program{Name: name, Description: description, Version: version.Current}
	return p.Man(grammar, dir)
}
