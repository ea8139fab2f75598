package storage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestGCForeignRun: a run in the place of another of the same size, whole by its own checksums, names other segments.
// gc takes nothing of a table whose runs it cannot trust: not the segments that only the lost run named.
func TestGCForeignRun(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Trees.MemtableBytes = 1 // the commit makes runs
	var added commit.AddSegments
	for i := range 300 { // long enough for a run that is not read whole when it is opened
		day := fmt.Sprintf("%04d %s", i, strings.Repeat("long ", 40))
		added = append(added, writeSegment(t, tab, partition("ds", day), []uint32{3}, 1, segment.Options{}, "x"))
	}
	first := mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{added,
		commit.AddFeatures(features("x"))}})
	run := first.Manifest.Listing.Runs[0]
	if len(first.Manifest.Listing.Runs) != 1 || run.Size <= 64<<10 {
		t.Fatal(first.Manifest.Listing.Runs)
	}
	lost, err := names.ParseID(added[100].ID)
	if err != nil {
		t.Fatal(err)
	}
	foreign := otherRun(t, tab, run, lost)
	ruin(t, mem, run.ID.ListingName(), foreign)

	there := func(s catalog.SegmentDescriptor) bool {
		_, ok, err := object.First(ctx, mem, strings.TrimSuffix(s.Index, names.IndexFile), "")
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	r, err := brokenStore(t, mem).GC(ctx, gc.Options{NoWait: true})
	if err == nil && len(r.Skipped) == 0 {
		t.Errorf("gc went on: %+v", r)
	}
	if i := slices.IndexFunc(added, func(s catalog.SegmentDescriptor) bool { return !there(s) }); i >= 0 {
		t.Errorf("segment %d is gone", i)
	}
}

// otherRun returns a run with the entries of another, but that segment id has another id.
func otherRun(t *testing.T, tab *Table, run lsm.Run, id names.ID) []byte {
	ctx := t.Context()
	table, err := tab.s.core.Trees.OpenRun(ctx, lsm.Listing, run)
	if err != nil {
		t.Fatal(err)
	}
	other := id
	other[7] ^= 1
	var entries []lsm.Entry
	replaced := 0
	it := table.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		value, reason := lsm.ParseValue(it.Value())
		if reason != "" {
			t.Fatal(reason)
		}
		replaced += bytes.Count(it.Key(), id[:]) + bytes.Count(value, id[:])
		entries = append(entries, lsm.Entry{Key: bytes.ReplaceAll(it.Key(), id[:], other[:]),
			Value: bytes.ReplaceAll(value, id[:], other[:])})
	}
	if it.Err() != nil || replaced == 0 {
		t.Fatal(it.Err(), replaced)
	}
	tree, _, err := tab.s.core.Trees.Put(ctx, id.Table(), lsm.Tree{Kind: lsm.Listing}, entries, false)
	if err != nil || len(tree.Runs) != 1 || tree.Runs[0].Size != run.Size {
		t.Fatal(tree.Runs, run, err)
	}
	b := make([]byte, run.Size)
	if err := tab.s.core.Blobs.ReadAt(ctx, tree.Runs[0].ID.ListingName(), b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}
