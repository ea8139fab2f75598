package storage

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestCommitRequests counts what commits of a handle that has read nothing cost, on tables of no, of small and of large
// runs. PROTOCOL.md has the formulas.
func TestCommitRequests(t *testing.T) {
	type table struct {
		mem    *object.Memory
		tab    *Table
		added  []catalog.SegmentDescriptor
		newest *Snapshot
	}
	ctx := t.Context()
	segments := []int{10, 3000, 24000}
	names := make([]string, segments[2])
	for i := range names {
		names[i] = fmt.Sprintf("feature_%06d", i)
	}
	source := func(i int) catalog.Source {
		return catalog.Source{Name: fmt.Sprint(i), Fingerprint: fmt.Sprintf("%064x", i)}
	}
	// Made outside of the bubble: Pebble keeps writers of tables, with their channels, and reuses them.
	var tables []table
	for _, segments := range segments {
		mem := object.NewMemory()
		near, err := Create(ctx, mem, Options{MemtableBytes: 4000})
		if err != nil {
			t.Fatal(err)
		}
		x := table{mem: mem}
		if x.tab, err = near.NewTable(ctx, "ads"); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < segments; {
			c := commit.Change{Operation: "ingest"}
			for range min(1+i/8, 300, segments-i) { // ever larger: there are runs of each size
				d, err := fakeSegment(ctx, x.tab, partition("ds", fmt.Sprintf("%03d", i%100)), 10)
				if i == 0 {
					d = writeSegment(t, x.tab, partition("ds", "000"), []uint32{10}, 0, segment.Options{}, names[0])
				}
				if err != nil {
					t.Fatal(err)
				}
				c.Set(append(commit.Op[commit.AddFeatures](&c), features(names[i])...))
				c.Set(append(commit.Op[commit.AddSegments](&c), d))
				c.Set(append(commit.Op[commit.AddSources](&c), source(i)))
				i++
			}
			x.newest = mustCommit(t, x.tab, c)
			x.added = append(x.added, commit.Op[commit.AddSegments](&c)...)
		}
		tables = append(tables, x)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, x := range tables {
			base := x.newest.Info().Number
			late := writeSegment(t, x.tab, partition("ds", "007"), []uint32{10}, 1, segment.Options{}, names[3])
			compacted := writeSegment(t, x.tab, partition("ds", "001"), []uint32{10}, 2, segment.Options{}, names[0])
			for _, op := range []struct {
				what   string
				c      commit.Change
				checks int64 // of objects that the change adds
				steps  int64 // look-ups one after another
			}{
				{"append", commit.Change{Ops: []commit.Operation{commit.AddFeatures(features(names[3:9]...)),
					commit.AddSegments{late}, commit.AddSources{source(len(names))}}}, 1, 2},
				{"overlay", commit.Change{Base: base, Ops: []commit.Operation{commit.DefineOverlays{overlay("labels",
					"label")}, commit.SetOverlaySegments{layer(t, x.tab, "labels", x.added[0], 3, "label")}}}, 1, 2},
				{"compaction", commit.Change{Base: base, Ops: []commit.Operation{commit.AddFeatures(features(names[0])),
					commit.RemoveSegments{x.added[1].ID}, commit.AddSegments{compacted}}}, 1, 5},
				{"deletes", commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: x.added[2].ID,
					Rows: rowSet(t, x.tab.s, x.added[2], 1, 5)}}}}, 0, 2},
				{"overwrite", commit.Change{Base: base, Ops: []commit.Operation{commit.OverwritePartitions{
					partition("ds", "005")}}}, 0, 6},
			} {
				counted := objecttest.NewMeter(x.mem)
				far, err := Open(t.Context(), counted, Options{})
				if err != nil {
					t.Fatal(err)
				}
				op.c.Operation = op.what
				got := counted.Measure(t, op.what, func() error {
					tab, err := far.NewTable(t.Context(), "ads")
					if err == nil {
						_, err = tab.Commit(t.Context(), op.c)
					}
					return err
				})
				runs, large := int64(0), int64(0) // large: too large to be read whole
				for _, r := range append(x.newest.Manifest.Listing.Runs, x.newest.Manifest.Schema.Runs...) {
					if runs++; r.Size > lsm.RemoteRunBytes {
						large++
					}
				}
				what := fmt.Sprintf("%d segments, %d runs, %d of them large: %s", len(x.added), runs, large, op.what)
				got.Check(t, what, 4+op.checks+runs+large*op.steps, 4+min(runs, 1)+min(large, 1)*op.steps)
			}
		}
	})
}
