// Command ablation switches on, one after the other, what a published study of the storage of training tables did to
// its own: features in streams of their own, coalesced reads, features in the order of their popularity, larger
// stripes. It sets the throughput of each step, relative to maps of all features, beside the published one: on a
// simulated disk, and from a store whose every request takes some milliseconds and whose bandwidth is limited.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/usage"
	"github.com/dsistore/dsistore/writer"
)

type flags struct {
	versus.TableFlags
	Small     int             `help:"Rows of a small stripe." default:"1024"`
	Large     int             `help:"Rows of a large stripe." default:"8192"`
	Gap       int64           `help:"Coalesced reads: bytes of a gap that is read rather than be two requests, and of a request." default:"1310720"`
	Seek      time.Duration   `help:"What the simulated disk takes to find a request's first byte." default:"10ms"`
	Bandwidth int64           `help:"Bytes a second of the simulated disk, and of the slow store." default:"150000000"`
	Latency   []time.Duration `help:"What every request of the slow store takes longer." default:"1ms,10ms,50ms"`
	Jobs      int             `help:"Training jobs, whose reads make features popular." default:"40"`
	BatchSize int             `help:"Rows of a batch." default:"4096"`
	Threads   int             `help:"Workers that decode." default:"2"`
	Rounds    int             `help:"Rounds that count, of what is timed." default:"3"`
	Page      string          `help:"Page whose part between <!-- ablation --> and <!-- /ablation --> becomes the table; empty: none." default:"docs/internals/ablation.md"`
	program.ResultsFlag
}

// A step is one line of the comparison. Each has all that those before it have.
type step struct {
	Name      string  `json:"name"`
	Published float64 `json:"published_throughput"` // relative to the first step; 0: the study has none

	// Over all runs of all jobs, calculated:
	BytesPerRow float64 `json:"bytes_per_row"` // read
	Needed      float64 `json:"needed_bytes_per_row"`
	Requests    float64 `json:"requests_per_1000_rows"`
	DiskSeconds float64 `json:"disk_seconds"`
	Disk        float64 `json:"disk_throughput"` // relative to the first step

	Slow []slow `json:"slow_store"` // of the job that runs most often, measured

	table   *table
	options reader.Options
}

// A slow is what a store with latency gives.
type slow struct {
	Latency    float64   `json:"latency_ms"`
	Bytes      uint64    `json:"bytes"` // with the reader's own gap, where the step sets none: that of such a store
	Requests   uint64    `json:"requests"`
	Seconds    []float64 `json:"seconds"`
	RowsPerS   float64   `json:"median_rows_per_second"`
	Throughput float64   `json:"throughput"` // relative to the first step
}

type result struct {
	Profile string  `json:"profile"`
	Rows    int64   `json:"rows"`
	Runs    int     `json:"runs"`
	Small   int     `json:"small_stripe_rows"`
	Large   int     `json:"large_stripe_rows"`
	Seek    float64 `json:"seek_ms"`
	Rate    int64   `json:"bytes_per_second"`
	Steps   []*step `json:"steps"`
}

func main() {
	var f flags
	program.Main(&f, "ablation", "What each technique of a published study gives.", func(ctx context.Context) error {
		r, err := f.run(ctx)
		if err != nil {
			return err
		}
		text := r.page()
		fmt.Print(text)
		if f.Page != "" {
			if err := program.ReplacePart(f.Page, "ablation", text); err != nil {
				return err
			}
		}
		return f.WriteResults("ablation", r)
	})
}

func (f *flags) run(ctx context.Context) (*result, error) {
	if f.Rounds < 1 || f.Jobs < 1 || f.Bandwidth < 1 || f.Small < 1 || f.Large < f.Small {
		return nil, errors.New("rounds, jobs, bandwidth and small: want at least 1, and large at least small")
	}
	truth, err := workload.NewTruth(f.Options(workload.Interleaved))
	if err != nil {
		return nil, err
	}
	list := jobs.New(truth, time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), jobs.Shape{
		Jobs: f.Jobs, Days: 30, Runs: 60, RunZipf: 0.8, MinShare: 0.09, MaxShare: 0.11, FeatureZipf: 0.9,
		SparseFavour: 3, Seed: 1,
	}, nil)
	t, err := f.tables(ctx, truth, list)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := f.check(ctx, t, truth, list.Jobs[0].Features); err != nil {
		return nil, err
	}
	alone := reader.Options{GapBytes: -1}
	coalesced := reader.Options{GapBytes: f.Gap, RequestBytes: f.Gap}
	r := &result{Profile: f.Profile, Rows: truth.Rows(), Runs: list.Total(), Small: f.Small, Large: f.Large,
		Seek: program.Milliseconds(f.Seek), Rate: f.Bandwidth, Steps: []*step{
			{Name: "maps of all features", Published: 1, table: t.maps},
			{Name: "+ feature flattening", Published: 0.03, table: t.flat, options: alone},
			{Name: "+ coalesced reads", Published: 0.99, table: t.flat, options: coalesced},
			{Name: "+ feature reordering", Published: 1.84, table: t.popular, options: coalesced},
			{Name: "+ large stripes", Published: 2.41, table: t.large, options: coalesced},
			{Name: "dsistore as it is", table: t.whole},
		}}
	for _, s := range r.Steps {
		if err := f.cost(ctx, s, list); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if err := f.time(ctx, r, list.Jobs[0].Features); err != nil {
		return nil, err
	}
	r.relate()
	return r, nil
}

// A table is one layout of the same rows.
type table struct {
	dir  string
	maps bool // it has maps in place of the features
}

// engine reads features of the table, or all of its maps.
func (t *table) engine(features []string, batch int) *versus.StoreEngine {
	if t.maps {
		features = mapNames
	}
	e := &versus.StoreEngine{Label: filepath.Base(t.dir), Dir: t.dir, BatchSize: batch, Bare: true}
	for _, name := range features {
		e.Features = append(e.Features, workload.Feature{Name: name})
	}
	return e
}

// columns reads features of the table, or all of its maps, as columns.
func (f *flags) columns(t *table, features []string) *versus.StoreEngine {
	e := t.engine(features, f.BatchSize)
	e.Output = reader.OutputColumns
	return e
}

type tables struct {
	maps, flat, popular, large, whole *table
	root                              string
}

func (t *tables) close() { os.RemoveAll(t.root) }

// tables makes all of them anew. Within a segment the stripes of a feature lie together, which is more than the layout
// of the study does; so a stripe of it is a segment here.
func (f *flags) tables(ctx context.Context, truth *workload.Truth, list *jobs.List) (_ *tables, err error) {
	dump, err := f.Dump(ctx, workload.Interleaved)
	if err != nil {
		return nil, err
	}
	t := &tables{root: filepath.Join(f.Dir, "tables")}
	if err := os.RemoveAll(t.root); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	stripes := func(rows int) writer.Options { // a segment ends with the stripe that makes it as large as asked
		return writer.Options{Dedup: writer.DedupOff, StripeRows: rows, SegmentRows: max(rows/2, 1)}
	}
	add := func(name string, o ingest.Options) (*table, error) {
		t := &table{dir: filepath.Join(t.root, name)}
		return t, ingestInto(ctx, t.dir, dump.Paths(), o)
	}
	if t.flat, err = add("flat", ingest.Options{Options: stripes(f.Small), Popularity: anyOrder{}}); err != nil {
		return nil, err
	}
	reads, err := f.record(ctx, t.flat, list)
	if err != nil {
		return nil, err
	}
	if t.popular, err = add("popular", ingest.Options{Options: stripes(f.Small), Popularity: reads}); err != nil {
		return nil, err
	}
	if t.large, err = add("large", ingest.Options{Options: stripes(f.Large), Popularity: reads}); err != nil {
		return nil, err
	}
	if t.whole, err = add("dsistore", ingest.Options{SessionKey: workload.SessionColumn,
		TimeKey: workload.TimeColumn, Popularity: reads}); err != nil {
		return nil, err
	}
	t.maps = &table{dir: filepath.Join(t.root, "maps"), maps: true}
	m, err := f.openMaps(ctx, t.flat, truth)
	if err != nil {
		return nil, err
	}
	records := source.NewRecords(m, false)
	defer records.Close()
	return t, ingestInto(ctx, t.maps.dir, []string{"-"}, ingest.Options{Records: records, Options: stripes(f.Small)})
}

// anyOrder orders packs by nothing that tells on reads. By size, as they are where nobody says otherwise, lies between
// that and popularity.
type anyOrder struct{}

func (anyOrder) Popularity(features []catalog.Feature) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]float64, len(features))
	for i, rank := range r.Perm(len(out)) {
		out[i] = float64(rank + 1)
	}
	return out
}

func ingestInto(ctx context.Context, dir string, paths []string, o ingest.Options) error {
	program.Log("ingest: %s", dir)
	s, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return err
	}
	_, err = ingest.Run(ctx, s, versus.Table, paths, o)
	return errors.Join(err, s.Close())
}

// check fails unless all tables have the same values of some features.
func (f *flags) check(ctx context.Context, t *tables, truth *workload.Truth, features []string) error {
	program.Log("comparing the tables")
	var engines []versus.Engine
	for _, t := range []*table{t.flat, t.popular, t.large, t.whole} {
		e := t.engine(features, f.BatchSize)
		e.Bare = false
		engines = append(engines, e)
	}
	if _, err := versus.Equal(ctx, engines...); err != nil {
		return err
	}
	return f.checkMaps(ctx, t, truth, features)
}

// record lets all runs of all jobs read a batch, of about one stripe, and returns what the records say of them. All
// tables of the dump have the same feature ids.
func (f *flags) record(ctx context.Context, t *table, list *jobs.List) (_ writer.Popularity, err error) {
	s, err := versus.OpenStore(ctx, t.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	of, _, err := s.Newest(ctx, versus.Table)
	if err != nil {
		return nil, err
	}
	w, err := usage.NewWriter(of, usage.Options{Now: func() time.Time { return list.First }, Interval: -1})
	if err != nil {
		return nil, err
	}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		layout, done, err := t.engine(j.Features, f.Small).Layout(ctx)
		if err != nil {
			return nil, err
		}
		for range j.Total() {
			if _, err = drain(ctx, layout, reader.Options{Workers: f.Threads, Reuse: true, RoundIntegers: true,
				EndBatch: 1, Usage: reader.UsageOptions{Job: j.Name, Writer: w}}); err != nil {
				break
			}
		}
		if err := errors.Join(err, done()); err != nil {
			return nil, err
		}
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	found, err := usage.Load(ctx, of, list.First, list.Day(list.Days))
	if err != nil {
		return nil, err
	}
	if got := int(found.Total.Readers); got != list.Total() {
		return nil, fmt.Errorf("%d reads on record, want %d", got, list.Total())
	}
	return &ingest.Reads{Summary: found}, nil
}

// drain reads a layout's rows once, and returns what the scanner counted.
func drain(ctx context.Context, l *reader.Layout, opts reader.Options) (reader.Stats, error) {
	s, err := l.Open(opts)
	if err != nil {
		return reader.Stats{}, err
	}
	err = versus.Drain(ctx, s, nil)
	return s.Stats(), errors.Join(err, s.Close())
}

// cost calculates what all runs read of a table, and how long a disk takes that has one arm.
func (f *flags) cost(ctx context.Context, s *step, list *jobs.List) error {
	var rows, bytes, needed, requests float64
	for i := range list.Jobs {
		j := &list.Jobs[i]
		layout, done, err := s.table.engine(j.Features, f.BatchSize).Layout(ctx)
		if err != nil {
			return err
		}
		c, err := layout.Cost(ctx, s.options)
		if err := errors.Join(err, done()); err != nil {
			return err
		}
		n := float64(j.Total())
		rows += n * float64(c.Rows)
		needed += n * float64(c.BytesNeeded)
		bytes += n * float64(c.BytesNeeded+c.BytesUnneeded)
		requests += n * float64(c.Requests)
	}
	s.BytesPerRow, s.Needed, s.Requests = bytes/rows, needed/rows, 1000*requests/rows
	s.DiskSeconds = requests*f.Seek.Seconds() + bytes/float64(f.Bandwidth)
	return nil
}

// time reads the features of a job of every step from the slow stores, in turns. Opening, planning and the segments'
// indexes are no part of it: a stripe has none in the layout of the study.
func (f *flags) time(ctx context.Context, r *result, features []string) (err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	for k, latency := range f.Latency {
		program.Log("latency %v", latency)
		layouts := make([]*reader.Layout, len(r.Steps))
		for i, s := range r.Steps {
			local, err := object.NewLocal(s.table.dir)
			if err != nil {
				return err
			}
			e := s.table.engine(features, f.BatchSize)
			e.Blobs = object.NewDelayed(object.NewThrottled(local, f.Bandwidth), latency)
			layout, done, err := e.Layout(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			layouts[i] = layout
			c, err := layout.Cost(ctx, s.options)
			if err != nil {
				return err
			}
			s.Slow = append(s.Slow, slow{Latency: program.Milliseconds(latency), Bytes: c.BytesNeeded + c.BytesUnneeded,
				Requests: c.Requests})
		}
		order := make([]int, len(r.Steps))
		for i := range order {
			order[i] = i
		}
		for round := range f.Rounds + 1 { // the first one reads the indexes of segments
			for _, i := range order {
				s := r.Steps[i]
				opts := s.options
				opts.Workers, opts.Reuse, opts.RoundIntegers = f.Threads, true, true
				begin := time.Now()
				st, err := drain(ctx, layouts[i], opts)
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				got := st.BytesNeeded + st.BytesUnneeded
				want := &s.Slow[k]
				if got != want.Bytes || st.Requests != want.Requests || st.Rows != uint64(r.Rows) {
					return fmt.Errorf("%s: read %d rows, %d bytes by %d requests; want %d, %d and %d", s.Name, st.Rows,
						got, st.Requests, r.Rows, want.Bytes, want.Requests)
				}
				if round > 0 {
					want.Seconds = append(want.Seconds, time.Since(begin).Seconds())
				}
			}
			slices.Reverse(order)
		}
	}
	return nil
}

// relate sets the throughputs relative to the first step's.
func (r *result) relate() {
	first := r.Steps[0]
	for _, s := range r.Steps {
		s.Disk = first.DiskSeconds / s.DiskSeconds
		for k := range s.Slow {
			s.Slow[k].RowsPerS = float64(r.Rows) / program.Median(s.Slow[k].Seconds)
			s.Slow[k].Throughput = s.Slow[k].RowsPerS / first.Slow[k].RowsPerS
		}
	}
}

func (r *result) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, %d rows, %d runs of jobs; stripes of %d and %d rows; %g ms per request of the disk, "+
		"%d MB/s:\n\n", r.Profile, r.Rows, r.Runs, r.Small, r.Large, r.Seek, r.Rate/1e6)
	b.WriteString("| | B/row read | needed | requests per 1,000 rows | disk | published |")
	for _, s := range r.Steps[0].Slow {
		fmt.Fprintf(&b, " %g ms |", s.Latency)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 6+len(r.Steps[0].Slow)) + "\n")
	for _, s := range r.Steps {
		published := ""
		if s.Published > 0 {
			published = fmt.Sprintf("%.2f", s.Published)
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.2f | %.2f | %s |", s.Name, s.BytesPerRow, s.Needed, s.Requests, s.Disk,
			published)
		for _, w := range s.Slow {
			fmt.Fprintf(&b, " %.2f |", w.Throughput)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n![Throughput of each step, relative to maps](../img/ablation.svg)\n")
	return b.String()
}
