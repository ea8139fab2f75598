// Package program is what the programs under bench have in common: their main function and flags, the machine that they
// run on, medians, and how results are written.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"

	"github.com/dsistore/dsistore/internal/commandline"
)

// What is read to be measured is no job's reading, and writing that down is no part of it: unless somebody asks for
// usage records there are none.
func init() {
	if _, asked := os.LookupEnv("DSISTORE_USAGE"); !asked {
		os.Setenv("DSISTORE_USAGE", "off")
	}
}

// Main parses the command line into flags, a pointer to a struct with the tags of package commandline, where ${program}
// is the name, and calls run, whose context ends with an interrupt. An error is printed and ends the process: with 2 if
// it is of the arguments, with 130 if it is of the interrupt, else with 1.
func Main(flags any, name, description string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := commandline.Program{Name: name, Description: description, Out: os.Stdout, Err: os.Stderr,
		Vars: map[string]string{"program": name}}
	switch parsed, err := p.Parse(ctx, flags, os.Args[1:]); {
	case err != nil:
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(2)
	case parsed == nil: // help was printed
		return
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

// ResultsFlag is the flag of a program that keeps what it measured. It is embedded in the program's flags.
type ResultsFlag struct {
	Results string `help:"Directory for the results as JSON; empty: none." default:"bench/results"`
}

// WriteResults writes v as NAME.json into the directory, if there is one, and says so.
func (r *ResultsFlag) WriteResults(name string, v any) error {
	if r.Results == "" {
		return nil
	}
	path, err := Write(r.Results, name, v)
	if err == nil {
		Log("results: %s", path)
	}
	return err
}

// ProfileFlag is the flag of a program that can write a profile of what it measures. It is embedded in the program's
// flags.
type ProfileFlag struct {
	CPUProfile string `name:"cpuprofile" help:"Write a profile of what is measured to this file."`
}

// StartProfile starts the profile, if one is asked for, and returns what ends it.
func (p *ProfileFlag) StartProfile() (stop func() error, err error) {
	if p.CPUProfile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(p.CPUProfile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error { pprof.StopCPUProfile(); return file.Close() }, nil
}

// Log says on standard error what a program is at.
func Log(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
