package read

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object/diskcache"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// cachedFlags are those of commands that read rows, perhaps through the cache on the local disk.
type cachedFlags struct {
	CacheDir  *string `name:"cache-dir" placeholder:"DIR" help:"Directory of the local cache for object stores. Default: DSISTORE_CACHE; without both, and with '', there is no cache."`
	CacheSize string  `name:"cache-size" placeholder:"SIZE" help:"Size of a new cache, as in 200GiB. Default: DSISTORE_CACHE_SIZE."`
}

// cached returns a store with the cache that the flags or the environment name.
func (c cachedFlags) cached(s app.StoreArg) app.StoreArg {
	s.Cache = map[string]string{}
	if c.CacheDir != nil {
		s.Cache[diskcache.DirOption] = *c.CacheDir
	}
	if c.CacheSize != "" {
		s.Cache[diskcache.SizeOption] = c.CacheSize
	}
	return s
}

// tableArgs are the arguments of commands that read rows of a table.
type tableArgs struct {
	app.TableArgs
	cachedFlags
}

// cached returns the arguments with the cache that the flags or the environment name.
func (t tableArgs) cached() app.TableArgs {
	out := t.TableArgs
	out.StoreArg = t.cachedFlags.cached(out.StoreArg)
	return out
}

// selectFlags select which rows are read.
type selectFlags struct {
	Partition  string   `placeholder:"EXPR" help:"Read the partitions that this selects, as in ds >= '2026-11-01' AND hr = 3. Default: all."`
	Where      string   `placeholder:"EXPR" help:"Read the rows for which this is true, as in 'click = 1 AND (len(hist) > 3 OR sample(0.1, key=request_id, seed=7))'. It sees values before --transform. Default: all."`
	SampleList string   `placeholder:"NAME" help:"Read only the rows in this sample list (dsi samples). Default: all."`
	Overlay    []string `placeholder:"NAME" help:"Apply this overlay when reading. May be repeated, lowest first; it takes precedence over the overlays of a branch."`
	app.AtFlag
}

// OverlayFlag returns the flag that reads an overlay.
func (s selectFlags) OverlayFlag() string { return "--overlay" }

// planOptions returns opts with what the flags say.
func (s selectFlags) planOptions(opts reader.PlanOptions) reader.PlanOptions {
	opts.Partition, opts.Filter, opts.SampleList, opts.Overlays = s.Partition, s.Where, s.SampleList, s.Overlay
	return opts
}

// readFlags select what the reading commands read.
type readFlags struct {
	selectFlags
	Downsample string `placeholder:"EXPR" help:"Keep only a sample of the rows that match a condition, as in 'click = 0 AND sample(0.1, key=request_id, seed=7)': a tenth of the rows with click = 0 stays. The label sample_weight is 10 for them, 1 for all others."`
	app.UsageFlags
	NoLease   bool     `help:"Take no lease, for example if the store is read-only. Then a concurrent gc may delete files that are being read: those of a branch, or of any snapshot after 5 minutes."`
	Transform []string `sep:"none" placeholder:"FEATURES=CHAIN" help:"Transform values, as in 'user_history_*=first(20)|mod(1000003)': first, mod, hash, sigrid_hash, clamp, log1p, bucketize, cast, fill, list, and scores.clamp and so on. May be repeated; a name goes before globs."`
}

// plan opens what the arguments mean, and plans to read it as opts and the flags say.
func (r readFlags) plan(ctx context.Context, e *app.Env, t tableArgs, opts reader.PlanOptions) (*storage.View,
	*reader.Plan, error) {
	opts, err := r.planOptions(opts)
	if err != nil {
		return nil, nil, err
	}
	view, err := t.cached().OpenView(ctx, e, r.AtFlag)
	if err != nil {
		return nil, nil, err
	}
	plan, err := reader.NewViewPlan(ctx, view, opts)
	return view, plan, err
}

// planOptions returns opts with what the flags say.
func (r readFlags) planOptions(opts reader.PlanOptions) (reader.PlanOptions, error) {
	opts = r.selectFlags.planOptions(opts)
	opts.Downsample = r.Downsample
	for _, text := range r.Transform {
		rule, err := transform.ParseRule(text)
		if err != nil {
			return opts, terminal.Usagef("--transform: %w", err)
		}
		opts.Transforms = append(opts.Transforms, rule)
	}
	return opts, nil
}

// options returns how a command reads.
func (r readFlags) options(command string) reader.Options {
	return reader.Options{Usage: r.Usage(command), Lease: reader.LeaseOptions{Off: r.NoLease}}
}

// each gives every batch that is left to f, which may return io.EOF to have no more, and releases it.
func each(ctx context.Context, s *reader.Scanner, f func(*reader.Batch) error) error {
	for {
		b, err := s.Next(ctx)
		if err == nil {
			err = f(b)
			b.Release()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
