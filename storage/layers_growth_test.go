package storage

import (
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestLayersGrowth: what lies over a few segments is found, and set, at a cost that does not grow with the table.
func TestLayersGrowth(t *testing.T) {
	ctx := t.Context()
	cost := map[int][3]int64{}
	for _, n := range []int{100, 1600} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		var c commit.Change
		for range n {
			d, err := fakeSegment(ctx, tab, nil, 50)
			if err != nil {
				t.Fatal(err)
			}
			c.Set(append(commit.Op[commit.AddSegments](&c), d))
		}
		mustCommit(t, tab, c)
		over := commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")},
			commit.DefineLists{{Name: "l"}}}}
		all := commit.Op[commit.AddSegments](&c)
		for i, d := range all {
			over.Set(append(commit.Op[commit.DeleteRows](&over), commit.DeletionVector{Segment: d.ID,
				Rows: rowSet(t, tab.s, d,
					uint32(i%50))}))
			over.Set(append(commit.Op[commit.SetListRows](&over), commit.ListRows{List: "l", Segment: d.ID,
				Rows: rowSet(t, tab.s, d,
					uint32(i%50))}))
			data, err := fakeSegment(ctx, tab, nil, 50)
			if err != nil {
				t.Fatal(err)
			}
			over.Set(append(commit.Op[commit.SetOverlaySegments](&over), catalog.OverlaySegment{Overlay: "o",
				Segment: d.ID, Data: data, All: true}))
		}
		mustCommit(t, tab, over)
		counted := object.NewCounted(mem)
		h := newTable(t, counted)
		s, err := h.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		few := []catalog.SegmentDescriptor{all[0], all[n/3], all[n/2], all[n-1]}
		start := counted.Counts()
		deleted, err := s.DeletionVectors(ctx, few...)
		if err != nil {
			t.Fatal(err)
		}
		overlays, err := s.Overlays(ctx)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := s.OverlaySegments(ctx, overlays, few...)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := s.ListedRows(ctx, "l", few...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range few {
			if deleted[i].Count != 1 || listed[i].Count != 1 || layers[i][0] == nil {
				t.Fatal(deleted[i], listed[i], layers[i])
			}
		}
		read := counted.Counts().Sub(start)
		start = counted.Counts()
		mustCommit(t, h, commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: few[1].ID, Rows: rowSet(t,
			h.s, few[1],
			49, 48)}}}})
		commit := counted.Counts().Sub(start)
		cost[n] = [3]int64{read.Requests(), read.BytesRead, commit.Requests()}
		t.Logf(
			"%d segments: reading what lies over 4 takes %d requests, %d bytes; a commit of deletes %d requests, %d "+
				"bytes read",
			n, read.Requests(), read.BytesRead, commit.Requests(), commit.BytesRead)
	}
	small, large := cost[100], cost[1600]
	if large[0] > small[0]+45 || large[1] > small[1]+150_000 || large[2] > small[2]+15 {
		t.Errorf("requests, bytes and requests of a commit: %v of 100 segments, %v of 1,600", small, large)
	}
}
