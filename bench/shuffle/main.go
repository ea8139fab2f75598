// Command shuffle reads a projection of the workload in several orders and reports what each trades: samples/s, rows a
// slot in a batch, sessions per batch, and how far the batches' label means deviate.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	Rows       int64   `help:"Rows of the dump; 0: the profile's."`
	Profile    string  `help:"Profile of the workload." default:"small"`
	StripeRows int     `help:"Rows of a stripe." default:"4096"`
	BatchSize  int     `help:"Samples per batch." default:"4096"`
	Share      float64 `help:"Share of the features that is read." default:"0.1"`
	Buffers    []int   `help:"Stripes in a shuffle buffer." default:"1,2,4,8,16"`
	Threads    int     `help:"Processors of the process." default:"1"`
	Rounds     int     `help:"How often each order is timed; medians count." default:"5"`
	Dir        string  `help:"Where the data lies; a dump that is there already is used." default:"out/shuffle"`
	program.ResultsFlag
}

// A report is one order. Rates are medians over rounds, the rest is over the batches of all of them: every round is an
// epoch.
type report struct {
	Unit           string    `json:"unit"`
	BufferStripes  int       `json:"buffer_stripes"`
	DedupeFactor   float64   `json:"dedupe_factor"`
	Sessions       float64   `json:"sessions_per_batch"`
	LabelMean      float64   `json:"label_mean"`
	LabelDeviation float64   `json:"label_batch_deviation"`
	KJT            []float64 `json:"kjt_samples_per_second"`  // a round each
	IKJT           []float64 `json:"ikjt_samples_per_second"` // a round each

	totals reader.InfoTotals
	order  reader.Shuffle
}

func main() {
	var f flags
	program.Main(&f, "shuffle", "What orders of an epoch trade: speed and duplicates against mixing.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.Threads < 1 || f.BatchSize < 1 {
		return errors.New("rounds, threads and batch size: want more than 0")
	}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), workload.Options{Profile: f.Profile, Rows: f.Rows})
	if err != nil {
		return err
	}
	mapping := filepath.Join(f.Dir, "mapping.json")
	if err := os.WriteFile(mapping, []byte(`{"columns": {"click": {"role": "label"}}}`), 0o666); err != nil {
		return err
	}
	store := filepath.Join(f.Dir, "store")
	if _, err := versus.Ingest(ctx, store, dump, ingest.Options{MappingFile: mapping,
		Options: writer.Options{StripeRows: f.StripeRows}}); err != nil {
		return err
	}
	s, err := versus.OpenStore(ctx, store)
	if err != nil {
		return err
	}
	defer s.Close()
	_, snap, err := s.Newest(ctx, versus.Table)
	if err != nil {
		return err
	}
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return err
	}
	projected, err := versus.Project(truth, f.Share, 0)
	if err != nil {
		return err
	}
	// The session key is read in every order, so that all count sessions and all read the same bytes.
	names := []string{"click", workload.SessionColumn}
	for _, x := range projected {
		names = append(names, x.Name)
	}
	reports := []*report{{}}
	for _, unit := range []reader.Unit{reader.UnitSession, reader.UnitRow} {
		for _, k := range f.Buffers {
			reports = append(reports, &report{order: reader.Shuffle{Unit: unit, BufferStripes: k, Seed: 1}})
		}
	}
	if err := f.measure(ctx, snap, names, reports); err != nil {
		return err
	}
	out := make([]report, len(reports))
	for i, r := range reports {
		x := r.totals.Summary()
		r.Unit, r.BufferStripes, r.DedupeFactor, r.Sessions = r.order.Unit.String(), r.order.BufferStripes,
			x.DedupeMean, x.SessionsMean
		for _, l := range x.Labels {
			r.LabelMean, r.LabelDeviation = l.Mean, l.Deviation
		}
		out[i] = *r
	}
	show(out)
	return f.WriteResults("shuffle", struct {
		Flags  *flags   `json:"flags"`
		Orders []report `json:"orders"`
	}{f, out})
}

// measure reads every order once without timing, for what its batches are made of, and then in rounds of all orders, in
// turns forwards and backwards.
func (f *flags) measure(ctx context.Context, snap *storage.Snapshot, names []string, reports []*report) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	order := slices.Clone(reports)
	for round := range f.Rounds + 1 {
		for _, r := range order {
			for _, dedup := range []reader.Dedup{reader.DedupKJT, reader.DedupIKJT} {
				p, err := reader.NewPlan(ctx, snap, reader.PlanOptions{
					Features: names, BatchSize: f.BatchSize, Output: reader.OutputTensors, Dedup: dedup,
					Shuffle: r.order,
				})
				if err != nil {
					return err
				}
				if round == 0 {
					if dedup == reader.DedupIKJT {
						_, err = epoch(ctx, snap, p, reader.Options{Info: true, RoundIntegers: true}, uint64(round),
							r.totals.Add)
					}
				} else {
					rates := map[reader.Dedup]*[]float64{reader.DedupKJT: &r.KJT, reader.DedupIKJT: &r.IKJT}[dedup]
					var rate float64
					rate, err = epoch(ctx, snap, p, reader.Options{Workers: f.Threads, RoundIntegers: true},
						uint64(round), func(*reader.Batch) {})
					*rates = append(*rates, rate)
				}
				if err != nil {
					return err
				}
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// epoch reads an epoch and returns samples/s.
func epoch(ctx context.Context, snap *storage.Snapshot, p *reader.Plan, opts reader.Options, epoch uint64,
	each func(*reader.Batch)) (float64, error) {
	start := time.Now()
	s, err := reader.Open(ctx, snap, p, opts)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := s.Seek(reader.Position{Epoch: epoch}); err != nil {
		return 0, err
	}
	rows := 0
	err = versus.Drain(ctx, s, func(b *reader.Batch) error {
		rows += b.Rows
		each(b)
		return nil
	})
	return float64(rows) / time.Since(start).Seconds(), err
}

func show(reports []report) {
	fmt.Println("| unit | K | rows/slot in a batch | sessions/batch | label mean deviates by | samples/s, ikjt | " +
		"samples/s, kjt |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range reports {
		buffer := "-"
		if r.BufferStripes > 0 {
			buffer = fmt.Sprint(r.BufferStripes)
		}
		fmt.Printf("| %s | %s | %.2f | %.0f | %.4f | %.0f k | %.0f k |\n", r.Unit, buffer, r.DedupeFactor, r.Sessions,
			r.LabelDeviation,
			program.Median(r.IKJT)/1000, program.Median(r.KJT)/1000)
	}
}
