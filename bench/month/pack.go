package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/usage"
)

// A packing is what the order of packs changes.
type packing struct {
	Job    string  `json:"job"` // the one that runs most often
	Runs   int     `json:"runs"`
	States []state `json:"states"`
}

// A state is the table under one order of its packs.
type state struct {
	Name  string  `json:"name"`
	Bytes uint64  `json:"bytes"` // of the table
	Job   reading `json:"job"`
	// Month is what all runs of the month read under this order, by the reader's own calculation.
	Month reading `json:"month"`
	// Local and Delayed are seconds of the job's epochs, opening included, a round each.
	Local   []float64 `json:"local_seconds"`
	Delayed []float64 `json:"delayed_seconds"`

	dir string
}

// A reading is what reads cost.
type reading struct {
	BytesNeeded   uint64 `json:"bytes_needed"`
	BytesUnneeded uint64 `json:"read_amplification_bytes"`
	Requests      uint64 `json:"requests"`
}

func (r *reading) amplification() float64 { return float64(r.BytesUnneeded) / float64(r.BytesNeeded) }

// pack compacts copies of the table, and compares what the most popular job, and the whole month, read of each.
func (f *flags) pack(ctx context.Context, dir string, list *jobs.List) (*packing, error) {
	top := &list.Jobs[0]
	out := &packing{Job: top.Name, Runs: top.Total(),
		States: []state{{Name: "as ingested: from small to large", dir: dir}}}
	for _, way := range []struct {
		name    string
		popular func(*usage.Summary) compaction.Popularity
	}{
		{"repacked: from small to large", func(*usage.Summary) compaction.Popularity { return nil }},
		{"repacked: by popularity alone", func(s *usage.Summary) compaction.Popularity { return s }},
		{"repacked: by popularity and jobs, as dsi compact does",
			func(s *usage.Summary) compaction.Popularity { return &ingest.Reads{Summary: s} }},
	} {
		program.Log("%s", way.name)
		s := state{Name: way.name, dir: fmt.Sprintf("%s-%d", dir, len(out.States))}
		if err := repacked(ctx, dir, s.dir, list, way.popular); err != nil {
			return nil, err
		}
		out.States = append(out.States, s)
	}
	for i := range out.States {
		if err := f.costOf(ctx, &out.States[i], list); err != nil {
			return nil, err
		}
	}
	return out, f.timeJob(ctx, out, top)
}

// repacked leaves a copy of the store whose packs were written anew.
func repacked(ctx context.Context, from, to string, list *jobs.List,
	popular func(*usage.Summary) compaction.Popularity) (err error) {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	store, err := versus.OpenStore(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	table, err := store.Table(ctx, versus.Table)
	if err != nil {
		return err
	}
	s, err := usage.Load(ctx, table, list.First, list.Day(list.Days))
	if err != nil {
		return err
	}
	opts := compaction.Options{Repack: true, Popularity: popular(s)}
	plan, err := compaction.NewPlan(ctx, table, opts)
	if err != nil {
		return err
	}
	_, err = compaction.Run(ctx, table, plan, opts)
	return err
}

// costOf calculates what the month's reads take of a state.
func (f *flags) costOf(ctx context.Context, s *state, list *jobs.List) (err error) {
	store, err := versus.OpenStore(ctx, s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, snap, err := store.Newest(ctx, versus.Table)
	if err != nil {
		return err
	}
	s.Bytes = snap.Info().Bytes
	for i := range list.Jobs {
		j := &list.Jobs[i]
		l, err := layoutOf(ctx, snap, j.Features, f.BatchSize)
		if err != nil {
			return err
		}
		c, err := l.Cost(ctx, reader.Options{})
		if err != nil {
			return err
		}
		n := uint64(j.Total())
		s.Month.BytesNeeded += n * c.BytesNeeded
		s.Month.BytesUnneeded += n * c.BytesUnneeded
		s.Month.Requests += n * c.Requests
	}
	return nil
}

// timeJob reads a job's features of every state, locally and with latency, in turns, after holding what they give to
// each other.
func (f *flags) timeJob(ctx context.Context, p *packing, j *jobs.Job) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	var features []workload.Feature
	for _, name := range j.Features {
		features = append(features, workload.Feature{Name: name})
	}
	engines := make([][2]*versus.StoreEngine, len(p.States))
	var all []versus.Engine
	for i := range p.States {
		s := &p.States[i]
		local, err := object.NewLocal(s.dir)
		if err != nil {
			return err
		}
		for k, blobs := range []object.Store{local, object.NewDelayed(local, f.Latency)} {
			engines[i][k] = &versus.StoreEngine{Label: s.Name, Blobs: blobs, Features: features, BatchSize: f.BatchSize,
				Bare: true}
		}
		all = append(all, engines[i][0])
	}
	if _, err := versus.Equal(ctx, all...); err != nil {
		return err
	}
	order := make([]int, len(p.States))
	for i := range order {
		order[i] = i
	}
	for round := range f.Rounds + 1 {
		program.Log("round %d of %d", round, f.Rounds)
		for _, i := range order {
			s := &p.States[i]
			for k, seconds := range []*[]float64{&s.Local, &s.Delayed} {
				start := time.Now()
				if err := engines[i][k].Epoch(ctx, f.Threads,
					func(*reader.Tensors, int) error { return nil }); err != nil {
					return err
				}
				if round > 0 {
					*seconds = append(*seconds, time.Since(start).Seconds())
				}
			}
		}
		slices.Reverse(order)
	}
	for i := range p.States {
		for k := range engines[i] {
			st := engines[i][k].Stats
			r := reading{st.BytesNeeded, st.BytesUnneeded, st.Requests}
			if k > 0 && r != p.States[i].Job {
				return fmt.Errorf("%s: %+v read locally, %+v with latency", p.States[i].Name, p.States[i].Job, r)
			}
			p.States[i].Job = r
		}
	}
	return nil
}

func (p *packing) print() {
	fmt.Printf("\n%s, the most popular job, %d runs:\n\n", p.Job, p.Runs)
	fmt.Println("| packs | table MB | needed MB | read amplification MB | of needed | requests | local ms | delayed " +
		"ms | month: read amplification | month: requests |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for i := range p.States {
		s := &p.States[i]
		fmt.Printf("| %s | %.1f | %.2f | %.3f | %.1f %% | %d | %.1f | %.1f | %.1f %% | %d |\n", s.Name,
			float64(s.Bytes)/1e6,
			float64(s.Job.BytesNeeded)/1e6, float64(s.Job.BytesUnneeded)/1e6, 100*s.Job.amplification(), s.Job.Requests,
			1e3*program.Median(s.Local),
			1e3*program.Median(s.Delayed), 100*s.Month.amplification(), s.Month.Requests)
	}
}
