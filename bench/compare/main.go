// Command compare measures a dsistore table against the Parquet it was made from: bytes on disk, and samples a second into
// the same tensors, in alternating rounds of one process. It fails when the two do not give the same rows.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/bench/workload"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	versus.TableFlags
	Share     []float64 `help:"Shares of the features to read." default:"0.1"`
	Threads   []int     `help:"Threads of each side." default:"1"`
	Rounds    int       `help:"Rounds that count; one more runs before." default:"7"`
	BatchSize int       `help:"Rows of a batch." default:"4096"`
	Clustered bool      `help:"Also compare with Parquet clustered by session." default:"true" negatable:""`
	KeepStore bool      `help:"Use the store that an earlier run left, if any."`
	program.ResultsFlag
	IngestBytes int64 `name:"memory" help:"Memory of ingest, in bytes." default:"1073741824"`
}

// A report is what a run found.
type report struct {
	Profile string         `json:"profile"`
	Seed    uint64         `json:"seed"`
	Rows    int64          `json:"rows"`
	Stats   workload.Stats `json:"workload"`
	Sizes   []versus.Size  `json:"sizes"`
	Ingest  *ingest.Report `json:"ingest,omitempty"`
	Scans   []versus.Scans `json:"scans"`
}

func main() {
	var f flags
	program.Main(&f, "compare", "Measure dsistore against Parquet read by arrow-go, in alternating rounds.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.BatchSize < 1 || len(f.Share) == 0 || len(f.Threads) == 0 {
		return errors.New("rounds, batch-size, share and threads: want at least 1 of each")
	}
	inter, err := f.Dump(ctx, workload.Interleaved)
	if err != nil {
		return err
	}
	truth, err := workload.NewTruth(inter.Options)
	if err != nil {
		return err
	}
	dumps := []*versus.Dump{inter}
	if f.Clustered {
		d, err := f.Dump(ctx, workload.Clustered)
		if err != nil {
			return err
		}
		dumps = append(dumps, d)
	}
	rep := report{Profile: f.Profile, Seed: f.Seed, Rows: inter.Rows, Stats: inter.Stats}
	store, r, err := f.Store(ctx, workload.Interleaved, f.KeepStore, ingest.Options{Options: writer.Options{Memory: f.IngestBytes}})
	if err != nil {
		return err
	}
	if r != nil {
		program.Log("ingested in %.1f s: %.0f rows/s, %.1f MB/s of Parquet", r.Seconds.Total, float64(r.Rows)/r.Seconds.Total, float64(r.BytesIn)/r.Seconds.Total/1e6)
		rep.Ingest = r
	}
	if rep.Sizes, err = sizes(store, dumps); err != nil {
		return err
	}
	versus.PrintSizes(os.Stdout, rep.Sizes)
	for _, share := range f.Share {
		if err := f.scans(ctx, &rep, truth, share, store, dumps); err != nil {
			return err
		}
	}
	return f.WriteResults("compare", rep)
}

func sizes(store string, dumps []*versus.Dump) ([]versus.Size, error) {
	stored, err := versus.DirBytes(store)
	if err != nil {
		return nil, err
	}
	d := dumps[0]
	out := []versus.Size{versus.SizeOf("dsistore", stored, d.Rows)}
	for i, form := range []string{"Parquet zstd, interleaved", "Parquet zstd, clustered"}[:len(dumps)] {
		out = append(out, versus.SizeOf(form, dumps[i].Bytes, d.Rows))
	}
	return append(out, versus.SizeOf("raw", d.RawBytes, d.Rows)), nil
}

func (f *flags) scans(ctx context.Context, rep *report, truth *workload.Truth, share float64, store string, dumps []*versus.Dump) error {
	fs, err := versus.Project(truth, share, f.Seed)
	if err != nil {
		return err
	}
	sides := []versus.Side{&versus.StoreSide{Label: "dsistore", Dir: store, Features: fs, BatchSize: f.BatchSize}}
	for i, label := range []string{"Parquet (arrow-go)", "Parquet clustered (arrow-go)"}[:len(dumps)] {
		sides = append(sides, &versus.ParquetSide{Label: label, Paths: dumps[i].Paths(), Features: fs, BatchSize: f.BatchSize})
	}
	return versus.Compare(ctx, share, fs, f.BatchSize, f.Threads, f.Rounds, sides, program.Log, func(_ int, s versus.Scans) error {
		rep.Scans = append(rep.Scans, s)
		return nil
	})
}
