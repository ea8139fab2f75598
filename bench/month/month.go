package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/usage"
)

// A month is what the runs of a job list counted themselves.
type month struct {
	byJob map[string]*reader.Stats // added up
}

// The caller that simulates time sets a clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// month lets every run of every job read the table, a day after the other, and compares.
func (f *flags) month(ctx context.Context, dir string, list *jobs.List) (_ *summary, err error) {
	store, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	table, snap, err := store.Newest(ctx, versus.Table)
	if err != nil {
		return nil, err
	}
	program.Log("%d runs of %d jobs in %d days", list.Total(), len(list.Jobs), list.Days)
	ran, err := f.readAll(ctx, table, snap, list)
	if err != nil {
		return nil, err
	}
	feet, err := footprintOf(ctx, snap)
	if err != nil {
		return nil, err
	}
	s, err := usage.Load(ctx, table, list.First, list.Day(list.Days))
	if err != nil {
		return nil, err
	}
	var c checker
	c.check(list, feet, ran, s)
	shown, err := report.Build(ctx, store, []string{versus.Table}, report.Options{
		Since: list.First, Now: func() time.Time { return list.Day(list.Days) }, Encodings: f.HTML != "",
	})
	if err != nil {
		return nil, err
	}
	if f.HTML != "" {
		if err := writePage(f.HTML, shown); err != nil {
			return nil, err
		}
	}
	c.checkReport(list, feet, ran, &shown.Tables[0])
	var promised uint64
	if at := slices.IndexFunc(shown.Tables[0].Advice,
		func(a report.Advice) bool { return a.Kind == report.AdviceRepack }); at >= 0 {
		promised = shown.Tables[0].Advice[at].UnneededBytes
	}
	out := &summary{
		Promised: promised, Runs: list.Total(), BytesRead: s.Total.BytesRead(),
		Amplification: float64(s.Total.BytesUnneeded) / float64(s.Total.BytesNeeded),
		FeaturesRead:  len(s.Features), Curve: curve(list, feet), Dsistat: shown.Tables[0].Curve.Marks,
		Records:  s.Records + s.Rollups,
		Compared: c.compared, Mismatches: append([]mismatch{}, c.found...),
	}
	for i := range list.Jobs {
		out.JobFeatures += float64(len(list.Jobs[i].Features)) / float64(len(feet.ids)) / float64(len(list.Jobs))
		out.JobBytes += float64(feet.needed(list.Jobs[i].Features)) / float64(feet.stored) / float64(len(list.Jobs))
	}
	for info, err := range store.Blobs().List(ctx, table.UsagePrefix(), "") {
		if err != nil {
			return nil, err
		}
		out.RecordBytes += info.Size
	}
	return out, nil
}

// writePage writes dsistat's page, with the store under a name that says nothing of this machine.
func writePage(name string, r *report.Report) error {
	const shown = "store"
	for i := range r.Tables {
		for k := range r.Tables[i].Advice {
			a := &r.Tables[i].Advice[k]
			a.Command = strings.ReplaceAll(a.Command, r.Store, shown)
		}
	}
	r.Store = shown
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(page.Write(f, r), f.Close())
}

// readAll lets true readers read everything, as many times as the list says, in an order that has nothing to do with
// the jobs'. Each job records by a Writer of its own, with the simulated time.
func (f *flags) readAll(ctx context.Context, table *storage.Table, snap *storage.Snapshot,
	list *jobs.List) (*month, error) {
	ran := &month{byJob: map[string]*reader.Stats{}}
	layouts := make([]*reader.Layout, len(list.Jobs))
	writers := make([]*usage.Writer, len(list.Jobs))
	at := &clock{}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		ran.byJob[j.Name] = &reader.Stats{}
		var err error
		if layouts[i], err = layoutOf(ctx, snap, j.Features, f.BatchSize); err != nil {
			return nil, err
		}
		// No timer: the simulated days pass faster than any.
		if writers[i], err = usage.NewWriter(table, usage.Options{Now: at.now, User: j.User, Host: "trainer",
			Interval: -1}); err != nil {
			return nil, err
		}
	}
	r := rand.New(rand.NewPCG(f.JobSeed, 41))
	for d := range list.Days {
		var today []int
		for i := range list.Jobs {
			for range list.Jobs[i].Runs[d] {
				today = append(today, i)
			}
		}
		r.Shuffle(len(today), func(a, b int) { today[a], today[b] = today[b], today[a] })
		for k, i := range today {
			j := &list.Jobs[i]
			at.at = list.Day(d).Add(time.Duration(k+1) * 24 * time.Hour / time.Duration(len(today)+2))
			st, err := drain(ctx, layouts[i], reader.Options{Workers: f.Threads, Reuse: true, RoundIntegers: true,
				Usage: reader.UsageOptions{Job: j.Name, Writer: writers[i]}})
			if err != nil {
				return nil, err
			}
			sum := ran.byJob[j.Name]
			sum.Rows += st.Rows
			sum.Batches += st.Batches
			sum.Requests += st.Requests
			sum.BytesNeeded += st.BytesNeeded
			sum.BytesUnneeded += st.BytesUnneeded
		}
		for _, w := range writers {
			if err := w.Flush(ctx); err != nil {
				return nil, err
			}
		}
		if d%10 == 9 {
			program.Log("day %d of %d", d+1, list.Days)
		}
	}
	var errs []error
	for _, w := range writers {
		errs = append(errs, w.Close(ctx))
	}
	return ran, errors.Join(errs...)
}

// layoutOf plans a job's read.
func layoutOf(ctx context.Context, snap *storage.Snapshot, features []string, batch int) (*reader.Layout, error) {
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: features, BatchSize: batch,
		Output: reader.OutputTensors})
	if err != nil {
		return nil, err
	}
	return reader.NewLayout(ctx, snap, plan)
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
