package storage

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestPinsOfLaterOverlays: an overlay that was made after the snapshot that a branch reads says nothing of rows which were deleted in between,
// and which the branch reads: it is refused, whichever snapshot it is pinned in.
func TestPinsOfLaterOverlays(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x")
	mustCommit(t, tab, Change{Ops: []Operation{AddFeatures(features("x")), AddSegments{a}}})
	mustCommit(t, tab, Change{Base: 1, Ops: []Operation{DeleteRows{{a.ID, rowSet(t, tab.s, a, 1)}}}})
	mustCommit(t, tab, Change{Base: 2, Ops: []Operation{DefineOverlays{overlay("o", "x")}, SetOverlaySegments{layer(t, tab, "o", a, 7, "x")}}}) // 3
	pins := func(snapshot, in uint64) Change {
		return Change{Operation: "branch", Base: 3, Ops: []Operation{SetBranches{{Name: "b", Snapshot: snapshot, Overlays: []catalog.Pin{{Name: "o", Snapshot: in}}}}}}
	}
	for _, c := range []Change{pins(1, 3), pins(2, 3), pins(1, 0)} {
		if _, err := tab.Commit(t.Context(), c); err == nil || !strings.Contains(err.Error(), "overlay o was made in snapshot 3, after snapshot") {
			t.Errorf("%+v: %v", Op[SetBranches](&c), err)
		}
	}
	mustCommit(t, tab, pins(3, 3))
	verifyClean(t, tab.s)
}
