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

// UsageOptions say how the reading of a reader is recorded. Package usage documents what is stored. Reads never wait
// for it. The zero value works.
type UsageOptions struct {
	// Off records nothing, for reads that do not belong to a job, such as those of compaction. If DSISTORE_USAGE is
	// off, usage is recorded only if Writer is set.
	Off bool
	// Job names the job that reads. Default: DSISTORE_JOB, else the program's name.
	Job string
	// Program names the program that opens the reader. Default "go".
	Program string
	// Purpose is one of usage.PurposeRead etc. Default: usage.PurposeRead; for Matching usage.PurposeCount.
	Purpose string
	// Writer writes the records. Default: one that all readers of the table in this process share, until the table's
	// store is closed. Before a program exits it closes its stores, or calls usage.FlushAll.
	Writer *usage.Writer
}

// filterSeed is random for each process, so that nobody who knows the hash of "user_id = 7" can find the 7 by trying.
var filterSeed = maphash.MakeSeed()

// filterHash identifies the filter of a plan within this process; 0: it has none.
func filterHash(p *plan.Plan) uint64 {
	if p.Filter == "" && p.Downsample == "" {
		return 0
	}
	return max(1, maphash.String(filterSeed, p.Filter+"\n"+p.Downsample))
}

// record starts the usage session of a reader, and its meter; nil: usage is not recorded. It makes no request.
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

// recordFilters records what the filters of a layout read, for a layout that is used only to count and list rows.
func (l *Layout) recordFilters(o UsageOptions) {
	if len(l.filters.features) == 0 {
		return
	}
	o.Purpose = cmp.Or(o.Purpose, usage.PurposeCount)
	l.record(&o, new(metering.Counters)).End()
}

// A usageSource is the usage.Source of a reader.
type usageSource struct {
	layout  *Layout
	stats   *metering.Counters
	filters bool           // reads of the layout's filters are this reader's to record, and not recorded yet
	before  usage.Counters // what was recorded so far, without the filters
}

func (x *usageSource) Features() []usage.Feature { return x.layout.counted.features(x.layout) }

func (x *usageSource) Counters() (usage.Counters, bool) {
	now := x.stats.Usage()
	out := now.Since(&x.before)
	// Also where statistics decided all, and nothing was read: who uses a feature so needs it.
	filters := x.filters && len(x.layout.filters.features) > 0
	if !filters && out.Rows|out.Batches|out.Requests|out.BytesRead() == 0 {
		return usage.Counters{}, false
	}
	x.before = now
	if filters {
		addReads(&out, &x.layout.filters.reads)
	}
	return out, true
}

// Uses adds what the Meter has counted since the last call and, once, what the filters read.
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

// countedFeatures are the features of a usageSource: the layout's, then those that its filters read. The list is made
// when it is first needed.
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

// filterReads is what the filters of a layout read while it was made. The first reader of the layout records it.
type filterReads struct {
	features []catalog.Feature
	meters   []metering.FeatureReads // of features
	reads    usage.Counters
	taken    atomic.Bool
}

// add adds the reads of a filter executor.
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
	addReads(&f.reads, &reads)
}

// addReads adds what counters say of requests and their bytes.
func addReads(to, from *usage.Counters) {
	to.Requests += from.Requests
	to.BytesNeeded += from.BytesNeeded
	to.BytesUnneeded += from.BytesUnneeded
	to.Read += from.Read
	to.SentReads += from.SentReads
	to.SentLists += from.SentLists
	to.BytesDown += from.BytesDown
	to.BytesCached += from.BytesCached
}
