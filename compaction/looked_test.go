package compaction

import (
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestLooked: what a plan has looked at for dropped features and shared sessions, and left as it is, no later plan
// reads again, until it looks for something else; what came since is looked at.
func TestLooked(t *testing.T) {
	ctx := t.Context()
	counted := object.NewCounted(object.NewMemory())
	x := newTester(t, counted, 9)
	o := x.options()
	o.SegmentRows, o.SharedShare, o.DroppedShare = 20, 0.999, 0.9
	for range 2 {
		x.ingest(x.newRows(1150, 1))
		x.compact(o) // cut into many
	}
	plan := func(o Options) (*Plan, int64) {
		t.Helper()
		x.open() // a handle that knows nothing
		before := counted.Counts().Reads
		p, err := NewPlan(ctx, x.table, o)
		x.check(err)
		if len(p.Jobs) > 0 {
			t.Fatal(p)
		}
		return p, counted.Counts().Reads - before
	}
	run := func(p *Plan, o Options, makes uint64) {
		t.Helper()
		before := x.latest().Info().Number
		r, err := Run(ctx, x.table, p, o)
		x.check(err)
		if n := x.latest().Info().Number; n != before+makes || makes > 0 && r.Snapshot != n {
			t.Fatalf("snapshot %d after %d, want %d more: %+v", n, before, makes, r)
		}
	}
	first, all := plan(o)
	segments := int64(x.latest().Info().Segments)
	if segments < worthNoting || first.Looked == "" || len(first.Notes) != 1 || all < 2*segments {
		t.Fatalf("%d segments, %d reads: %+v", segments, all, first)
	}
	run(first, o, 1)
	again, least := plan(o)
	if again.Looked != "" || least > 40 {
		t.Fatalf("again, %d reads: %+v", least, again)
	}
	run(again, o, 0)
	// Another question is asked of all, and of one partition is noted nothing.
	other := o
	other.SharedShare = 0.9999
	if p, reads := plan(other); p.Looked == "" || reads < 2*segments {
		t.Errorf("another share, %d reads: %+v", reads, p)
	}
	other.Partition = "day = 'd0'"
	if p, reads := plan(other); p.Looked != "" || reads < 2*segments {
		t.Errorf("a partition, %d reads: %+v", reads, p)
	}
	// A feature is dropped: all indexes are read, once.
	dropped, active := catalog.FeatureDropped, catalog.FeatureActive
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
		commit.ChangeFeatures{{Feature: "name", Status: &dropped}}}})
	p, reads := plan(o)
	if p.Looked == "" || p.Looked == first.Looked || reads < segments {
		t.Fatalf("dropped, %d reads: %+v", reads, p)
	}
	run(p, o, 1)
	if p, reads := plan(o); p.Looked != "" || reads > least+10 {
		t.Errorf("dropped, again, %d reads: %+v", reads, p)
	}
	// Who asks for less of it finds it.
	less := o
	less.DroppedShare = 1e-9
	if p, err := NewPlan(ctx, x.table, less); err != nil || p.Segments() != int(segments) {
		t.Errorf("%v %v", p, err)
	}
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
		commit.ChangeFeatures{{Feature: "name", Status: &active}}}})
	p, reads = plan(o)
	if p.Looked == "" || reads < segments {
		t.Errorf("taken back, %d reads: %+v", reads, p)
	}
	run(p, o, 1)
	// What came since is looked at: a small segment.
	x.ingest(x.newRows(3, 1))
	if p, reads := plan(o); p.Looked != "" || reads > least+20 {
		t.Errorf("a segment more, %d reads: %+v", reads, p)
	}
	x.verify("in the end")
}
