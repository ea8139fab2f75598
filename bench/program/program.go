// Package program is what the main functions of the programs under bench have in common.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

// Main parses the command line into flags, a pointer to a struct with kong's tags, and calls run, whose context ends with an
// interrupt. An error is printed and ends the process: with 130 when it is of the interrupt, else 1.
func Main(flags any, name, description string, run func(context.Context) error) {
	kong.Parse(flags, kong.Name(name), kong.Description(description))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(130)
		}
		os.Exit(1)
	}
}
