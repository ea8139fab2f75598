package versus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
)

// TableFlags say which generated table a program measures, and where it lies. They are embedded in the program's flags.
type TableFlags struct {
	Profile string `help:"Generator's profile: small, wide, metawide, narrow or long." default:"small"`
	Rows    int64  `help:"Rows; 0: the profile's."`
	Seed    uint64 `help:"Seed of the generator."`
	Dir     string `help:"Where the data lies; what is there already is used." default:"out/${program}"`
}

// Options returns the generator's options for the table in an order.
func (f *TableFlags) Options(order workload.Order) workload.Options {
	return workload.Options{Profile: f.Profile, Rows: f.Rows, Seed: f.Seed, Order: order}
}

// path returns where something of the table lies.
func (f *TableFlags) path(name string) (string, error) {
	t, err := workload.NewTruth(f.Options(""))
	if err != nil {
		return "", err
	}
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%d-%d", f.Profile, t.Rows(), f.Seed), name), nil
}

// Dump generates the table as Parquet in an order, or finds it there.
func (f *TableFlags) Dump(ctx context.Context, order workload.Order) (*Dump, error) {
	dir, err := f.path(string(order))
	if err != nil {
		return nil, err
	}
	program.Log("Parquet, %s: %s", order, dir)
	return Generate(ctx, dir, f.Options(order))
}

// Store ingests the dump in an order and returns the store's directory and the report; nil where keep is set and an
// earlier run left the store.
func (f *TableFlags) Store(ctx context.Context, order workload.Order, keep bool,
	o ingest.Options) (string, *ingest.Report, error) {
	dir, err := f.path("store")
	if err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "tables")); err == nil && keep {
		return dir, nil, nil
	}
	d, err := f.Dump(ctx, order)
	if err != nil {
		return "", nil, err
	}
	program.Log("ingest: %s", dir)
	r, err := Ingest(ctx, dir, d, o)
	return dir, &r, err
}
