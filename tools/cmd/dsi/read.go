package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// selectFlags select which rows are read.
type selectFlags struct {
	Partition  string   `placeholder:"EXPR" help:"Read the partitions that this selects, as in ds >= '2026-11-01' AND hr = 3. Default: all."`
	Where      string   `placeholder:"EXPR" help:"Read the rows for which this is true, as in click = 1 AND (len(hist) > 3 OR sample(0.1, key=request_id, seed=7)). It sees values before --transform. Default: all."`
	SampleList string   `placeholder:"NAME" help:"Read the rows in this list: dsi samples. Default: all."`
	Overlay    []string `placeholder:"NAME" help:"Read this overlay over the table. May be repeated, the lowest first; they lie over those of a branch."`
	atFlag
}

// selection returns what the flags say of a plan.
func (s selectFlags) selection() reader.PlanOptions {
	return reader.PlanOptions{Partition: s.Partition, Filter: s.Where, SampleList: s.SampleList, Overlays: s.Overlay}
}

// readFlags select what the reading commands read.
type readFlags struct {
	selectFlags
	Downsample string `placeholder:"EXPR" help:"Leave rows of a class out but for a sample, as in click = 0 AND sample(0.1, key=request_id, seed=7): a tenth of those with click = 0 stays. The label sample_weight is 10 for them, 1 for all others."`
	usageFlags
	NoLease   bool     `help:"Take no lease on what is read, as where the store may not be written to: gc may take it while a branch, or for more than 5 minutes anything, is read."`
	Transform []string `sep:"none" placeholder:"FEATURES=CHAIN" help:"Transform values, as in 'user_*=first(20)|mod(1000003)': first, mod, hash, sigrid_hash, clamp, log1p, bucketize, cast, fill, list, and scores.clamp and so on. May be repeated; a name goes before globs."`
}

// planOptions returns what the flags say of a plan.
func (r readFlags) planOptions(features []string) (reader.PlanOptions, error) {
	out := r.selection()
	out.Features, out.Downsample = features, r.Downsample
	for _, text := range r.Transform {
		rule, err := transform.ParseRule(text)
		if err != nil {
			return out, usagef("--transform: %w", err)
		}
		out.Transforms = append(out.Transforms, rule)
	}
	return out, nil
}

// usageFlags say how it is recorded what a command reads.
type usageFlags struct {
	Job     string `placeholder:"NAME" help:"What this is for, in the usage records. Default: DSISTORE_JOB, else the command."`
	NoUsage bool   `help:"Write no usage record. So does DSISTORE_USAGE=off."`
}

// usage returns what the flags say of usage records; command is the job of those who do not say.
func (f usageFlags) usage(command string) reader.UsageOptions {
	job := f.Job
	if job == "" && os.Getenv(usage.JobVariable) == "" {
		job = "dsi " + command
	}
	return reader.UsageOptions{Off: f.NoUsage, Job: job, Program: "dsi"}
}

// lease returns what the flags say of leases.
func (r readFlags) lease() reader.LeaseOptions { return reader.LeaseOptions{Off: r.NoLease} }

// openTable opens the store and finds what is to be read of the table, or of its branch. Close the store.
func (s selectFlags) openTable(ctx context.Context, t tableArgs) (*storage.Store, *storage.View, error) {
	store, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	view, err := s.view(ctx, store, t.Table)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, view, nil
}

// each gives every batch that is left to f, which may return io.EOF to have no more, and releases it.
func each(ctx context.Context, s *reader.Scanner, f func(*reader.Batch) error) error {
	for {
		b, err := s.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = f(b)
		b.Release()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
