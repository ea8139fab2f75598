package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
)

type exportCmd struct {
	tableArgs
	Features []string `default:"@all" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	To       string   `required:"" placeholder:"FILE" help:"out.parquet, out.arrow (an IPC file), out.arrows (an IPC stream), or - for an IPC stream on standard output."`
	Fold     bool     `help:"Put features of one source map or struct back into one column."`
	Dedup    dedup    `help:"Keep what rows share, in Arrow: dictionaries of lists (ikjt, which --dedup alone means; .arrows and - only) or list views (partial)."`
	readFlags
	metricsFlag
}

// exportJSON is what export prints with --json.
type exportJSON struct {
	Table    string  `json:"table"`
	Snapshot uint64  `json:"snapshot"`
	To       string  `json:"to"`
	Features int     `json:"features"`
	Rows     uint64  `json:"rows"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

func (c *exportCmd) Run(ctx context.Context, a *app) error {
	format := arrowbatch.IPCStream
	if c.To != "-" {
		var err error
		if format, err = arrowbatch.ParseFormat(c.To); err != nil {
			return usagef("--to %s: %w", c.To, err)
		}
	} else if a.json {
		return usagef("--json with --to -: both want standard output")
	}
	switch d := reader.Dedup(c.Dedup); {
	case d != reader.DedupKJT && format == arrowbatch.Parquet:
		return usagef("--dedup=%v: Parquet has a value a row: want .arrow, .arrows or -", d)
	case d == reader.DedupIKJT && format == arrowbatch.IPCFile:
		return usagef("--dedup=%v: an Arrow file holds one dictionary a column: want .arrows or -, or --dedup=partial", d)
	}
	opts, err := c.planOptions(c.Features)
	if err != nil {
		return err
	}
	store, view, err := c.openTable(ctx, c.tableArgs)
	if err != nil {
		return err
	}
	defer store.Close()
	opts.Dedup = reader.Dedup(c.Dedup)
	plan, err := reader.NewViewPlan(ctx, view, opts)
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := reader.OpenView(ctx, view, plan, reader.Options{Usage: c.usage("export"), Lease: c.lease()})
	if err != nil {
		return err
	}
	defer metricsOf(ctx).AddReader(s)()
	defer s.Close()
	var rows uint64
	write := func(w io.Writer) error {
		var err error
		rows, err = arrowbatch.Write(ctx, w, format, s, arrowbatch.Options{Fold: c.Fold})
		return err
	}
	if c.To == "-" {
		return write(a.out)
	}
	n, err := writeFile(c.To, write)
	if err != nil {
		return err
	}
	out := exportJSON{c.Table, plan.Snapshot, c.To, len(plan.Features), rows, n, time.Since(start).Seconds()}
	if a.json {
		return a.printJSON(out)
	}
	a.printf("%s: %s, %s, %s, %.1f s\n", oneLine(c.To), plural(rows, "row"), plural(uint64(out.Features), "feature"), bytesText(uint64(n)), out.Seconds)
	return nil
}

// writeFile gives write a file beside path, which takes the path's name when write and everything else went well, so
// that path never holds half a file. What is no plain file (a device, a pipe) is written in place.
func writeFile(path string, write func(io.Writer) error) (size int64, err error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return 0, usagef("--to %s: is a directory", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	inPlace := err == nil && !info.Mode().IsRegular()
	var f *os.File
	if inPlace {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	} else {
		// Not os.CreateTemp, whose files are for their owner alone.
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%016x", filepath.Base(path), rand.Uint64()))
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}
	var opening *fs.PathError
	if errors.As(err, &opening) {
		return 0, fmt.Errorf("%s: %w", path, opening.Err) // not the temporary name
	}
	if err != nil {
		return 0, err
	}
	defer func() {
		f.Close()
		if err != nil && !inPlace {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	counted := &countingWriter{w: f}
	if err := write(counted); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if inPlace {
		return counted.n, f.Close()
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return counted.n, os.Rename(f.Name(), path)
}

// countingWriter counts the bytes that went through.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
