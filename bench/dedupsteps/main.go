// Command dedupsteps ingests one dump with each step of finding duplicates switched on in turn, and reports the bytes that
// a row takes, in all and by family of features, and the seconds that the ingest took: medians of rounds in which the steps take
// turns.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/bench/workload"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Rows    int64    `help:"Rows of the dump; 0: the profile's."`
	Profile string   `help:"Profile of the workload." default:"small"`
	Workers int      `help:"Goroutines of ingest." default:"1"`
	Rounds  int      `help:"How often each step is timed, in turn with the others; the median counts." default:"1"`
	Steps   []string `help:"Steps to take." default:"off,runs,slots,windows,groups"`
	Dir     string   `help:"Where the data lies; a dump that is there already is used." default:"out/dedupsteps"`
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
}

func main() {
	var f flags
	program.Main(&f, "dedupsteps", "Bytes per row for each step of finding duplicates.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 {
		return errors.New("rounds: want more than 0")
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), workload.Options{Profile: f.Profile, Rows: f.Rows})
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
		r.Seconds, r.WriteSeconds = result.Median(r.seconds), result.Median(r.writes)
		r.RowsPerSec = float64(dump.Rows) / r.Seconds
	}
	show(reports)
	return f.WriteResults("dedupsteps", reports)
}

// round ingests the dump with one step.
func (f *flags) round(ctx context.Context, dump *versus.Dump, step string, r *report) error {
	store := filepath.Join(f.Dir, "store")
	in, err := versus.Ingest(ctx, store, dump, ingest.Options{Options: writer.Options{Workers: f.Workers, Dedup: writer.Dedup(step)}})
	if err != nil {
		return err
	}
	r.seconds, r.writes = append(r.seconds, in.Seconds.Total), append(r.writes, in.Seconds.Write)
	if r.FamilyBytes != nil {
		return nil
	}
	r.Dedup, r.Found = step, in.Duplicates
	r.BytesPerRow = float64(in.BytesOut) / float64(in.Rows)
	r.FamilyBytes, err = familyBytes(ctx, store, dump, r.BytesPerRow)
	return err
}

// familyBytes returns the bytes a row of each family's feature files; the rest, up to total, is indexes and packs.
func familyBytes(ctx context.Context, dir string, dump *versus.Dump, total float64) (map[string]float64, error) {
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return nil, err
	}
	of := map[string]string{}
	for _, f := range truth.Features() {
		of[f.Name] = versus.FamilyName(f.Family)
	}
	out := map[string]float64{versus.Rest: total}
	err = versus.EachEntry(ctx, dir, func(e *storage.FeatureEntry) error {
		name := of[e.Meta.Name]
		if name == "" {
			name = versus.Inverses
		}
		n := float64(e.Length) / float64(dump.Rows)
		out[name] += n
		out[versus.Rest] -= n
		return nil
	})
	return out, err
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
	line("windows", func(r *report) float64 { return float64(r.Found.Windows) })
	line("groups", func(r *report) float64 { return float64(r.Found.Groups) })
	line("saved, estimated", func(r *report) float64 { return float64(r.Found.BytesSaved) / (r.RowsPerSec * r.Seconds) })
}
