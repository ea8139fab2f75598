package reader

import (
	"cmp"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/access"
	"github.com/dsistore/dsistore/storage"
)

// AccessOptions say how it is recorded what a reader reads: package access says what is kept of it, and that no read waits for it. The zero value
// works.
type AccessOptions struct {
	// Off records nothing: for reads that are no job's, as those of a rewrite are. Where DSISTORE_ACCESS is off, nothing is recorded unless
	// there is a Writer.
	Off bool
	// Job is what the reader is for. Default: DSISTORE_JOB, else the program's name.
	Job string
	// Program is what opens the reader. Default "go".
	Program string
	// Writer records. Default: one that all readers of the table share in this process, until its store is closed. A program that ends
	// closes its stores, or calls access.FlushAll.
	Writer *access.Writer
}

// filterSeed is this process's: who has only the hash of "user_id = 7" is not to find the 7 by trying.
var filterSeed = maphash.MakeSeed()

// filterHash tells the filters of plans apart, of this process alone; 0: there is none.
func filterHash(p *Plan) uint64 {
	if p.Filter == "" && p.Downsample == "" {
		return 0
	}
	return max(1, maphash.String(filterSeed, p.Filter+"\n"+p.Downsample))
}

// record returns the session of a reader that is opened now; nil: it is not recorded. It makes no request.
func (l *Layout) record(opts *Options, stats *counters) *access.Session {
	o := &opts.Access
	if l.table == nil || o.Off || o.Writer == nil && access.Off() {
		return nil
	}
	key := access.Key{
		Job: cmp.Or(o.Job, access.Job()), Program: cmp.Or(o.Program, "go"),
		Branch: l.plan.Branch, List: cmp.Or(l.plan.SampleList, l.plan.BranchList.Name),
	}
	key.Filter = filterHash(l.plan)
	x := &usage{layout: l, stats: stats, filters: !l.filters.taken.Swap(true)}
	if o.Writer != nil {
		return o.Writer.Begin(key, l.plan.Snapshot, x.fill)
	}
	return access.Begin(l.table, key, l.plan.Snapshot, x.fill)
}

// A usage says what a reader has done. It is asked by one goroutine at a time.
type usage struct {
	layout  *Layout
	stats   *counters
	filters bool // what the layout's filters read counts as this reader's

	features []access.FeatureUse // ids and names; nil until it is first asked
	places   []int32             // in features, of the layout's features, or -1, and then of those that filters read
}

// fill sets all of u, whose memory it uses again.
func (x *usage) fill(u *access.Usage) {
	if x.features == nil {
		x.find()
	}
	s := x.stats
	u.Counters = access.Counters{
		Rows: s.rows.Load(), Batches: s.batches.Load(), Requests: s.requests.Load(),
		BytesNeeded: s.needed.Load(), BytesOverRead: s.overRead.Load(),
		Stall: time.Duration(s.stall.Load()), Decode: time.Duration(s.decode.Load()), Assemble: time.Duration(s.assemble.Load()), Read: time.Duration(s.read.Load()),
		StoredRows: s.decodedRows.Load(), StoredSlots: s.decodedSlots.Load(), EmittedRows: s.slotRows.Load(), EmittedSlots: s.slots.Load(),
	}
	u.Features = append(u.Features[:0], x.features...)
	of := len(x.layout.features)
	s.meter.mu.Lock()
	for i := range s.meter.features {
		s.meter.features[i].addTo(u.Features, x.places[i])
	}
	s.meter.mu.Unlock()
	if !x.filters {
		return
	}
	f := &x.layout.filters
	u.Requests += f.requests
	u.BytesNeeded += f.needed
	u.BytesOverRead += f.overRead
	u.Read += f.read
	for i := range f.meters {
		f.meters[i].addTo(u.Features, x.places[of+i])
	}
}

func (m *featureMeter) addTo(uses []access.FeatureUse, at int32) {
	if at < 0 {
		return
	}
	u := &uses[at]
	u.Stripes += m.stripes
	u.Rows += m.rows
	u.BytesNeeded += m.needed
	u.BytesOverRead += m.overRead
}

// find finds the features that have files, each once.
func (x *usage) find() {
	l := x.layout
	known := make(map[storage.FeatureID]int32, len(l.features))
	x.features = make([]access.FeatureUse, 0, len(l.features))
	place := func(f *storage.Feature) int32 {
		if IsPartitionKey(*f) || isWeight(*f) {
			return -1
		}
		at, ok := known[f.ID]
		if !ok {
			at = int32(len(x.features))
			known[f.ID] = at
			x.features = append(x.features, access.FeatureUse{ID: f.ID, Name: f.Name})
		}
		return at
	}
	for i := range l.features {
		x.places = append(x.places, place(&l.features[i]))
	}
	for i := range l.filters.features {
		x.places = append(x.places, place(&l.filters.features[i]))
	}
}

// filterReads are what the filters of a layout read while it was made. The first reader of the layout takes them over.
type filterReads struct {
	features                   []storage.Feature
	meters                     []featureMeter // of features
	requests, needed, overRead uint64
	read                       time.Duration
	taken                      atomic.Bool
}

// add adds what a sieve has read.
func (f *filterReads) add(v *sieve) {
	if v.taker == nil {
		return
	}
	s := v.taker.s.stats
	f.features = append(f.features, v.base.features...)
	f.meters = append(f.meters, s.meter.features...)
	f.requests += s.requests.Load()
	f.needed += s.needed.Load()
	f.overRead += s.overRead.Load()
	f.read += time.Duration(s.read.Load())
}
