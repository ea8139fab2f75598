package reader

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
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
	set := func(i int, rows ...uint32) storage.RowSet {
		s, err := store.PutRows(ctx, segments[i], roaring.BitmapOf(rows...))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	snap, err = snap.Table().Commit(ctx, storage.Change{
		Operation: "delete", Base: before.Info().Number,
		Deletes:  []storage.Deletes{{Segment: segments[0].ID, Rows: set(0, 0, 1, 2)}, {Segment: segments[1].ID, Rows: set(1, 1)}},
		Lists:    []storage.SampleList{{Name: "mine", Definition: "by hand"}},
		ListRows: []storage.ListRows{{List: "mine", Segment: segments[0].ID, Rows: set(0, 0)}, {List: "mine", Segment: segments[1].ID, Rows: set(1, 0, 1)}},
	})
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
	}
	if _, err := NewPlan(ctx, before, PlanOptions{Features: []string{"n"}, SampleList: "mine"}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a list of a later snapshot: %v", err)
	}
}
