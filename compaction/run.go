package compaction

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/writer"
)

// A Report says what Run did. Its JSON keys are stable.
type Report struct {
	Table    string      `json:"table"`
	Snapshot uint64      `json:"snapshot"` // number of the last snapshot that Run made; 0: none
	Jobs     []JobReport `json:"jobs"`
	Seconds  float64     `json:"seconds"`
}

// A JobReport is the result of a job.
type JobReport struct {
	Partition string `json:"partition"`
	Snapshot  uint64 `json:"snapshot"`            // number of the snapshot of its commit; 0: it was left out
	LeftOut   string `json:"left_out,omitempty"`  // why it was left out
	Removed   int    `json:"segments_rewritten"`  // rewritten segments
	Made      int    `json:"segments_made"`       // new segments
	Rows      uint64 `json:"rows"`                // of the new segments
	Deleted   uint64 `json:"rows_deleted_purged"` // deleted rows, which were not written
	BytesIn   uint64 `json:"bytes_rewritten"`     // stored, of the rewritten segments
	BytesOut  uint64 `json:"bytes_made"`          // stored, of the new segments
	LayersOut uint64 `json:"bytes_made_layers"`   // stored, of the new layers of overlays
	BytesRead uint64 `json:"bytes_read"`
	// KeptOrder: the rows of an input are not in the order of the table's keys, so the rows of all inputs stay in their
	// order and are not sorted.
	KeptOrder bool `json:"kept_order,omitempty"`
	// Attempts is how often the rows were written, Commits how often the commit was tried. Both are more than 1 when
	// other writers changed the table meanwhile.
	Attempts   int               `json:"attempts"`
	Commits    int               `json:"commits"`
	Duplicates writer.Duplicates `json:"duplicates"`
	Seconds    float64           `json:"seconds"`
}

const (
	// maxAttempts is how often a job is tried when overlays or the schema change meanwhile.
	maxAttempts = 4
	// maxCommits is how often one attempt is committed when only deletes or sample lists change meanwhile.
	maxCommits = 20
)

// Run does the jobs of a plan one after the other, each in a commit of its own. It returns a report even with an error,
// because committed jobs stay. When ctx ends, nothing of the current job becomes visible.
func Run(ctx context.Context, table *storage.Table, plan *Plan, opts Options) (*Report, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if plan.Table != table.Name() {
		return nil, fmt.Errorf("plan of compaction: it is for table %s, not for %s", plan.Table, table.Name())
	}
	start := time.Now()
	r := &runner{table: table, opts: opts.withDefaults()}
	out := &Report{Table: table.Name(), Jobs: []JobReport{}}
	defer func() { out.Seconds = time.Since(start).Seconds() }()
	for i := range plan.Jobs {
		r.tell = func(bytes, total int64) {
			if r.opts.Progress != nil {
				r.opts.Progress(Progress{Job: i + 1, Jobs: len(plan.Jobs), Bytes: bytes, TotalBytes: total})
			}
		}
		j, err := r.job(ctx, &plan.Jobs[i])
		if j.Snapshot > 0 {
			out.Snapshot = j.Snapshot
		}
		out.Jobs = append(out.Jobs, j)
		if err != nil {
			return out, fmt.Errorf("compaction of table %s: %w", table.Name(), err)
		}
	}
	after := []func() (uint64, error){func() (uint64, error) { return r.dropMerged(ctx) }}
	if !slices.ContainsFunc(out.Jobs, func(j JobReport) bool { return j.LeftOut != "" }) {
		after = append(after, func() (uint64, error) { return r.note(ctx, plan.Looked) })
	}
	for _, commit := range after {
		number, err := commit()
		if err != nil {
			return out, fmt.Errorf("compaction of table %s: %w", table.Name(), err)
		}
		out.Snapshot = max(out.Snapshot, number)
	}
	return out, nil
}

// A runner runs jobs.
type runner struct {
	table *storage.Table
	opts  Options
	tell  func(bytes, total int64)
}

// errLeft is returned when a job cannot be done any more, because its inputs changed.
var errLeft = errors.New("left out")

// job runs one job. After a conflict it starts the job again.
func (r *runner) job(ctx context.Context, j *Job) (out JobReport, err error) {
	start := time.Now()
	out.Partition = j.Partition
	defer func() { out.Seconds = time.Since(start).Seconds() }()
	for {
		out.Attempts++
		err := r.attempt(ctx, j, &out)
		switch {
		case errors.Is(err, errLeft):
			out.LeftOut = err.Error()
			return out, nil
		case !errors.Is(err, storage.ErrConflict) || out.Attempts == maxAttempts:
			return out, err
		}
	}
}

// attempt writes the rows of a job and commits them.
func (r *runner) attempt(ctx context.Context, j *Job, out *JobReport) error {
	snap, err := r.table.Latest(ctx)
	if err != nil {
		return err
	}
	lease, err := hold(ctx, snap, r.opts.Owner)
	if err != nil {
		return err
	}
	defer lease.release(ctx)
	b, err := r.base(ctx, snap, j.Segments)
	if err != nil {
		return err
	}
	w, change, err := r.rewrite(ctx, b, out)
	if err != nil {
		return err
	}
	defer w.result.Close()
	made, c, err := r.commit(ctx, b, w, change, out)
	if err != nil {
		if errors.Is(err, storage.ErrConflict) || errors.Is(err, errLeft) {
			// There is no commit. After any other error there may be one, so the segments stay.
			r.discard(ctx, w.result.Segments)
		}
		return err
	}
	r.discardSegments(ctx, c.unused)
	out.Snapshot = made.Info().Number
	out.Removed, out.Made = len(w.inputs), len(w.result.Segments)
	out.Duplicates = w.result.Duplicates
	for _, in := range w.inputs {
		out.BytesIn += in.d.Bytes
		out.Deleted += in.d.Rows
	}
	for _, s := range w.result.Segments {
		out.BytesOut += s.Data.Bytes
		out.Rows += s.Data.Rows
	}
	for _, l := range c.layers {
		out.LayersOut += l.Data.Bytes
	}
	out.Deleted -= out.Rows
	return nil
}

func (r *runner) discard(ctx context.Context, made []writer.Rewritten) {
	var all []catalog.SegmentDescriptor
	for _, m := range made {
		all = append(append(all, m.Data), m.Layers...)
	}
	r.discardSegments(ctx, all)
}

func (r *runner) discardSegments(ctx context.Context, all []catalog.SegmentDescriptor) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	for _, d := range all {
		_ = r.table.Store().Segments().Discard(ctx, d) // after an error gc deletes it
	}
}

// A base describes a job's inputs in one snapshot.
type base struct {
	snap     *storage.Snapshot
	segments []catalog.SegmentDescriptor
	features []catalog.Feature          // of the table, in name order
	overlays []catalog.Overlay          // that have a layer over an input and are not a branch's, the lowest first
	since    [][]uint64                 // by input and overlay: the snapshot that set the layer; 0: there is none
	had      map[catalog.FeatureID]bool // ids of features, dropped ones too; nil: none was dropped
}

// base returns the base of segments in a snapshot. It returns errLeft if they cannot be rewritten together any more.
func (r *runner) base(ctx context.Context, snap *storage.Snapshot, ids []string) (*base, error) {
	b := &base{snap: snap}
	found, err := snap.SegmentsByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		if d == nil {
			return nil, fmt.Errorf("%w: segment %s is gone: another compaction rewrote it, "+
				"or its partition was overwritten", errLeft, ids[i])
		}
		b.segments = append(b.segments, *d)
	}
	kinds, err := kindsOf(ctx, snap, b.segments)
	if err != nil {
		return nil, err
	}
	for i := range kinds {
		if kinds[i] != kinds[0] {
			return nil, fmt.Errorf("%w: since the plan, an overlay got a layer over some of the segments, and its "+
				"missing-value policy is another for segments without a layer", errLeft)
		}
	}
	if b.features, err = snap.Features(ctx); err != nil {
		return nil, err
	}
	if b.had, err = snap.FeatureIDs(ctx); err != nil {
		return nil, err
	}
	return b, b.layers(ctx)
}

// layers sets overlays and since.
func (b *base) layers(ctx context.Context) error {
	all, err := b.snap.Overlays(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o catalog.Overlay) bool { return o.Branch != "" })
	layers, err := b.snap.OverlaySegments(ctx, all, b.segments...)
	if err != nil {
		return err
	}
	b.since = make([][]uint64, len(b.segments))
	for j, o := range all {
		if !slices.ContainsFunc(layers, func(l []*catalog.OverlaySegment) bool { return l[j] != nil }) {
			continue
		}
		b.overlays = append(b.overlays, o)
		for i := range layers {
			since := uint64(0)
			if layers[i][j] != nil {
				since = layers[i][j].Since
			}
			b.since[i] = append(b.since[i], since)
		}
	}
	return nil
}

// same reports whether the segments written for b are also right for o: b and o differ at most in deletes, sample lists
// and new features.
func (b *base) same(o *base) bool {
	sameOverlay := func(x, y catalog.Overlay) bool {
		return x.Name == y.Name && x.Number == y.Number && x.Added == y.Added && x.Merged == y.Merged
	}
	names := func(fs []catalog.Feature) map[catalog.FeatureID]string {
		out := make(map[catalog.FeatureID]string, len(fs))
		for _, f := range fs {
			out[f.ID] = f.Name
		}
		return out
	}
	before, now := names(b.features), names(o.features)
	for f, name := range before {
		if now[f] != name {
			return false
		}
	}
	for f := range b.had { // a feature that was dropped may have been restored
		if _, was := before[f]; !was && now[f] != "" {
			return false
		}
	}
	return slices.EqualFunc(b.overlays, o.overlays, sameOverlay) &&
		slices.EqualFunc(b.since, o.since, slices.Equal[[]uint64])
}

// rewrite writes the rows. It returns the new segments, and the change without what depends on the remaps.
func (r *runner) rewrite(ctx context.Context, b *base, out *JobReport) (*rewritten, commit.Change, error) {
	change := commit.Change{Operation: r.opts.Operation}
	store := r.table.Store()
	inputs, err := openInputs(ctx, b.snap, b.segments, b.overlays)
	if err != nil {
		return nil, change, err
	}
	w := &rewritten{store: store, inputs: inputs}
	for _, o := range b.overlays {
		if separate(o) {
			w.overlays = append(w.overlays, o)
		}
	}
	var remove commit.RemoveSegments
	for _, in := range inputs {
		w.layers = append(w.layers, in.separate)
		remove = append(remove, in.d.ID)
	}
	x := &job{runner: r, base: b, rewritten: w, fetch: newFetcher(store.Blobs(), memoryOf(&r.opts)/8, len(inputs))}
	features, omitted := x.prepare()
	opts := r.opts.Write
	if opts.Profile == "" {
		if opts.Profile, err = b.snap.Property(ctx, snapshot.ProfileProperty); err != nil {
			return nil, change, err
		}
	}
	if err := x.readAhead(ctx); err != nil {
		return nil, change, err
	}
	x.rewrite.Progress = r.tell
	w.result, err = x.rewrite.Run(ctx, opts)
	if errors.Is(err, writer.ErrUnordered) {
		out.KeptOrder, x.rewrite.KeepOrder = true, true
		w.result, err = x.rewrite.Run(ctx, opts)
	}
	out.BytesRead += uint64(x.fetch.bytesRead())
	if err != nil {
		return nil, change, err
	}
	var add commit.AddSegments
	for _, s := range w.result.Segments {
		add = append(add, s.Data)
	}
	change.Ops = []commit.Operation{commit.AddFeatures(features), commit.OmitFeatures(omitted), remove, add}
	return w, change, nil
}

// A job is the state of runner.rewrite.
type job struct {
	*runner
	*base
	*rewritten
	fetch   *fetcher
	rewrite writer.Rewrite
	starts  [][]int // by input: the rows at which its stripes start
}

// prepare sets x.rewrite. It returns the features of the new segments, and the dropped features that they leave out.
func (x *job) prepare() (features []catalog.Feature, without []catalog.FeatureID) {
	rw := &x.rewrite
	rw.Table, rw.Partition, rw.Session, rw.Time = x.table, x.segments[0].Partition, -1, -1
	rows, bytes := uint64(0), uint64(0)
	for _, in := range x.inputs {
		c := candidate{d: in.d}
		if in.deleted != nil {
			c.deleted = in.deleted.GetCardinality()
		}
		rows += c.live()
		bytes += liveBytes(&c)
		rw.Inputs = append(rw.Inputs, in.rewriteInput())
		x.starts = append(x.starts, startsOf(in.stripes))
	}
	p := planner{opts: x.opts}
	rw.Segments = int(max(math.Round(p.share(rows, bytes)), 1))
	left := map[catalog.FeatureID]bool{}
	leave := func(entries map[catalog.FeatureID]*segment.Entry) {
		for f := range entries {
			left[f] = x.had[f]
		}
	}
	for _, in := range x.inputs {
		leave(in.entries)
		for _, l := range in.merged {
			leave(l.entries)
		}
	}
	for _, f := range x.base.features {
		delete(left, f.ID)
		if slices.ContainsFunc(x.inputs, func(in *input) bool { return in.has(f.ID) }) {
			rw.Features = append(rw.Features, x.feature(f, func(in *input) []source { return in.sources(f.ID) }))
			features = append(features, f)
		}
	}
	for f, was := range left {
		if was { // else it is the inverse of a group
			without = append(without, f)
		}
	}
	slices.Sort(without)
	writer.SortForPacks(rw.Features, x.opts.Popularity,
		func(f *writer.Feature) (catalog.Feature, uint64) { return f.Feature, f.RawBytes })
	for i, f := range rw.Features {
		switch f.Role {
		case catalog.RoleSessionKey:
			rw.Session = i
		case catalog.RoleTimeKey:
			rw.Time = i
		}
	}
	for j, o := range x.rewritten.overlays {
		var features []*writer.Feature
		for _, f := range o.Features {
			features = append(features, x.feature(f, func(in *input) []source { return in.layerSources(j, f.ID) }))
		}
		rw.Layers = append(rw.Layers, features)
	}
	rw.Open = x.open
	return features, without
}

// readAhead reads the first stripe of the keys of all inputs concurrently. The merge would read them one after another.
func (x *job) readAhead(ctx context.Context) error {
	var keys []catalog.FeatureID
	for _, at := range []int{x.rewrite.Session, x.rewrite.Time} {
		if at >= 0 {
			keys = append(keys, x.rewrite.Features[at].ID)
		}
	}
	held := uint64(0)
	for _, in := range x.inputs {
		for _, key := range keys {
			if e := in.entries[key]; e != nil {
				held += min(e.ObjectSize, x.fetch.size)
			}
		}
	}
	if held > uint64(x.fetch.max) {
		return nil // the cache would drop the first ones before they are used
	}
	return object.Parallel(ctx, object.RequestsAtOnce, len(x.inputs), func(ctx context.Context, i int) error {
		for _, key := range keys {
			e := x.inputs[i].entries[key]
			if e == nil || len(e.Meta.Stripes) == 0 || e.Meta.Stripes[0].Length >= longRange {
				continue
			}
			if _, err := x.fetch.get(ctx, nil, e.Object, e.ObjectSize, e.Offset+e.Meta.Stripes[0].Offset,
				e.Meta.Stripes[0].Length); err != nil {
				return err
			}
		}
		return nil
	})
}

// feature describes a feature to package writer: its decoded bytes, and the memory of its opened columns.
func (x *job) feature(f catalog.Feature, sources func(*input) []source) *writer.Feature {
	out := &writer.Feature{Feature: f}
	out.Status = catalog.FeatureActive // segments do not store the status
	for _, in := range x.inputs {
		held := int64(0)
		for _, s := range sources(in) {
			if s.entry == nil {
				continue
			}
			most := uint64(0)
			for i := range s.entry.Meta.Stripes {
				st := &s.entry.Meta.Stripes[i]
				out.RawBytes += decodedBytes(f.Type, &st.Stats, uint64(st.Rows))
				stored := st.Stats
				stored.Elements = st.Elements
				most = max(most, decodedBytes(f.Type, &stored, uint64(st.Slots))+4*uint64(st.Rows)+st.Length)
			}
			held += int64(most)
		}
		out.HeldBytes += held
		out.MostBytes = max(out.MostBytes, held)
	}
	return out
}

// layerSources returns the source of a feature of in.separate[overlay]; none without a layer.
func (in *input) layerSources(overlay int, f catalog.FeatureID) []source {
	if l := in.separate[overlay]; l != nil {
		return []source{l.source(f)}
	}
	return nil
}

// open is x.rewrite.Open.
func (x *job) open(ctx context.Context, i, number int) (writer.RewriteColumn, error) {
	in := x.inputs[i]
	var sources []source
	var f *writer.Feature
	if number < len(x.rewrite.Features) {
		f = x.rewrite.Features[number]
		sources = in.sources(f.ID)
	} else {
		number -= len(x.rewrite.Features)
		layer := 0
		for number >= len(x.rewrite.Layers[layer]) {
			number -= len(x.rewrite.Layers[layer])
			layer++
		}
		f = x.rewrite.Layers[layer][number]
		sources = in.layerSources(layer, f.ID)
	}
	if !slices.ContainsFunc(sources, func(s source) bool { return s.entry != nil }) {
		return nil, nil
	}
	return newColumn(ctx, x.fetch, f.Type, x.starts[i], sources), nil
}

// commit commits the new segments. After a conflict with a change of deletes or sample lists only, it remaps these and
// tries again.
func (r *runner) commit(ctx context.Context, b *base, w *rewritten, change commit.Change,
	out *JobReport) (*storage.Snapshot, *remapped, error) {
	for range maxCommits {
		out.Commits++
		c, err := w.remap(ctx, b.snap)
		if err != nil {
			return nil, nil, err
		}
		change.Base = b.snap.Info().Number
		for _, o := range []commit.Operation{
			commit.DeleteRows(c.deletes),
			commit.SetOverlaySegments(c.layers),
			commit.SetListRows(c.lists),
		} {
			change.Set(o)
		}
		made, err := r.table.Commit(ctx, change)
		if err == nil {
			return made, c, nil
		}
		if !errors.Is(err, storage.ErrConflict) {
			return nil, nil, err
		}
		c.discard(ctx)
		newest, lerr := r.table.Latest(ctx)
		if lerr != nil {
			return nil, nil, errors.Join(err, lerr)
		}
		now, lerr := r.base(ctx, newest, commit.Op[commit.RemoveSegments](&change))
		if lerr != nil {
			return nil, nil, lerr
		}
		if newest.Info().Number == b.snap.Info().Number || !b.same(now) {
			return nil, nil, err
		}
		b = now
	}
	return nil, nil, fmt.Errorf("deletes or sample lists of its segments changed %d times in a row: %w", maxCommits,
		storage.ErrConflict)
}

// dropMerged drops the overlays that are part of the table and have no layer over any segment. It returns the number of
// the snapshot that it made; 0: it made none.
func (r *runner) dropMerged(ctx context.Context) (uint64, error) {
	snap, err := r.table.Latest(ctx)
	if err != nil {
		return 0, err
	}
	overlays, err := snap.Overlays(ctx)
	if err != nil {
		return 0, err
	}
	var drop []string
	some := errors.New("there is a layer")
	for _, o := range overlays {
		if o.Merged == 0 {
			continue
		}
		err := snap.EachOverlaySegment(ctx, o, func(catalog.OverlaySegment) error { return some })
		switch {
		case err == nil:
			drop = append(drop, o.Name)
		case !errors.Is(err, some):
			return 0, err
		}
	}
	if len(drop) == 0 {
		return 0, nil
	}
	made, err := r.table.Commit(ctx, commit.Change{Operation: r.opts.Operation, Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DropOverlays(drop)}})
	// Another compaction may have dropped one of them; the next compaction tries again.
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return made.Info().Number, nil
}

// A renewedLease is a lease that a goroutine renews until release.
type renewedLease struct {
	of      *lease.Lease
	done    chan struct{} // closed by release
	renewed chan struct{} // closed when the goroutine has ended
}

const leaseTime = time.Hour

// hold takes a lease on a snapshot. It returns ErrConflict if the snapshot has expired.
func hold(ctx context.Context, snap *storage.Snapshot, owner string) (*renewedLease, error) {
	of, err := snap.Lease(ctx, owner, leaseTime)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: %w", err, storage.ErrConflict)
	}
	if err != nil {
		return nil, err
	}
	l := &renewedLease{of: of, done: make(chan struct{}), renewed: make(chan struct{})}
	go func() {
		defer close(l.renewed)
		t := time.NewTicker(leaseTime / 4)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-l.done:
			}
			select {
			case <-l.done: // also where it is time to renew, too
				return
			default:
				_ = of.Renew(ctx, leaseTime) // after an error three more tries follow before the lease ends
			}
		}
	}()
	return l, nil
}

// release ends the lease. After an error it ends by itself after leaseTime.
func (l *renewedLease) release(ctx context.Context) {
	close(l.done)
	<-l.renewed
	_ = l.of.Release(context.WithoutCancel(ctx))
}
