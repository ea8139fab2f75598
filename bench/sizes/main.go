// Command sizes says what a row takes, in all and by family of features. It ingests one dump with each step of finding
// duplicates switched on in turn, and times the ingest: medians of rounds in which the steps take turns. Of the last
// step it says by what the bytes say, beside the least that the same table takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Rows     int64    `help:"Rows of the dump; 0: the profile's."`
	Profile  string   `help:"Profile of the workload." default:"small"`
	Seed     uint64   `help:"Seed of the workload."`
	Features bool     `help:"A line for each feature too, with the codecs of its last stripe's values or codes."`
	Workers  int      `help:"Goroutines of ingest." default:"1"`
	Rounds   int      `help:"How often each step is timed, in turn with the others; the median counts." default:"1"`
	Steps    []string `help:"Steps to take." default:"off,runs,slots,partial,groups"`
	Dir      string   `help:"Where the data lies; a dump that is there already is used." default:"out/sizes"`
	program.ResultsFlag
}

// A report is what one step gave.
type report struct {
	Dedup        string             `json:"dedup"`
	BytesPerRow  float64            `json:"bytes_per_row"`
	FamilyBytes  map[string]float64 `json:"bytes_per_row_by_family"`
	Seconds      float64            `json:"seconds"`
	WriteSeconds float64            `json:"write_seconds"`
	RowsPerSec   float64            `json:"rows_per_second"`
	Found        writer.Duplicates  `json:"found"`

	seconds, writes []float64 // of each round
	lines           []*line
}

func main() {
	var f flags
	program.Main(&f, "sizes", "Bytes per row for each step of finding duplicates, and the least that the same table "+
		"takes.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || len(f.Steps) == 0 {
		return errors.New("rounds and steps: want at least 1 of each")
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"),
		workload.Options{Profile: f.Profile, Rows: f.Rows, Seed: f.Seed})
	if err != nil {
		return err
	}
	reports := make([]report, len(f.Steps))
	for range f.Rounds {
		for i, step := range f.Steps {
			if err := f.round(ctx, dump, step, &reports[i]); err != nil {
				return err
			}
		}
	}
	for i := range reports {
		r := &reports[i]
		r.Seconds, r.WriteSeconds = program.Median(r.seconds), program.Median(r.writes)
		r.RowsPerSec = float64(dump.Rows) / r.Seconds
	}
	show(reports)
	fmt.Println()
	last := reports[len(reports)-1].lines
	showLines(last)
	return f.WriteResults("sizes", struct {
		Steps []report `json:"steps"`
		Lines []*line  `json:"lines"` // of the last step
	}{reports, last})
}

// round ingests the dump with one step.
func (f *flags) round(ctx context.Context, dump *versus.Dump, step string, r *report) error {
	store := filepath.Join(f.Dir, "store")
	in, err := versus.Ingest(ctx, store, dump,
		ingest.Options{Options: writer.Options{Workers: f.Workers, Dedup: writer.Dedup(step)}})
	if err != nil {
		return err
	}
	r.seconds, r.writes = append(r.seconds, in.Seconds.Total), append(r.writes, in.Seconds.Write)
	if r.FamilyBytes != nil {
		return nil
	}
	r.Dedup, r.Found = step, in.Duplicates
	r.BytesPerRow = float64(in.BytesOut) / float64(in.Rows)
	if r.lines, err = f.lines(ctx, store, dump, r.BytesPerRow); err != nil {
		return err
	}
	r.FamilyBytes = map[string]float64{}
	for _, l := range r.lines[:len(versus.Families)] {
		r.FamilyBytes[l.Name] = l.Stored.total()
	}
	return nil
}

func show(reports []report) {
	fmt.Printf("%-20s", "bytes per row")
	for _, r := range reports {
		fmt.Printf(" %9s", r.Dedup)
	}
	fmt.Println()
	line := func(name string, value func(r *report) float64) {
		fmt.Printf("%-20s", name)
		for i := range reports {
			fmt.Printf(" %9.2f", value(&reports[i]))
		}
		fmt.Println()
	}
	line("all", func(r *report) float64 { return r.BytesPerRow })
	for _, name := range versus.Families {
		line("  "+name, func(r *report) float64 { return r.FamilyBytes[name] })
	}
	line("seconds", func(r *report) float64 { return r.Seconds })
	line("  of them writing", func(r *report) float64 { return r.WriteSeconds })
	line("rows/s", func(r *report) float64 { return r.RowsPerSec })
	line("dedupe factor", func(r *report) float64 { return r.Found.Factor })
	line("partial", func(r *report) float64 { return float64(r.Found.Partial) })
	line("groups", func(r *report) float64 { return float64(r.Found.Groups) })
	line("saved, estimated", func(r *report) float64 {
		return float64(r.Found.BytesSaved) / (r.RowsPerSec * r.Seconds)
	})
}
