// Command dedupsweep measures how bytes per row, the dedupe factor and the reading rate move with the samples of a
// session and with the share of values that stay, and writes a table into the documentation.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Rows      int64     `help:"Rows of each table." default:"16000"`
	Sparse    int       `help:"Sparse features." default:"30"`
	Dense     int       `help:"Dense features." default:"50"`
	Samples   []float64 `help:"Samples a session." default:"1,4,16.5,64"`
	Unchanged []float64 `help:"Shares of user values that stay from one sample of a session to the next." default:"0,0.5,0.8,0.95"`
	Rounds    int       `help:"How often each table is read, both ways in turn; the median counts." default:"5"`
	BatchSize int       `help:"Rows of a batch." default:"4096"`
	Dir       string    `help:"Where the data lies." default:"out/dedupsweep"`
	Page      string    `help:"Page whose part between <!-- sweep --> and <!-- /sweep --> becomes the table; empty: none." default:"docs/internals/duplicates.md"`
	program.ResultsFlag
}

// A point is what one table gave.
type point struct {
	Samples   float64 `json:"samples_per_session"` // asked for
	Unchanged float64 `json:"unchanged"`
	Measured  float64 `json:"samples_per_session_measured"`
	// Formula is RecD's factor; SlotFactor and ValueFactor are what was stored, of the user features that the formula
	// speaks of: rows over slots, and values over rows by values stored, partial duplicates included.
	Formula     float64 `json:"formula"`
	SlotFactor  float64 `json:"factor_by_slots"`
	ValueFactor float64 `json:"factor_by_values"`
	BytesPerRow float64 `json:"bytes_per_row"`
	OffPerRow   float64 `json:"bytes_per_row_without_dedup"`
	// Rates are samples per second into KJT and IKJT, of all features, one thread.
	KJTRate  float64 `json:"kjt_samples_per_second"`
	IKJTRate float64 `json:"ikjt_samples_per_second"`
}

func main() {
	var f flags
	program.Main(&f, "dedupsweep", "Duplicates by samples per session and share of unchanged values.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || len(f.Samples) == 0 || len(f.Unchanged) == 0 {
		return errors.New("rounds, samples and unchanged: want one at least")
	}
	var points []point
	for _, unchanged := range f.Unchanged {
		for _, samples := range f.Samples {
			p, err := f.point(ctx, samples, unchanged)
			if err != nil {
				return fmt.Errorf("%v samples/session, %v unchanged: %w", samples, unchanged, err)
			}
			fmt.Fprintf(os.Stderr, "%+v\n", p)
			points = append(points, p)
		}
	}
	text := f.table(points)
	fmt.Print(text)
	if f.Page != "" {
		if err := program.ReplacePart(f.Page, "sweep", text); err != nil {
			return err
		}
	}
	return f.WriteResults("dedupsweep", points)
}

// formula is RecD's dedupe factor of a feature: of the S samples of a session the first brings a value, and each other
// one does with probability 1 - d.
func formula(samples, unchanged float64) float64 {
	return samples / (1 + (samples-1)*(1-unchanged))
}

func (f *flags) point(ctx context.Context, samples, unchanged float64) (point, error) {
	o := workload.Options{Rows: f.Rows, Sparse: f.Sparse, Dense: f.Dense, SamplesPerSession: samples,
		Changed: 1 - unchanged}
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, "dump"), o)
	if err != nil {
		return point{}, err
	}
	p := point{Samples: samples, Unchanged: unchanged, Measured: dump.Stats.SamplesPerSession}
	p.Formula = formula(p.Measured, unchanged)
	store := filepath.Join(f.Dir, "store")
	off, err := versus.Ingest(ctx, store, dump,
		ingest.Options{Options: writer.Options{Workers: 1, Dedup: writer.DedupOff}})
	if err != nil {
		return p, err
	}
	p.OffPerRow = float64(off.BytesOut) / float64(off.Rows)
	on, err := versus.Ingest(ctx, store, dump, ingest.Options{Options: writer.Options{Workers: 1}})
	if err != nil {
		return p, err
	}
	p.BytesPerRow = float64(on.BytesOut) / float64(on.Rows)
	s, err := versus.OpenStore(ctx, store)
	if err != nil {
		return p, err
	}
	err = f.read(ctx, s, dump, &p)
	return p, errors.Join(err, s.Close())
}

// read sets the factors and rates.
func (f *flags) read(ctx context.Context, s *storage.Store, dump *versus.Dump, p *point) error {
	_, snap, err := s.Newest(ctx, versus.Table)
	if err != nil {
		return err
	}
	all, err := snap.FeatureTotals(ctx)
	if err != nil {
		return err
	}
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return err
	}
	var rows, slots, values, stored uint64
	for _, t := range all {
		i, err := truth.Feature(t.Name)
		if err != nil {
			return err
		}
		switch truth.Features()[i].Family {
		case workload.UserHistory, workload.UserWeighted, workload.UserList, workload.UserDense:
			rows += t.Rows
			slots += t.Slots
			values += t.Elements
			stored += t.StoredElements
		}
	}
	p.SlotFactor = float64(rows) / float64(max(slots, 1))
	p.ValueFactor = float64(values) / float64(max(stored, 1))
	times := map[reader.Dedup][]float64{}
	for range f.Rounds {
		for _, d := range []reader.Dedup{reader.DedupKJT, reader.DedupIKJT} {
			start := time.Now()
			if err := f.epoch(ctx, snap, d); err != nil {
				return err
			}
			times[d] = append(times[d], time.Since(start).Seconds())
		}
	}
	rate := func(d reader.Dedup) float64 {
		slices.Sort(times[d])
		return float64(dump.Rows) / times[d][len(times[d])/2]
	}
	p.KJTRate, p.IKJTRate = rate(reader.DedupKJT), rate(reader.DedupIKJT)
	return nil
}

// epoch reads every feature of every row once.
func (f *flags) epoch(ctx context.Context, snap *storage.Snapshot, d reader.Dedup) error {
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"@all"}, BatchSize: f.BatchSize,
		Output: reader.OutputTensors, Dedup: d})
	if err != nil {
		return err
	}
	sc, err := reader.Open(ctx, snap, plan, reader.Options{Workers: 1, Presence: true, RoundIntegers: true})
	if err != nil {
		return err
	}
	return errors.Join(versus.Drain(ctx, sc, nil), sc.Close())
}

func (f *flags) table(points []point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, %d sparse and %d dense features, interleaved input; samples/s on one thread, "+
		"all features, batches of %d.\n\n",
		f.Rows, f.Sparse, f.Dense, f.BatchSize)
	b.WriteString("| unchanged | samples/session | RecD's formula | rows/slot | values over those stored | B/row " +
		"| without dedup | samples/s, kjt | samples/s, ikjt |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range points {
		fmt.Fprintf(&b, "| %.2f | %.1f | %.2f | %.2f | %.2f | %.1f | %.1f | %.0f | %.0f |\n",
			p.Unchanged, p.Measured, p.Formula, p.SlotFactor, p.ValueFactor, p.BytesPerRow, p.OffPerRow, p.KJTRate,
			p.IKJTRate)
	}
	return b.String()
}
