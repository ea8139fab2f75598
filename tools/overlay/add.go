package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// maxAttempts bounds how often layers are written for new segments, and the commit is tried again.
const maxAttempts = 10

// Add makes an overlay of a table in one commit, and reports on it. Of a branch, "table@branch", the overlay is on top
// of the branch's from then on. On any error, and when ctx ends first, the table is as it was. Add returns
// storage.ErrConflict where other commits kept changing the table, and storage.ErrExists where there is an overlay of
// the name.
func Add(ctx context.Context, store *storage.Store, ref, name string, opts Options) (Report, error) {
	return makeOverlay(ctx, store, ref, name, opts, nil)
}

// makeOverlay is Add, or Extend where it extends one.
func makeOverlay(ctx context.Context, store *storage.Store, ref, name string, opts Options,
	extends *extension) (Report, error) {
	r := Report{Overlay: name, Features: []FeatureReport{}, Partial: []SegmentReport{}, Unknown: []Row{}}
	if err := opts.Validate(); err != nil {
		return r, err
	}
	opts = opts.withDefaults()
	t, branch, err := store.OpenRef(ctx, ref)
	if err != nil {
		return r, err
	}
	r.Table, r.Branch = t.Name(), branch
	m := &maker{
		table: t, opts: &opts, report: &r, extends: extends,
		layers: map[string]*catalog.OverlaySegment{}, nulls: map[string][]uint64{},
		overlay: catalog.Overlay{Name: name, MissingRows: opts.MissingRows, MissingLayers: opts.MissingLayers,
			Branch: branch},
		dir: sync.OnceValues(func() (string, error) { return spill.Dir(opts.TempDir, store.Blobs()) }),
	}
	release := spill.HoldMemory(opts.Memory)
	defer release()
	done := timed(&r.Seconds.Total)
	err = m.run(ctx)
	done()
	return r, err
}

// A maker makes one overlay, or covers more rows of one.
type maker struct {
	table   *storage.Table
	opts    *Options
	report  *Report
	overlay catalog.Overlay
	extends *extension                 // nil: the overlay is new
	dir     func() (string, error)     // for spill files
	taken   map[catalog.FeatureID]bool // ids that features of the table have or had; nil: they are not read yet
	exprs   []computed                 // or
	rows    joined
	writer  *layerWriter
	// layers are those that were written, by segment; nil where a segment has no row to cover, and needs none.
	layers map[string]*catalog.OverlaySegment
	nulls  map[string][]uint64 // of the covered rows of each of layers, by segment and feature
	phase  Progress
}

func (m *maker) run(ctx context.Context) (err error) {
	unsure := false // whether the commit was made
	defer func() {
		if err != nil && !unsure {
			m.discard(ctx, m.layers)
		}
		if m.rows != nil {
			m.report.Spills, m.report.SpillBytes = m.rows.spilled()
			m.rows.close()
		}
	}()
	v, err := m.open(ctx)
	if err != nil {
		return err
	}
	if err := m.checkName(ctx, v); err != nil {
		return err
	}
	if err := m.prepare(ctx, v); err != nil {
		return err
	}
	for {
		if err := m.cover(ctx, v); err != nil {
			return err
		}
		// Segments that were ingested meanwhile are covered, too, up to a number of attempts.
		if m.report.Attempts++; m.report.Attempts < maxAttempts {
			if v, err = m.open(ctx); err != nil {
				return err
			}
			if len(m.unwritten(v)) > 0 {
				continue
			}
		}
		err := m.commit(ctx, v)
		if err == nil {
			break
		}
		// With Replace, an overlay that took the name meanwhile is replaced, too.
		conflict, exists := errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrExists) && !m.opts.Replace
		if !conflict || exists || m.report.Attempts >= maxAttempts {
			// After any other error than these the snapshot may be there all the same: its objects stay.
			unsure = !conflict && !exists
			return err
		}
		if v, err = m.open(ctx); err != nil {
			return err
		}
	}
	m.finish(ctx, v)
	return nil
}

// open opens what the overlay lies over, as it is now.
func (m *maker) open(ctx context.Context) (*view, error) {
	v, err := openView(ctx, m.table, m.overlay.Branch, m.opts.Over)
	if err == nil && m.extends != nil {
		err = m.lookUp(ctx, v)
	}
	return v, err
}

// checkName refuses the name of an overlay that is there and not to be replaced.
func (m *maker) checkName(ctx context.Context, v *view) error {
	if m.extends != nil {
		return nil // it is there
	}
	all, err := v.newest.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		switch {
		case o.Name != m.overlay.Name:
		case !m.opts.Replace:
			return fmt.Errorf("overlay %s: %w since snapshot %d: use another, or replace it (--replace, in "+
				"Python replace=True)", o.Name, storage.ErrExists, o.Added)
		case o.Branch != m.overlay.Branch:
			of := "the table"
			if o.Branch != "" {
				of = "branch " + o.Branch
			}
			return fmt.Errorf("overlay %s is of %s: it is not replaced from elsewhere; use another name", o.Name, of)
		case o.Merged != 0:
			return fmt.Errorf("overlay %s is part of the table since snapshot %d: it is not replaced", o.Name, o.Merged)
		}
	}
	return nil
}

// checkRole refuses the role label where no feature gets it, as each is known and keeps its own.
func (m *maker) checkRole() error {
	isLabel := func(f catalog.Feature) bool { return f.Role == catalog.RoleLabel }
	if m.opts.Role != catalog.RoleLabel || slices.ContainsFunc(m.overlay.Features, isLabel) {
		return nil
	}
	f := m.overlay.Features[0]
	return fmt.Errorf("feature %s is there already, as a %v, and keeps its role: give the label another name, or "+
		"leave out that it is one (--label, in Python label=True)", f.Name, f.Role)
}

// prepare sets the features of the overlay: it types the expressions, or reads the files.
func (m *maker) prepare(ctx context.Context, v *view) error {
	name, err := v.snap.Property(ctx, snapshot.ProfileProperty)
	if err != nil {
		return err
	}
	profile, err := format.ParseProfile(cmp.Or(name, "balanced"))
	if err != nil {
		return fmt.Errorf("the table's %w", err)
	}
	if m.extends != nil {
		if err := m.prepareMore(ctx, v); err != nil {
			return err
		}
		m.writer = newLayerWriter(m.table, &m.overlay, profile, m.opts)
		return nil
	}
	find := func(ctx context.Context, name string) (*known, error) { return m.find(ctx, v, name) }
	if len(m.opts.Exprs) > 0 {
		if m.exprs, err = v.parseExprs(ctx, m.opts, find); err != nil {
			return err
		}
		for i := range m.exprs {
			if err := m.define(ctx, v, &m.exprs[i].Feature); err != nil {
				return err
			}
		}
		slices.SortFunc(m.exprs, func(a, b computed) int { return cmp.Compare(a.ID, b.ID) })
	} else if err := m.readFiles(ctx, v, find); err != nil {
		return err
	}
	if err := m.checkRole(); err != nil {
		return err
	}
	slices.SortFunc(m.overlay.Features, func(a, b catalog.Feature) int { return cmp.Compare(a.ID, b.ID) })
	if err := m.overlay.Validate(); err != nil {
		return err
	}
	m.writer = newLayerWriter(m.table, &m.overlay, profile, m.opts)
	return nil
}

// find returns the view's feature of a name, nil where there is none. Keys and partition keys are errors.
func (m *maker) find(ctx context.Context, v *view, name string) (*known, error) {
	keys, err := v.snap.PartitionKeys(ctx)
	if err != nil {
		return nil, err
	}
	f, err := v.feature(ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case f == nil && slices.Contains(keys, name):
		return nil, fmt.Errorf("%s is a partition key of the table: name the features to take, without it", name)
	case f == nil:
		return nil, nil
	case f.Role.IsKey():
		return nil, fmt.Errorf("%s is the %v of the table: name the features to take, without it", name, f.Role)
	default:
		return &known{*f, "the table", "give it another name"}, nil
	}
}

// define gives a feature its id, and adds it to the overlay. Where the view has a feature of the name, it becomes that.
func (m *maker) define(ctx context.Context, v *view, f *catalog.Feature) error {
	k, err := v.feature(ctx, f.Name)
	if err != nil {
		return err
	}
	if k != nil {
		t := f.Type
		*f = *k
		f.Type, f.Status = t, catalog.FeatureActive
	} else {
		if m.taken == nil {
			if m.taken, err = v.newest.FeatureIDs(ctx); err != nil {
				return err
			}
		}
		f.ID, f.Generation = catalog.FreshID(f.Name, m.taken)
	}
	m.overlay.Features = append(m.overlay.Features, *f)
	m.tellFeature(f, k)
	return nil
}

// tellFeature puts a feature of the overlay into the report. replaced is the table's feature of the name, or nil.
func (m *maker) tellFeature(f, replaced *catalog.Feature) {
	var nulls *uint64
	if m.extends == nil {
		nulls = new(uint64)
	}
	r := FeatureReport{Name: f.Name, Type: source.TypeName(f.Type, f.Logical), Role: f.Role.String(), Nulls: nulls}
	if replaced != nil {
		r.Replaces, r.ReplacedType = true, source.TypeName(replaced.Type, replaced.Logical)
	}
	m.report.Features = append(m.report.Features, r)
}

// keyOf returns the features that are the key.
func (m *maker) keyOf(ctx context.Context, v *view) ([]keyPart, error) {
	names := m.opts.Key
	if len(names) == 0 {
		var err error
		if names, err = v.snap.KeysOf(ctx, catalog.RoleRequestKey); err != nil {
			return nil, err
		}
		if len(names) != 1 {
			has := "no request key"
			if len(names) > 0 {
				has = "several request keys"
			}
			return nil, fmt.Errorf("table %s has %s: say with --key (key= in Python) which feature is the key",
				m.table.Name(), has)
		}
	}
	features, err := v.snap.Lookup(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return newKey(features)
}

// readFiles reads what is joined.
func (m *maker) readFiles(ctx context.Context, v *view,
	find func(context.Context, string) (*known, error)) (err error) {
	defer timed(&m.report.Seconds.Read)()
	key, err := m.keyOf(ctx, v)
	if err != nil {
		return err
	}
	f := newFiles(key, m.opts, find)
	j := newJoiner(f, m.dir)
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	if err := f.read(ctx, func(done, total int64) { m.tell(PhaseRead, done, total) },
		func(p *filePart) error { return j.add(ctx, p) }); err != nil {
		return err
	}
	m.report.FileRows, m.report.BytesIn = f.rows, f.bytes
	if m.extends != nil {
		err = m.matchFeatures(f.features)
	} else {
		for _, x := range f.features {
			if err = m.define(ctx, v, &x.Feature); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	slices.SortFunc(f.features, func(a, b *fileFeature) int { return cmp.Compare(a.ID, b.ID) })
	m.rows, err = j.finish(f.features)
	return err
}

// timed returns what adds the time from now on to *s.
func timed(s *float64) func() {
	start := time.Now()
	return func() { *s += time.Since(start).Seconds() }
}

// tell says how far a phase is.
func (m *maker) tell(phase Phase, done, total int64) {
	m.phase = Progress{phase, done, total}
	if m.opts.Progress != nil {
		m.opts.Progress(m.phase)
	}
}

// unwritten returns the indexes of the segments of a view that have no layer yet.
func (m *maker) unwritten(v *view) (out []int) {
	for i, s := range v.segments {
		if _, ok := m.layers[s.ID]; !ok && !m.extends.covers(s.ID) {
			out = append(out, i)
		}
	}
	return out
}

// cover writes the layers of the segments that have none yet.
func (m *maker) cover(ctx context.Context, v *view) error {
	todo := m.unwritten(v)
	if len(todo) == 0 && (m.rows == nil || m.report.Attempts > 0) {
		return nil // of a table without rows the files are matched once all the same: they may have a key twice
	}
	want := make([]bool, len(v.segments))
	total := int64(0)
	for _, i := range todo {
		want[i] = true
		total += int64(v.segments[i].rows)
	}
	writing := 0.0
	start := time.Now()
	visit := func(segment int, vals values) error {
		defer timed(&writing)()
		return m.layer(ctx, &v.segments[segment], vals)
	}
	var err error
	if m.rows == nil {
		m.tell(PhaseWrite, 0, total)
		err = v.evaluate(ctx, m.exprs, m.opts, want, func(rows uint64) { m.tell(PhaseWrite, int64(rows), total) },
			visit)
	} else {
		m.tell(PhaseMatch, 0, total)
		err = m.rows.match(ctx, v, want, func(rows uint64) { m.tell(PhaseMatch, int64(rows), total) }, visit)
	}
	m.report.Seconds.Write += writing
	m.report.Seconds.Match += time.Since(start).Seconds() - writing
	return err
}

// layer writes the layer over a segment, where it says anything.
func (m *maker) layer(ctx context.Context, s *baseSegment, vals values) error {
	old := m.extends.layer(s.ID)
	if old != nil {
		k, err := openOldLayer(ctx, m.table.Store(), s, old, m.overlay.Features)
		if err != nil {
			return fmt.Errorf("layer over segment %s: %w", s.ID, err)
		}
		more := false
		if vals, more = k.under(ctx, s, m.overlay.Features, vals); !more {
			m.layers[s.ID] = nil
			return nil
		}
	} else if vals.count == 0 && m.overlay.MissingRows == m.overlay.MissingLayers {
		m.layers[s.ID] = nil
		return nil
	}
	l, nulls, err := m.writer.write(ctx, s, vals)
	if err != nil {
		return err
	}
	m.layers[s.ID], m.nulls[s.ID] = &l, nulls
	return nil
}

// commit makes the overlay visible, over the segments of a view.
func (m *maker) commit(ctx context.Context, v *view) error {
	defer timed(&m.report.Seconds.Commit)()
	m.tell(PhaseCommit, 0, 0)
	// The name may have been taken, or what was to be replaced may be gone.
	if err := m.checkName(ctx, v); err != nil {
		return err
	}
	c := commit.Change{Operation: "overlay", Base: v.newest.Info().Number}
	if m.extends == nil {
		c.Set(commit.DefineOverlays{m.overlay})
	}
	if m.opts.Replace {
		all, err := v.newest.Overlays(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(o catalog.Overlay) bool { return o.Name == m.overlay.Name }) {
			c.Set(commit.DropOverlays{m.overlay.Name})
		}
	}
	var segments commit.SetOverlaySegments
	for _, s := range v.segments {
		if l := m.layers[s.ID]; l != nil {
			segments = append(segments, *l)
		}
	}
	c.Set(segments)
	if m.extends != nil && len(segments) == 0 {
		m.report.Snapshot = c.Base // there is nothing to cover
		return nil
	}
	if b := v.branch; b != nil {
		set := *b
		set.Overlays = slices.DeleteFunc(slices.Clone(b.Overlays),
			func(p catalog.Pin) bool { return p.Name == m.overlay.Name })
		// as of the snapshot that the commit makes
		set.Overlays = append(set.Overlays, catalog.Pin{Name: m.overlay.Name})
		c.Set(commit.SetBranches{set})
	}
	made, err := m.table.Commit(ctx, c)
	if err != nil {
		return err
	}
	m.report.Snapshot = made.Info().Number
	return nil
}

// finish removes the layers of segments that were compacted meanwhile, and fills the report.
func (m *maker) finish(ctx context.Context, v *view) {
	r := m.report
	left := m.layers
	for i := range v.segments {
		s := &v.segments[i]
		l := left[s.ID]
		delete(left, s.ID)
		r.Rows += s.rows
		r.Segments++
		if l != nil {
			r.BytesOut += l.Data.Bytes
			m.countNulls(m.nulls[s.ID])
		} else {
			l = m.extends.layer(s.ID)
		}
		if l != nil {
			r.Layers++
		}
		covered, err := m.coveredBy(ctx, l, s)
		if err != nil { // it is committed: what can be said is said
			covered = min(l.Covered.Count, s.rows)
		}
		r.Covered += covered
		if covered < s.rows {
			r.Partial = append(r.Partial, SegmentReport{s.ID, s.Partition.String(), s.rows, covered})
		}
	}
	m.discard(ctx, left)
	if m.rows != nil {
		var unknown []Row
		r.Unmatched, unknown = m.rows.unmatched()
		r.Unknown = append(r.Unknown, unknown...)
	}
}

// countNulls adds the nulls of a layer to the report, unless there are layers of before, of which they are not known.
func (m *maker) countNulls(ofLayer []uint64) {
	for f, n := range ofLayer {
		name := m.overlay.Features[f].Name // in the order of ids; those of the report are as they were given
		i := slices.IndexFunc(m.report.Features, func(x FeatureReport) bool { return x.Name == name })
		if sum := m.report.Features[i].Nulls; sum != nil {
			*sum += n
		}
	}
}

// discard removes layers that no commit names, even when ctx has ended. What stays, gc finds.
func (m *maker) discard(ctx context.Context, layers map[string]*catalog.OverlaySegment) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	for _, l := range layers {
		if l != nil {
			m.writer.discard(ctx, *l)
		}
	}
}
