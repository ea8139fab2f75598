package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A segmentModel is what a segment was found to hold.
type segmentModel struct {
	rows   []value
	labels []value // nil: it has none
	needs  []string
}

// changed looks at what an object that was put or deleted means. It is called after every one, so that what is wrong is
// found at the step that did it.
func (m *model) changed(o *operation) {
	if m.busy || m.r.failed() {
		return
	}
	m.busy = true
	defer func() { m.busy = false }()
	if o.kind == opDelete || o.kind == opTruncate {
		m.deleted(o.name)
	}
	if rest, ok := strings.CutPrefix(o.name, "tables/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		m.observe(m.table(name), o.by)
	}
}

// deleted fails when a version that must be there needed the object, and cannot do without.
func (m *model) deleted(name string) {
	for _, t := range m.sorted() {
		for _, n := range slices.Sorted(maps.Keys(t.versions)) {
			v := t.versions[n]
			if !v.needs[name] {
				continue
			}
			if why := m.protected(t, v); why != "" {
				m.whole(t, v, "object "+m.r.short(name)+" is gone, and "+why)
			}
		}
	}
}

func (m *model) sorted() []*tableModel {
	return slices.SortedFunc(maps.Values(m.tables), func(a, b *tableModel) int {
		return strings.Compare(a.name,
			b.name)
	})
}

// whole fails when a version cannot be read, with all that it needs.
func (m *model) whole(t *tableModel, v *version, why string) {
	if err := m.read(t, v); err != nil {
		m.r.fail(fmt.Errorf("snapshot %d of table %s, made by %q, cannot be read (%s): %w", v.number, t.name, v.made,
			why, err))
	}
}

// observe looks whether the newest snapshot of a table is what it was, or one more. by is what a machine was at that
// changed an object of it, if that is known.
func (m *model) observe(t *tableModel, by *intent) {
	ctx := context.Background()
	tab, err := m.handle(t.name)
	if errors.Is(err, storage.ErrNoStore) && t.newest == 0 {
		return
	}
	if err != nil {
		m.r.fail(err)
		return
	}
	s, err := tab.Latest(ctx)
	if errors.Is(err, storage.ErrNotFound) && t.newest == 0 {
		return
	}
	if err != nil {
		m.r.fail(fmt.Errorf("newest snapshot of table %s, which was %d: %w", t.name, t.newest, err))
		return
	}
	info := s.Info()
	switch {
	case info.Number == t.newest:
		if made := t.versions[t.newest].made; made != info.Operation {
			m.r.fail(fmt.Errorf("snapshot %d of table %s was made by %q, and now by %q", info.Number, t.name, made,
				info.Operation))
		}
		return
	case info.Number != t.newest+1:
		m.r.fail(fmt.Errorf("the newest snapshot of table %s was %d, and is %d now", t.name, t.newest, info.Number))
		return
	}
	v := &version{number: info.Number, made: info.Operation}
	var i *intent
	if v.state, i, err = m.next(t, info.Operation, info.Number, by); err != nil {
		m.r.fail(err)
		return
	}
	if i != nil && i.partitions != nil {
		if err := m.notePartitions(ctx, s, v.state, i.partitions); err != nil {
			m.r.fail(err)
			return
		}
	}
	if i != nil && i.dropsBranches {
		left, err := s.Branches(ctx)
		if err != nil {
			m.r.fail(err)
			return
		}
		maps.DeleteFunc(v.state.branches, func(name string, _ uint64) bool {
			return !slices.ContainsFunc(left, func(b catalog.Branch) bool { return b.Name == name })
		})
	}
	t.versions[info.Number], t.newest = v, info.Number
	for n := max(t.oldest, 1); n < info.Oldest; n++ {
		if old := t.versions[n]; old != nil {
			old.expired = m.r.storeTime()
		}
	}
	t.oldest = max(t.oldest, info.Oldest, 1)
	m.whole(t, v, "it was just made")
	for name, n := range v.state.branches {
		if old := t.versions[n]; old != nil && n != v.number {
			m.whole(t, old, "branch "+name+" reads it")
		}
	}
}

// notePartitions notes the partition of new rows that are in one of several, as the commit that added them says.
func (m *model) notePartitions(ctx context.Context, s *storage.Snapshot, of *state, partitions []string) error {
	segments, err := s.Segments(ctx, func(p catalog.Partition) bool { return slices.Contains(partitions, p.String()) })
	if err != nil {
		return err
	}
	for _, d := range segments {
		seg, err := m.segment(ctx, s, d)
		if err != nil {
			return err
		}
		for _, row := range seg.rows {
			if r, ok := of.rows[row.n]; ok && r.partition == unsettled {
				r.partition = d.Partition.String()
				of.rows[row.n] = r
			}
		}
	}
	return nil
}

// handle opens a table at the objects as they are, as a process does that knows nothing.
func (m *model) handle(name string) (*storage.Table, error) {
	s, err := storage.Open(context.Background(), m.r.blobs, storage.Options{Now: m.r.storeTime})
	if err != nil {
		return nil, err
	}
	return s.NewTable(context.Background(), name)
}

// read reads a version whole and compares it with the model.
func (m *model) read(t *tableModel, v *version) error {
	ctx := context.Background()
	tab, err := m.handle(t.name)
	if err != nil {
		return err
	}
	touched := map[string]bool{}
	defer m.r.blobs.touch(m.r.blobs.touch(touched))
	s, err := tab.At(ctx, v.number)
	if err != nil {
		return err
	}
	if made := s.Info().Operation; made != v.made {
		return fmt.Errorf("it was made by %q", made)
	}
	// All of the schema, so that its runs are needed too.
	if _, err := s.AllFeatures(ctx); err != nil {
		return err
	}
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return err
	}
	deleted, err := s.DeletionVectors(ctx, segments...)
	if err != nil {
		return err
	}
	got := emptyState()
	var live [][]int64 // by segment and row: the row's number; -1: it is deleted
	for i, d := range segments {
		seg, err := m.segment(ctx, s, d)
		if err != nil {
			return err
		}
		gone, err := tab.Store().Bitmaps().Read(ctx, deleted[i])
		if err != nil {
			return err
		}
		numbers := make([]int64, len(seg.rows))
		for k, row := range seg.rows {
			numbers[k] = -1
			if gone.Contains(uint32(k)) {
				continue
			}
			if _, twice := got.rows[row.n]; twice || !row.there {
				return fmt.Errorf("row %d is there twice, or has no number", row.n)
			}
			numbers[k] = row.n
			r := rowModel{partition: d.Partition.String()}
			if seg.labels != nil {
				r.label = seg.labels[k]
			}
			got.rows[row.n] = r
		}
		live = append(live, numbers)
	}
	if err := m.readLayers(ctx, s, segments, live, got); err != nil {
		return err
	}
	v.needs = touched
	return v.state.differs(got)
}

// segment reads a segment, once, and looks each time whether all its objects are there.
func (m *model) segment(ctx context.Context, s *storage.Snapshot, d catalog.SegmentDescriptor) (*segmentModel, error) {
	if seg := m.segments[d.ID]; seg != nil {
		for _, name := range seg.needs {
			if _, err := m.r.blobs.get(name); err != nil {
				return nil, err
			}
		}
		return seg, nil
	}
	touched := map[string]bool{}
	outer := m.r.blobs.touch(touched)
	defer m.r.blobs.touch(outer)
	seg := &segmentModel{}
	var err error
	if seg.rows, err = readFeature(ctx, s.Table().Store(), d, rowFeature); err != nil {
		return nil, err
	}
	if seg.labels, err = readFeature(ctx, s.Table().Store(), d, labelFeature); err != nil {
		return nil, err
	}
	if seg.rows == nil && seg.labels == nil {
		return nil, fmt.Errorf("segment %s has neither feature", d.ID)
	}
	seg.needs = slices.Sorted(maps.Keys(touched))
	for name := range touched {
		if outer != nil {
			outer[name] = true
		}
	}
	for row, gone := range m.table(s.Table().Name()).erased {
		if gone && seg.has(row, m.labels[row]) {
			return nil, fmt.Errorf("segment %s was committed after row %d was erased, and has it", d.ID, row)
		}
	}
	m.segments[d.ID] = seg
	return seg, nil
}

// readLayers reads what overlays have for the live rows.
func (m *model) readLayers(ctx context.Context, s *storage.Snapshot, segments []catalog.SegmentDescriptor,
	live [][]int64, got *state) error {
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(overlays, func(a, b catalog.Overlay) int { return int(int64(a.Merged) - int64(b.Merged)) })
	layers, err := s.OverlaySegments(ctx, overlays, segments...)
	if err != nil {
		return err
	}
	for j, o := range overlays {
		values := map[int64]int64{}
		for i := range segments {
			l := layers[i][j]
			if l == nil {
				continue
			}
			seg, err := m.segment(ctx, s, l.Data)
			if err != nil {
				return err
			}
			covered, err := s.Table().Store().Bitmaps().Read(ctx, l.Covered)
			if err != nil {
				return err
			}
			for k, row := range live[i] {
				if row >= 0 && (l.All || covered.Contains(uint32(k))) {
					values[row] = seg.labels[k].n
				}
			}
		}
		if o.Merged == 0 {
			got.overlays[o.Name] = values
			continue
		}
		for row, label := range values {
			r := got.rows[row]
			r.label = value{label, true}
			got.rows[row] = r
		}
	}
	lists, err := s.SampleLists(ctx)
	if err != nil {
		return err
	}
	for _, l := range lists {
		sets, err := s.ListedRows(ctx, l.Name, segments...)
		if err != nil {
			return err
		}
		listed := map[int64]bool{}
		for i, set := range sets {
			rows, err := s.Table().Store().Bitmaps().Read(ctx, set)
			if err != nil {
				return err
			}
			for k, row := range live[i] {
				if row >= 0 && rows.Contains(uint32(k)) {
					listed[row] = true
				}
			}
		}
		got.lists[l.Name] = listed
	}
	branches, err := s.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		got.branches[b.Name] = b.Snapshot
	}
	return nil
}

// differs says what of a state that was read is not as it must be. What an overlay says of rows that are gone does not
// matter.
func (s *state) differs(got *state) error {
	for row, want := range s.rows {
		if r, ok := got.rows[row]; !ok || r != want {
			return fmt.Errorf("row %d is missing or another: %+v, want %+v; it has rows %v, want %v", row, r, want,
				slices.Sorted(maps.Keys(got.rows)), slices.Sorted(maps.Keys(s.rows)))
		}
	}
	if len(got.rows) != len(s.rows) {
		return fmt.Errorf("it has rows %v, want %v", slices.Sorted(maps.Keys(got.rows)),
			slices.Sorted(maps.Keys(s.rows)))
	}
	if !maps.Equal(got.branches, s.branches) {
		return fmt.Errorf("it has branches %v, want %v", got.branches, s.branches)
	}
	if len(got.lists) != len(s.lists) {
		return fmt.Errorf("it has sample lists %v, want %v", got.lists, s.lists)
	}
	for name, want := range s.lists {
		for row := range s.rows {
			if got.lists[name] == nil || got.lists[name][row] != want[row] {
				return fmt.Errorf("row %d is in sample list %s: %v, want %v", row, name, got.lists[name][row],
					want[row])
			}
		}
	}
	if len(got.overlays) != len(s.overlays) {
		return fmt.Errorf("it has overlays %v, want %v", got.overlays, s.overlays)
	}
	for name, want := range s.overlays {
		labels, ok := got.overlays[name]
		if !ok {
			return fmt.Errorf("overlay %s is missing", name)
		}
		for row := range s.rows {
			w, there := want[row]
			if l, ok := labels[row]; ok != there || l != w {
				return fmt.Errorf("overlay %s has %d for row %d (%v), want %d (%v)", name, l, row, ok, w, there)
			}
		}
	}
	return nil
}
