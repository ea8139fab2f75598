// Command take measures rows at random places: a Taker's first take, with nothing looked up, and those that follow,
// beside a scan of all rows, in alternating rounds. It fails when a take gives other rows than the scan.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

type flags struct {
	versus.TableFlags
	Share     float64 `help:"Share of the features." default:"0.1"`
	Take      []int   `help:"Rows to take." default:"1,10,100,1000,10000"`
	Threads   int     `help:"Threads." default:"1"`
	Rounds    int     `help:"Rounds that count; one more runs before." default:"15"`
	KeepStore bool    `help:"Use the store that an earlier run left, if any."`
	program.ProfileFlag
	program.ResultsFlag
}

// A measure is what some rows took: medians of the rounds.
type measure struct {
	Rows          int     `json:"rows"` // 0: all, by a scan
	FirstMillis   float64 `json:"first_ms,omitempty"`
	Millis        float64 `json:"ms"`
	CPUMillis     float64 `json:"cpu_ms"` // of all threads
	Requests      float64 `json:"requests"`
	Bytes         float64 `json:"bytes"`
	millis, first []float64
	cpu           []float64
}

type report struct {
	Profile  string    `json:"profile"`
	Rows     int64     `json:"rows"`
	Features int       `json:"features"`
	Threads  int       `json:"threads"`
	Measures []measure `json:"measures"`
}

func main() {
	var f flags
	program.Main(&f, "take", "Measure taking rows at random places.", f.run)
}

func (f *flags) run(ctx context.Context) (err error) {
	if f.Rounds < 1 || f.Threads < 1 || len(f.Take) == 0 || slices.Min(f.Take) < 1 {
		return errors.New("rounds, threads and take: want at least 1 of each")
	}
	p, err := f.OpenProjection(ctx, f.Share, f.KeepStore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	layout, err := layoutOf(ctx, p)
	if err != nil {
		return err
	}
	rep := report{Profile: f.Profile, Rows: int64(layout.Rows()), Features: len(p.Names), Threads: f.Threads}
	if rep.Measures, err = f.measure(ctx, layout); err != nil {
		return err
	}
	printReport(&rep)
	return f.WriteResults("take", rep)
}

func layoutOf(ctx context.Context, p *versus.Projection) (*reader.Layout, error) {
	snap, err := p.Table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: p.Names})
	if err != nil {
		return nil, err
	}
	return reader.NewLayout(ctx, snap, plan)
}

func (f *flags) measure(ctx context.Context, layout *reader.Layout) (_ []measure, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	opts := reader.Options{Workers: f.Threads}
	all := []*vector.Column{}
	for _, x := range layout.Plan().Features {
		all = append(all, vector.NewColumn(x.Type))
	}
	scan := measure{}
	out := make([]measure, len(f.Take))
	rng := rand.New(rand.NewPCG(f.Seed, 1))
	places := make([][]uint64, len(f.Take))
	for i, n := range f.Take {
		out[i].Rows = n
		for range n {
			places[i] = append(places[i], rng.Uint64N(layout.Rows()))
		}
		slices.Sort(places[i])
	}
	stop, err := f.StartProfile()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for round := range f.Rounds + 1 {
		if err := scan.timed(&scan.millis,
			func() error { return scanAll(ctx, layout, opts, round == 0, all, &scan) }); err != nil {
			return nil, err
		}
		for i := range out {
			if err := out[i].round(ctx, layout, opts, places[i], round == 0, all); err != nil {
				return nil, err
			}
		}
	}
	out = append(out, scan)
	for i := range out {
		m := &out[i]
		if len(m.first) > 0 {
			m.FirstMillis = result.Median(m.first[1:])
			m.cpu = m.cpu[2:]
		}
		m.Millis, m.CPUMillis = result.Median(m.millis[1:]), result.Median(m.cpu[1:])
	}
	return out, nil
}

// round takes the rows with a new Taker, and three times more.
func (m *measure) round(ctx context.Context, layout *reader.Layout, opts reader.Options, rows []uint64, check bool,
	all []*vector.Column) error {
	taker, err := layout.Taker(opts)
	if err != nil {
		return err
	}
	defer taker.Close()
	for turn := range 4 {
		to := &m.millis
		if turn == 0 {
			to = &m.first
		}
		var b *reader.Batch
		if err := m.timed(to, func() (err error) { b, err = taker.Take(ctx, rows); return err }); err != nil {
			return err
		}
		if check {
			for f, c := range b.Columns {
				for i, r := range rows {
					if !vector.RowsEqual(c, i, all[f], int(r)) {
						return fmt.Errorf("take of %d: feature %s, row %d is not what a scan gives", len(rows),
							layout.Plan().Features[f].Name, r)
					}
				}
			}
		}
		b.Release()
	}
	st := taker.Stats()
	m.Requests, m.Bytes = float64(st.Requests)/4, float64(st.BytesNeeded+st.BytesUnneeded)/4
	return nil
}

func (m *measure) timed(to *[]float64, f func() error) error {
	cpu, start := cpuMillis(), time.Now()
	err := f()
	*to = append(*to, result.Milliseconds(time.Since(start)))
	m.cpu = append(m.cpu, cpuMillis()-cpu)
	return err
}

func cpuMillis() float64 { return result.CPUSeconds() * 1e3 }

// scanAll reads all rows, and keeps them when asked to.
func scanAll(ctx context.Context, layout *reader.Layout, opts reader.Options, keep bool, all []*vector.Column,
	m *measure) error {
	s, err := layout.Open(opts)
	if err != nil {
		return err
	}
	defer s.Close()
	for range s.Batches() {
		b, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if keep {
			for f, c := range b.Columns {
				all[f].AppendRows(c, 0, b.Rows)
			}
		}
		b.Release()
	}
	st := s.Stats()
	m.Requests, m.Bytes = float64(st.Requests), float64(st.BytesNeeded+st.BytesUnneeded)
	return nil
}

func printReport(r *report) {
	fmt.Printf("%d rows, %d features, %d threads; medians\n\n", r.Rows, r.Features, r.Threads)
	fmt.Printf("%10s %12s %12s %10s %10s %12s\n", "rows", "first ms", "ms", "cpu ms", "requests", "MB")
	for _, m := range r.Measures {
		name := "all (scan)"
		if m.Rows > 0 {
			name = fmt.Sprint(m.Rows)
		}
		fmt.Printf("%10s %12.2f %12.2f %10.2f %10.0f %12.2f\n", name, m.FirstMillis, m.Millis, m.CPUMillis, m.Requests,
			m.Bytes/1e6)
	}
}
