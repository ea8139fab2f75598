package reader

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// What a snapshot deletes is not read, a sample list is what is read, and both are one with a filter.
func TestDeletesAndSampleLists(t *testing.T) {
	ctx := t.Context()
	store, snap := realStore(t)
	before := snap
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := func(i int, rows ...uint32) bitmap.Ref {
		s, err := store.Bitmaps().Put(ctx, segments[i].ID, segments[i].Rows, roaring.BitmapOf(rows...))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	snap, err = snap.Table().Commit(ctx, commit.Change{Operation: "delete", Base: before.Info().Number,
		Ops: []commit.Operation{
			commit.DeleteRows{{Segment: segments[0].ID, Rows: set(0, 0, 1, 2)},
				{Segment: segments[1].ID, Rows: set(1, 1)}},
			commit.DefineLists{{Name: "mine", Definition: "by hand"}},
			commit.SetListRows{{List: "mine", Segment: segments[0].ID, Rows: set(0, 0)},
				{List: "mine", Segment: segments[1].ID, Rows: set(1, 0, 1)}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		snap         *storage.Snapshot
		list, filter string
		want         []int64
	}{
		{before, "", "", []int64{10, 11, 12, 20, 21, 22, 30, 31, 32}},
		{snap, "", "", []int64{20, 22, 30, 31, 32}},
		{snap, "", "n != 31", []int64{20, 22, 30, 32}},
		{snap, "mine", "", []int64{20}},
		{snap, "mine", "n > 20", nil},
	} {
		plan, err := NewPlan(ctx, c.snap, PlanOptions{Features: []string{"n"}, Filter: c.filter, SampleList: c.list})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		travelled := new(Plan)
		if err := json.Unmarshal(text, travelled); err != nil {
			t.Fatal(err)
		}
		s, err := OpenPlan(ctx, store, travelled, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for {
			b, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Columns[0].Ints...)
			b.Release()
		}
		if s.Rows() != uint64(len(c.want)) || !slices.Equal(got, c.want) {
			t.Errorf("list %q, filter %q: %d rows: %v, want %v", c.list, c.filter, s.Rows(), got, c.want)
		}
		s.Close()
		m, err := Matching(ctx, c.snap, PlanOptions{Filter: c.filter, SampleList: c.list}, LayoutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var matched []int64
		for _, r := range m.Segments {
			i := slices.IndexFunc(segments, func(d catalog.SegmentDescriptor) bool { return d.ID == r.Segment.ID })
			for row := range int64(r.Segment.Rows) {
				if r.Rows == nil || r.Rows.Contains(uint32(row)) {
					matched = append(matched, 10*int64(i+1)+row)
				}
			}
			if r.Count() == 0 {
				t.Errorf("list %q, filter %q: an entry without rows", c.list, c.filter)
			}
		}
		if m.Rows != uint64(len(c.want)) || !slices.Equal(matched, c.want) || (m.Pruning == nil) != (c.filter == "") {
			t.Errorf("list %q, filter %q: matched %d rows: %v, want %v", c.list, c.filter, m.Rows, matched, c.want)
		}
	}
	if _, err := NewPlan(ctx, before, PlanOptions{Features: []string{"n"}, SampleList: "mine"}); !errors.Is(err,
		storage.ErrNotFound) {
		t.Errorf("a list of a later snapshot: %v", err)
	}
}

// Of a segment with more rows than can be selected from none can be deleted; listed they can be.
func TestSetsOfTooManyRows(t *testing.T) {
	ctx := t.Context()
	store, snap := realStore(t)
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.Bitmaps().Put(ctx, segments[0].ID, segments[0].Rows, roaring.BitmapOf(1))
	if err != nil {
		t.Fatal(err)
	}
	huge := segments[0]
	huge.Rows = 1 << 62
	if _, err := storedSet(ctx, store, huge, nil, set); err == nil ||
		!strings.Contains(err.Error(), "too many to select from") {
		t.Errorf("rows of it are deleted: %v", err)
	}
	if b, err := storedSet(ctx, store, huge, &set, bitmap.Ref{}); err != nil || b.GetCardinality() != 1 {
		t.Errorf("rows of it are listed: %v, %v", b, err)
	}
	if b, err := storedSet(ctx, store, huge, nil, bitmap.Ref{}); err != nil || b != nil {
		t.Errorf("it has all rows: %v, %v", b, err)
	}
}

// Sets of several segments are read side by side, and of several that are damaged the first in order is reported.
func TestSetsAreReadTogether(t *testing.T) {
	ctx := t.Context()
	const rows = 60_000
	blobs := &meetingBlobs{Store: object.NewMemory()}
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.NewTable(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	feature := catalog.Feature{ID: catalog.NewFeatureID("n", 1), Name: "n", Generation: 1,
		Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}
	change := commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures{feature}}}
	for range 4 {
		w, err := table.NewSegment(ctx, nil, []uint32{rows}, segment.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.AddFeature(ctx, 0, feature, func(w *format.Writer) error {
			c := vector.NewColumn(feature.Type)
			for r := range rows {
				c.Ints = append(c.Ints, int64(r))
				c.AddSlot()
			}
			return w.WriteStripe(c)
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Set(append(commit.Op[commit.AddSegments](&change), d))
	}
	snap, err := table.Commit(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	deletes := commit.Change{Operation: "delete", Base: snap.Info().Number}
	for _, d := range commit.Op[commit.AddSegments](&change) {
		gone := roaring.New()
		for r := uint32(0); r < rows; r += 3 + r%13 { // too many for the snapshot: the set is an object
			gone.Add(r)
		}
		set, err := store.Bitmaps().Put(ctx, d.ID, d.Rows, gone)
		if err != nil {
			t.Fatal(err)
		}
		deletes.Set(append(commit.Op[commit.DeleteRows](&deletes), commit.DeletionVector{Segment: d.ID, Rows: set}))
	}
	if snap, err = table.Commit(ctx, deletes); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	blobs.wanted = len(commit.Op[commit.AddSegments](&change))
	l, err := NewLayout(ctx, snap, plan)
	if err != nil {
		t.Fatal(err)
	}
	if blobs.came != len(commit.Op[commit.AddSegments](&change)) || l.Rows() >= 4*rows || l.Segments() != 4 {
		t.Errorf("%d sets are read; %d rows are left", blobs.came, l.Rows())
	}
}

// meetingBlobs let nobody read a row bitmap before so many do.
type meetingBlobs struct {
	object.Store
	wanted int // 0: anybody reads

	mu   sync.Mutex
	came int // guarded by mu
	all  chan struct{}
}

func (m *meetingBlobs) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if m.wanted == 0 || !strings.HasSuffix(name, "/rows.roaring") {
		return m.Store.ReadAt(ctx, name, p, off)
	}
	m.mu.Lock()
	if m.all == nil {
		m.all = make(chan struct{})
	}
	if m.came++; m.came == m.wanted {
		close(m.all)
	}
	all := m.all
	m.mu.Unlock()
	select {
	case <-all:
		return m.Store.ReadAt(ctx, name, p, off)
	case <-time.After(20 * time.Second):
		return errors.New("it is read alone")
	}
}
