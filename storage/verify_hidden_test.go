package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestVerifyHiddenByRun: a run that cannot be read hides what the first snapshot shows. A later snapshot without that
// run is gone through as a whole: what it shows through older runs is checked.
func TestVerifyHiddenByRun(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Trees.MemtableBytes = 1 // every commit makes runs
	var runs []lsm.Run                 // of the snapshot before
	var hidden lsm.Run                 // only the snapshot before the newest has it, above an older one
	var first catalog.SegmentDescriptor
	for i := range 20 {
		var added commit.AddSegments
		for k := range 5 + 95*max(0, 1-i) { // the first run is much larger than the others
			added = append(added, writeSegment(t, tab, partition("ds", fmt.Sprint(i, k)), []uint32{3}, 1,
				segment.Options{}, "x"))
		}
		if i == 0 {
			first = added[0]
		}
		s := mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{added,
			commit.AddFeatures(features("x"))}})
		now := s.Manifest.Listing.Runs
		if n := len(runs); n > 1 && now[0] == runs[0] && !slices.Contains(now, runs[n-1]) {
			hidden = runs[n-1]
			break
		}
		runs = now
	}
	if hidden.Size == 0 {
		t.Fatal("no commit has merged the last run and kept the first")
	}
	if r, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 2}); err != nil || r.Snapshot != r.Oldest+2 {
		t.Fatal(r, err)
	}
	verifyClean(t, tab.s)
	name := hidden.ID.ListingName()
	b := make([]byte, hidden.Size)
	if err := mem.ReadAt(ctx, name, b, 0); err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	ruin(t, mem, name, b)
	ruin(t, mem, first.Index, nil)
	r, err := brokenStore(t, mem).Verify(ctx, "", false, nil)
	said := func(object string) bool {
		return slices.ContainsFunc(r.Damage, func(err error) bool { return strings.Contains(err.Error(), object) })
	}
	if err != nil || !said(name) || !said(first.Index) {
		t.Fatalf("%v %v: want damage in %s and %s", err, r.Damage, name, first.Index)
	}
	// gc deletes by what runs say: it goes by none that it cannot trust.
	if r, err := brokenStore(t, mem).GC(ctx, gc.Options{NoWait: true}); err == nil && len(r.Skipped) == 0 {
		t.Fatalf("gc went on: %+v", r)
	}
}
