// Command overlays measures a scan through stacks of overlays that cover all rows, or half of them here and there,
// beside one without, in alternating rounds. The overlays have a dense feature and an id list of the projection, with
// the table's own values, so that every scan must give the same: it fails where one does not.
package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

type flags struct {
	versus.TableFlags
	Share     float64 `help:"Share of the features." default:"0.1"`
	Stacks    []int   `help:"How many overlays to read through." default:"1,3,10"`
	BatchSize int     `help:"Rows of a batch." default:"4096"`
	Dedup     string  `help:"kjt, ikjt or partial." default:"kjt"`
	Threads   int     `help:"Threads." default:"1"`
	Rounds    int     `help:"Rounds that count; one more runs before." default:"15"`
	program.ProfileFlag
	program.ResultsFlag
}

// A measure is a scan under some overlays: medians of the rounds.
type measure struct {
	Overlays   int     `json:"overlays"`
	Half       bool    `json:"half"` // each covers half of the rows
	PerSecond  float64 `json:"samples_per_second"`
	CPUSeconds float64 `json:"cpu_seconds_per_million_samples"`
	OpenMillis float64 `json:"open_ms"` // the plan and where its rows lie
	Requests   uint64  `json:"requests"`
	Bytes      uint64  `json:"bytes"` // read
	// Slower is the time of a scan over that without overlays, of the same round.
	Slower float64 `json:"time_ratio"`

	names                    []string
	seconds, cpu, open, over []float64
}

type report struct {
	Profile  string    `json:"profile"`
	Rows     uint64    `json:"rows"`
	Features int       `json:"features"`
	Overlaid []string  `json:"overlaid"`
	Dedup    string    `json:"dedup"`
	Threads  int       `json:"threads"`
	Measures []measure `json:"measures"`
}

func main() {
	var f flags
	program.Main(&f, "overlays", "Measure scans through overlays.", f.run)
}

func (f *flags) run(ctx context.Context) (err error) {
	if f.Rounds < 1 || f.Threads < 1 || len(f.Stacks) == 0 || slices.Min(f.Stacks) < 1 {
		return errors.New("rounds, threads and stacks: want at least 1 of each")
	}
	dedup, err := reader.ParseDedup(f.Dedup)
	if err != nil {
		return err
	}
	p, err := f.OpenProjection(ctx, f.Share, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	snap, overlaid, err := makeOverlays(ctx, p.Table, p.Names, slices.Max(f.Stacks))
	if err != nil {
		return err
	}
	opts := reader.PlanOptions{Features: p.Names, BatchSize: f.BatchSize, Output: reader.OutputTensors, Dedup: dedup}
	measures := []measure{{}}
	for _, half := range []bool{false, true} {
		for _, n := range f.Stacks {
			m := measure{Overlays: n, Half: half}
			for i := range n {
				m.names = append(m.names, overlayName(half, i))
			}
			measures = append(measures, m)
		}
	}
	if err := f.measure(ctx, snap, opts, measures); err != nil {
		return err
	}
	rep := report{Profile: f.Profile, Rows: snap.Info().Rows, Features: len(p.Names), Overlaid: overlaid,
		Dedup: f.Dedup, Threads: f.Threads, Measures: measures}
	printReport(&rep)
	return f.WriteResults("overlays", rep)
}

func (f *flags) measure(ctx context.Context, snap *storage.Snapshot, opts reader.PlanOptions,
	measures []measure) (err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	stop, err := f.StartProfile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var want versus.Digest
	for round := range f.Rounds + 1 {
		for i := range measures {
			m := &measures[i]
			var digest *versus.Digest
			if round == 0 {
				digest = new(versus.Digest)
			}
			if err := m.scan(ctx, snap, opts, f.Threads, digest); err != nil {
				return err
			}
			if round > 0 {
				m.over = append(m.over, m.seconds[round]/measures[0].seconds[round])
				continue
			}
			if i == 0 {
				want = *digest
			} else if *digest != want {
				return fmt.Errorf("under overlays %v a scan gives something else than without", m.names)
			}
		}
	}
	for i := range measures {
		m := &measures[i]
		rows := float64(snap.Info().Rows)
		m.PerSecond = rows / program.Median(m.seconds[1:])
		m.CPUSeconds = program.Median(m.cpu[1:]) / rows * 1e6
		m.OpenMillis = program.Median(m.open[1:])
		m.Slower = program.Median(m.over)
	}
	return nil
}

// scan reads all rows, and adds them to digest where it is not nil.
func (m *measure) scan(ctx context.Context, snap *storage.Snapshot, opts reader.PlanOptions, threads int,
	digest *versus.Digest) (err error) {
	opts.Overlays = m.names
	start := time.Now()
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		return err
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		return err
	}
	m.open = append(m.open, time.Since(start).Seconds()*1e3)
	cpu, start := program.CPUSeconds(), time.Now()
	s, err := layout.Open(reader.Options{Workers: threads, Presence: true, Reuse: true, RoundIntegers: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = versus.Drain(ctx, s, func(b *reader.Batch) error {
		if digest == nil {
			return nil
		}
		return digest.Add(b.Tensors, b.Rows)
	})
	if err != nil {
		return err
	}
	m.seconds, m.cpu = append(m.seconds, time.Since(start).Seconds()), append(m.cpu, program.CPUSeconds()-cpu)
	st := s.Stats()
	m.Requests, m.Bytes = st.Requests, st.BytesNeeded+st.BytesUnneeded
	return nil
}

func printReport(r *report) {
	fmt.Printf("%d rows, %d features, %d of them overlaid (%v), %s, %d threads; medians\n\n",
		r.Rows, r.Features, len(r.Overlaid), r.Overlaid, r.Dedup, r.Threads)
	fmt.Printf("%-22s %12s %8s %10s %8s %9s %9s\n", "overlays", "samples/s", "time", "cpu s/M", "open ms", "requests",
		"MB read")
	for _, m := range r.Measures {
		name := "none"
		if m.Overlays > 0 {
			name = fmt.Sprintf("%d over all rows", m.Overlays)
		}
		if m.Half {
			name = fmt.Sprintf("%d over half of them", m.Overlays)
		}
		fmt.Printf("%-22s %12.0f %8.3f %10.3f %8.2f %9d %9.3f\n", name, m.PerSecond, m.Slower, m.CPUSeconds,
			m.OpenMillis, m.Requests, float64(m.Bytes)/1e6)
	}
}
