package reader

import (
	"cmp"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/usage"
)

// UsageOptions say how it is recorded what a reader reads: package usage says what is kept of it, and that no read
// waits for it. The zero value works.
type UsageOptions struct {
	// Off records nothing: for reads that are no job's, as those of a rewrite are. Where DSISTORE_USAGE is off, nothing
	// is recorded unless there is a Writer.
	Off bool
	// Job is what the reader is for. Default: DSISTORE_JOB, else the program's name.
	Job string
	// Program is what opens the reader. Default "go".
	Program string
	// Purpose is what is read for, one of usage.PurposeRead and so on. Default: that, and of Matching
	// usage.PurposeCount.
	Purpose string
	// Writer records. Default: one that all readers of the table share in this process, until its store is closed. A
	// program that ends closes its stores, or calls usage.FlushAll.
	Writer *usage.Writer
}

// filterSeed is this process's: who has only the hash of "user_id = 7" is not to find the 7 by trying.
var filterSeed = maphash.MakeSeed()

// filterHash tells the filters of plans apart, of this process alone; 0: there is none.
func filterHash(p *plan.Plan) uint64 {
	if p.Filter == "" && p.Downsample == "" {
		return 0
	}
	return max(1, maphash.String(filterSeed, p.Filter+"\n"+p.Downsample))
}

// record returns the session of a reader that is opened now, and makes its meter count; nil: it is not recorded. It
// makes no request.
func (l *Layout) record(o *UsageOptions, stats *metering.Counters) *usage.Session {
	if l.table == nil || o.Off || o.Writer == nil && usage.Off() {
		return nil
	}
	key := usage.Key{
		Job: o.Job, Program: cmp.Or(o.Program, "go"), Purpose: cmp.Or(o.Purpose, usage.PurposeRead),
		Branch: l.plan.Branch, List: cmp.Or(l.plan.SampleList, l.plan.BranchList.Name), Filter: filterHash(l.plan),
	}
	if key.Job == "" {
		key.Job = usage.Job()
	}
	stats.Meter.Begin(len(l.features))
	x := &usageSource{layout: l, stats: stats, filters: !l.filters.taken.Swap(true)}
	if o.Writer != nil {
		return o.Writer.Begin(key, l.plan.Snapshot, x)
	}
	return usage.Begin(l.table, key, l.plan.Snapshot, x)
}

// recordFilters records what the filters of a layout read whose rows nobody reads: how many they are, and where, is all
// that was asked for.
func (l *Layout) recordFilters(o UsageOptions) {
	if !l.filters.read() {
		return
	}
	o.Purpose = cmp.Or(o.Purpose, usage.PurposeCount)
	l.record(&o, new(metering.Counters)).End()
}

// A usageSource is a usage.Source: a reader, and what of it was recorded.
type usageSource struct {
	layout  *Layout
	stats   *metering.Counters
	filters bool           // what the layout's filters read counts as this reader's, and was not counted yet
	before  usage.Counters // that were recorded, without those of the filters
}

func (x *usageSource) Features() []usage.Feature { return x.layout.counted.features(x.layout) }

func (x *usageSource) Counters() (usage.Counters, bool) {
	now := x.stats.Usage()
	out := now.Since(&x.before)
	filters := x.filters && x.layout.filters.read()
	if !filters && out.Rows|out.Batches|out.Requests|out.BytesRead() == 0 {
		return usage.Counters{}, false
	}
	x.before = now
	if filters {
		f := &x.layout.filters
		out.Requests += f.reads.Requests
		out.BytesNeeded += f.reads.BytesNeeded
		out.BytesUnneeded += f.reads.BytesUnneeded
		out.Read += f.reads.Read
	}
	return out, true
}

// Uses adds what the Meter has counted since the last call, and once what the filters did.
func (x *usageSource) Uses(to *usage.Uses) {
	add := func(i int, r *metering.FeatureReads) { to.Add(i, r.Stripes, r.Rows, r.Needed, r.Unneeded) }
	x.stats.Meter.Take(add)
	if x.filters {
		x.filters = false
		for i := range x.layout.filters.meters {
			add(len(x.layout.features)+i, &x.layout.filters.meters[i])
		}
	}
}

// countedFeatures are the features of a layout as a Source has them: the layout's, and then those that its filters
// read. They are made when they are first asked for.
type countedFeatures struct {
	once sync.Once
	list []usage.Feature
}

func (c *countedFeatures) features(l *Layout) []usage.Feature {
	c.once.Do(func() {
		c.list = make([]usage.Feature, 0, len(l.features)+len(l.filters.features))
		for _, features := range [...][]catalog.Feature{l.features, l.filters.features} {
			for i := range features {
				f := &features[i]
				if plan.IsPartitionKey(*f) || plan.IsWeight(*f) { // which have no files
					c.list = append(c.list, usage.Feature{})
					continue
				}
				c.list = append(c.list, usage.Feature{ID: f.ID, Name: f.Name})
			}
		}
	})
	return c.list
}

// filterReads are what the filters of a layout read while it was made. The first reader of the layout takes them over.
type filterReads struct {
	features []catalog.Feature
	meters   []metering.FeatureReads // of features
	reads    usage.Counters
	taken    atomic.Bool
}

// read reports whether they read anything.
func (f *filterReads) read() bool { return f.reads.Requests|f.reads.BytesRead() != 0 }

// add adds what a filter executor has read.
func (f *filterReads) add(v *filterExecutor) {
	if v.x == nil {
		return
	}
	counted := v.x.Stats.Meter.Features
	if counted == nil { // nothing was read
		counted = make([]metering.FeatureReads, len(v.base.features))
	}
	f.features = append(f.features, v.base.features...)
	f.meters = append(f.meters, counted...)
	reads := v.x.Stats.Usage()
	f.reads.Requests += reads.Requests
	f.reads.BytesNeeded += reads.BytesNeeded
	f.reads.BytesUnneeded += reads.BytesUnneeded
	f.reads.Read += reads.Read
}
