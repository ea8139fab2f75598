// Command filter measures reading a part of the rows: samples/s of the rows that are selected, and bytes read, beside a
// scan of all of them, in alternating rounds. Rows are selected by a filter on what the table is clustered by, by one
// on a time that is spread over it, by a sample of keys, and by a sample list of the same rows. It fails when a part
// has other rows than those of a whole scan.
package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/selection"
)

type flags struct {
	versus.TableFlags
	Share     float64   `help:"Share of the features." default:"0.1"`
	Select    []float64 `help:"Shares of the rows." default:"0.001,0.01,0.1,0.5,1"`
	By        []string  `help:"What the rows are selected by." enum:"session_id,event_time,sample,list" default:"session_id,event_time,sample,list"`
	Dedup     string    `help:"kjt, ikjt or partial." default:"kjt"`
	Threads   int       `help:"Threads." default:"1"`
	Rounds    int       `help:"Rounds that count; one more runs before." default:"9"`
	KeepStore bool      `help:"Use the store that an earlier run left, if any."`
	program.ProfileFlag
	program.ResultsFlag
}

// A measure is what reading a part took: medians of the rounds. Opening is making the layout, with nothing kept of an
// earlier filter.
type measure struct {
	By               string  `json:"by"` // session_id, event_time, sample or list; all: a scan of every row
	Share            float64 `json:"share"`
	Rows             uint64  `json:"rows"`
	OpenMillis       float64 `json:"open_ms"`
	ReadMillis       float64 `json:"read_ms"`
	Millis           float64 `json:"ms"`     // both
	CPUMillis        float64 `json:"cpu_ms"` // of all threads
	SamplesPerSecond float64 `json:"samples_per_second"`
	FilterBytes      uint64  `json:"filter_bytes"` // read to find the rows
	Bytes            uint64  `json:"bytes"`        // read of the projection
	BytesOfAll       float64 `json:"bytes_of_all"` // both, of what a scan of every row reads
	TimeOfAll        float64 `json:"time_of_all"`

	opts                     reader.PlanOptions
	open, read, millis, cpus []float64
}

type report struct {
	Profile  string    `json:"profile"`
	Rows     uint64    `json:"rows"`
	Features int       `json:"features"`
	Threads  int       `json:"threads"`
	Dedup    string    `json:"dedup"`
	Measures []measure `json:"measures"`
}

func main() {
	var f flags
	program.Main(&f, "filter", "Measure reading a part of the rows.", f.run)
}

const keyColumn = "request_id"

func (f *flags) run(ctx context.Context) (err error) {
	if f.Rounds < 1 || f.Threads < 1 || len(f.Select) == 0 || slices.Min(f.Select) <= 0 || slices.Max(f.Select) > 1 {
		return errors.New("rounds and threads: want at least 1 of each; shares of the rows: above 0, at most 1")
	}
	dedup, err := reader.ParseDedup(f.Dedup)
	if err != nil {
		return err
	}
	p, err := f.OpenProjection(ctx, f.Share, f.KeepStore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	b := bench{flags: f, table: p.Table, names: p.Names, dedup: dedup}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	rep := report{Profile: f.Profile, Rows: b.snap.Info().LiveRows(), Features: len(p.Names), Threads: f.Threads,
		Dedup: f.Dedup}
	if rep.Measures, err = b.measure(ctx); err != nil {
		return err
	}
	printReport(&rep)
	return f.WriteResults("filter", rep)
}

type bench struct {
	*flags
	table *storage.Table
	snap  *storage.Snapshot
	names []string
	dedup reader.Dedup
	parts []measure
	all   []*vector.Column // of names, then of session_id and event_time
}

// prepare reads all rows, says which parts there are, and makes their sample lists.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.snap, err = b.table.Latest(ctx); err != nil {
		return err
	}
	keys := []string{workload.SessionColumn, workload.TimeColumn}
	if b.all, err = versus.ReadColumns(ctx, b.snap,
		reader.PlanOptions{Features: append(slices.Clone(b.names), keys...)}); err != nil {
		return err
	}
	b.parts = []measure{{By: "all", Share: 1}}
	for _, share := range b.Select {
		for i, name := range keys {
			values := slices.Sorted(slices.Values(b.all[len(b.names)+i].Ints))
			most := values[max(int(share*float64(len(values)))-1, 0)]
			b.add(measure{By: name, Share: share,
				opts: reader.PlanOptions{Filter: fmt.Sprintf("%s <= %d", name, most)}})
		}
		sample := fmt.Sprintf("sample(%g, key=%s, seed=7)", share, keyColumn)
		list := fmt.Sprintf("share-%g", share)
		program.Log("sample list %s", list)
		if _, err := selection.Create(ctx, b.table, list, &selection.Query{Where: sample}, true,
			selection.Options{}); err != nil {
			return err
		}
		b.add(measure{By: "sample", Share: share, opts: reader.PlanOptions{Filter: sample}})
		b.add(measure{By: "list", Share: share, opts: reader.PlanOptions{SampleList: list}})
	}
	b.snap, err = b.table.Latest(ctx)
	return err
}

// add adds a part, if it is asked for.
func (b *bench) add(m measure) {
	if slices.Contains(b.By, m.By) {
		b.parts = append(b.parts, m)
	}
}

// check compares the rows of a part with those of all that it selects.
func (b *bench) check(ctx context.Context, m *measure) error {
	m.opts.Features = append(slices.Clone(b.names), workload.SessionColumn, workload.TimeColumn)
	got, err := versus.ReadColumns(ctx, b.snap, m.opts)
	if err != nil {
		return err
	}
	in, err := b.selected(ctx, m)
	if err != nil {
		return err
	}
	at := 0
	for row := range b.all[0].Rows {
		if !in(row) {
			continue
		}
		for i, c := range got {
			if at >= c.Rows || !vector.RowsEqual(c, at, b.all[i], row) {
				return fmt.Errorf("%s, %g: row %d is not row %d of all", m.By, m.Share, at, row)
			}
		}
		at++
	}
	if at != got[0].Rows {
		return fmt.Errorf("%s, %g: %d rows: want %d", m.By, m.Share, got[0].Rows, at)
	}
	m.Rows = uint64(at)
	return nil
}

// selected says which rows of all a part has, without a filter: keys are compared, and of samples the rows asked for
// one by one.
func (b *bench) selected(ctx context.Context, m *measure) (func(row int) bool, error) {
	if m.By == "all" {
		return func(int) bool { return true }, nil
	}
	if i := slices.Index([]string{workload.SessionColumn, workload.TimeColumn}, m.By); i >= 0 {
		values := b.all[len(b.names)+i].Ints
		most := slices.Sorted(slices.Values(values))[max(int(m.Share*float64(len(values)))-1, 0)]
		return func(row int) bool { return values[row] <= most }, nil
	}
	keys, err := versus.ReadColumns(ctx, b.snap, reader.PlanOptions{Features: []string{keyColumn}})
	if err != nil {
		return nil, err
	}
	return func(row int) bool { return sampled(keys[0], row, 7, m.Share) }, nil
}

func (b *bench) measure(ctx context.Context) (_ []measure, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(b.Threads))
	for i := range b.parts {
		if err := b.check(ctx, &b.parts[i]); err != nil {
			return nil, err
		}
		b.parts[i].opts.Features = b.names
		b.parts[i].opts.Output, b.parts[i].opts.Dedup = reader.OutputTensors, b.dedup
	}
	stop, err := b.StartProfile()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for range b.Rounds + 1 {
		for i := range b.parts {
			m := &b.parts[i]
			var err error
			pprof.Do(ctx, pprof.Labels("part", fmt.Sprintf("%s-%g", m.By, m.Share)),
				func(ctx context.Context) { err = b.round(ctx, m) })
			if err != nil {
				return nil, err
			}
		}
	}
	all := &b.parts[0]
	for i := range b.parts {
		m := &b.parts[i]
		m.OpenMillis, m.ReadMillis = program.Median(m.open[1:]), program.Median(m.read[1:])
		m.Millis, m.CPUMillis = program.Median(m.millis[1:]), program.Median(m.cpus[1:])
		m.SamplesPerSecond = float64(m.Rows) / m.Millis * 1e3
		m.BytesOfAll = float64(m.Bytes+m.FilterBytes) / float64(all.Bytes)
		m.TimeOfAll = m.Millis / all.Millis
	}
	return b.parts, nil
}

// round makes the plan of a part and reads it, with nothing known of it from before.
func (b *bench) round(ctx context.Context, m *measure) error {
	opts := reader.Options{Workers: b.Threads, RoundIntegers: true}
	runtime.GC()
	cpu, start := program.CPUSeconds(), time.Now()
	plan, err := reader.NewPlan(ctx, b.snap, m.opts)
	if err != nil {
		return err
	}
	l, err := reader.NewLayoutWith(ctx, b.snap, plan, reader.LayoutOptions{Read: opts,
		Selections: reader.NewSelections(0)})
	if err != nil {
		return err
	}
	opened := time.Now()
	s, err := l.Open(opts)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := versus.Drain(ctx, s, nil); err != nil {
		return err
	}
	end := time.Now()
	m.open, m.read, m.millis = append(m.open, program.Milliseconds(opened.Sub(start))),
		append(m.read, program.Milliseconds(end.Sub(opened))), append(m.millis, program.Milliseconds(end.Sub(start)))
	m.cpus = append(m.cpus, (program.CPUSeconds()-cpu)*1e3)
	st := s.Stats()
	m.Bytes = st.BytesNeeded + st.BytesUnneeded
	if p := l.Pruning(); p != nil {
		m.FilterBytes = p.BytesNeeded + p.BytesUnneeded
	}
	return nil
}

func printReport(r *report) {
	fmt.Printf("%d rows, %d features, %d threads, %s; medians\n\n", r.Rows, r.Features, r.Threads, r.Dedup)
	fmt.Printf("%-12s %8s %9s %9s %9s %9s %12s %10s %10s %9s\n", "by", "share", "rows", "open ms", "read ms", "cpu ms",
		"samples/s", "MB", "bytes/all", "time/all")
	for _, m := range r.Measures {
		fmt.Printf("%-12s %7.1f%% %9d %9.2f %9.2f %9.2f %12.0f %10.2f %9.1f%% %8.1f%%\n", m.By, 100*m.Share, m.Rows,
			m.OpenMillis, m.ReadMillis, m.CPUMillis,
			m.SamplesPerSecond, float64(m.Bytes+m.FilterBytes)/1e6, 100*m.BytesOfAll, 100*m.TimeOfAll)
	}
}
