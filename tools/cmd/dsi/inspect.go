package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dsistore/dsistore/format"
)

type inspectCmd struct {
	File string `arg:"" help:"A feature file or a pack."`
}

func (c *inspectCmd) Run(ctx context.Context, a *app) error {
	if a.json {
		return usagef("inspect prints bytes for people: there is no --json form")
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return usagef("%s: not a file", c.File)
	}
	if err := format.Dump(a.out, f, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return nil
}
