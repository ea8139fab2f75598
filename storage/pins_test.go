package storage

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestPinsOfLaterOverlays: an overlay that was made after the snapshot that a branch reads says nothing of rows which
// were deleted in between, and which the branch reads: it is refused, whichever snapshot it is pinned in.
func TestPinsOfLaterOverlays(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
		Rows: rowSet(t, tab.s, a, 1)}}}})
	// 3
	mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "x")},
		commit.SetOverlaySegments{layer(t, tab, "o", a, 7, "x")}}})
	pins := func(snapshot, in uint64) commit.Change {
		return commit.Change{Operation: "branch", Base: 3, Ops: []commit.Operation{commit.SetBranches{{Name: "b",
			Snapshot: snapshot, Overlays: []catalog.Pin{{Name: "o", Snapshot: in}}}}}}
	}
	for _, c := range []commit.Change{pins(1, 3), pins(2, 3), pins(1, 0)} {
		if _, err := tab.Commit(t.Context(), c); err == nil || !strings.Contains(err.Error(),
			"overlay o was made in snapshot 3, after snapshot") {
			t.Errorf("%+v: %v", commit.Op[commit.SetBranches](&c), err)
		}
	}
	mustCommit(t, tab, pins(3, 3))
	verifyClean(t, tab.s)
}
