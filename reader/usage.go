package reader

import (
	"cmp"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// UsageOptions say how it is recorded what a reader reads: package usage says what is kept of it, and that no read waits for it. The zero value
// works.
type UsageOptions struct {
	// Off records nothing: for reads that are no job's, as those of a rewrite are. Where DSISTORE_USAGE is off, nothing is recorded unless
	// there is a Writer.
	Off bool
	// Job is what the reader is for. Default: DSISTORE_JOB, else the program's name.
	Job string
	// Program is what opens the reader. Default "go".
	Program string
	// Purpose is what is read for, one of usage.PurposeRead and so on. Default: that, and of Matching usage.PurposeCount.
	Purpose string
	// Writer records. Default: one that all readers of the table share in this process, until its store is closed. A program that ends
	// closes its stores, or calls usage.FlushAll.
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

// record returns the session of a reader that is opened now, and makes its meter count; nil: it is not recorded. It makes no request.
func (l *Layout) record(o *UsageOptions, stats *counters) *usage.Session {
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
	stats.meter.begin(len(l.features))
	x := &usageSource{layout: l, stats: stats, filters: !l.filters.taken.Swap(true)}
	if o.Writer != nil {
		return o.Writer.Begin(key, l.plan.Snapshot, x)
	}
	return usage.Begin(l.table, key, l.plan.Snapshot, x)
}

// recordFilters records what the filters of a layout read whose rows nobody reads: how many they are, and where, is all that was asked for.
func (l *Layout) recordFilters(o UsageOptions) {
	if !l.filters.read() {
		return
	}
	o.Purpose = cmp.Or(o.Purpose, usage.PurposeCount)
	l.record(&o, new(counters)).End()
}

// A usageSource is a usage.Source: a reader, and what of it was recorded.
type usageSource struct {
	layout  *Layout
	stats   *counters
	filters bool           // what the layout's filters read counts as this reader's, and was not counted yet
	before  usage.Counters // that were recorded, without those of the filters
}

func (x *usageSource) Features() []usage.Feature { return x.layout.counted.features(x.layout) }

func (x *usageSource) Counters() (usage.Counters, bool) {
	s, before := x.stats, x.before
	now := usage.Counters{
		Rows: s.rows.Load(), Batches: s.batches.Load(), Requests: s.requests.Load(),
		BytesNeeded: s.needed.Load(), BytesUnneeded: s.unneeded.Load(),
		Stall: time.Duration(s.stall.Load()), Decode: time.Duration(s.decode.Load()), Assemble: time.Duration(s.assemble.Load()), Read: time.Duration(s.read.Load()),
		StoredRows: s.decodedRows.Load(), StoredSlots: s.decodedSlots.Load(), EmittedRows: s.slotRows.Load(), EmittedSlots: s.slots.Load(),
	}
	filters := x.filters && x.layout.filters.read()
	if !filters && now.Rows == before.Rows && now.Batches == before.Batches && now.Requests == before.Requests &&
		now.BytesNeeded == before.BytesNeeded && now.BytesUnneeded == before.BytesUnneeded {
		return usage.Counters{}, false
	}
	x.before = now
	out := usage.Counters{
		Rows: now.Rows - before.Rows, Batches: now.Batches - before.Batches, Requests: now.Requests - before.Requests,
		BytesNeeded: now.BytesNeeded - before.BytesNeeded, BytesUnneeded: now.BytesUnneeded - before.BytesUnneeded,
		Stall: now.Stall - before.Stall, Decode: now.Decode - before.Decode, Assemble: now.Assemble - before.Assemble, Read: now.Read - before.Read,
		StoredRows: now.StoredRows - before.StoredRows, StoredSlots: now.StoredSlots - before.StoredSlots,
		EmittedRows: now.EmittedRows - before.EmittedRows, EmittedSlots: now.EmittedSlots - before.EmittedSlots,
	}
	if filters {
		f := &x.layout.filters
		out.Requests += f.requests
		out.BytesNeeded += f.needed
		out.BytesUnneeded += f.unneeded
		out.Read += f.took
	}
	return out, true
}

// Uses adds what the meter has counted, which begins anew, and once what the filters did.
func (x *usageSource) Uses(to *usage.Uses) {
	m := &x.stats.meter
	m.mu.Lock()
	for i := range m.features {
		m.features[i].addTo(to, i)
	}
	clear(m.features)
	m.mu.Unlock()
	if x.filters {
		x.filters = false
		for i := range x.layout.filters.meters {
			x.layout.filters.meters[i].addTo(to, len(x.layout.features)+i)
		}
	}
}

func (m *featureMeter) addTo(to *usage.Uses, i int) {
	to.Add(i, m.stripes, m.rows, m.needed, m.unneeded)
}

// countedFeatures are the features of a layout as a Source has them: the layout's, and then those that its filters read. They are made when they are
// first asked for.
type countedFeatures struct {
	once sync.Once
	list []usage.Feature
}

func (c *countedFeatures) features(l *Layout) []usage.Feature {
	c.once.Do(func() {
		c.list = make([]usage.Feature, 0, len(l.features)+len(l.filters.features))
		for _, features := range [...][]storage.Feature{l.features, l.filters.features} {
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
	features                   []storage.Feature
	meters                     []featureMeter // of features
	requests, needed, unneeded uint64
	took                       time.Duration
	taken                      atomic.Bool
}

// read reports whether they read anything.
func (f *filterReads) read() bool { return f.requests|f.needed|f.unneeded != 0 }

// add adds what a filter executor has read.
func (f *filterReads) add(v *filterExecutor) {
	if v.x == nil {
		return
	}
	s := v.x.stats
	counted := s.meter.features
	if counted == nil { // nothing was read
		counted = make([]featureMeter, len(v.base.features))
	}
	f.features = append(f.features, v.base.features...)
	f.meters = append(f.meters, counted...)
	f.requests += s.requests.Load()
	f.needed += s.needed.Load()
	f.unneeded += s.unneeded.Load()
	f.took += time.Duration(s.read.Load())
}
