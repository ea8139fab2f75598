package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/usage"
)

// TestReads: what was read is found where people look for it.
func TestReads(t *testing.T) {
	s, _, summary := small(t)
	r := build(t, s, Options{Usage: reads(summary)})
	if len(r.Jobs) != 2 || r.Jobs[0].Job != "train" || r.Jobs[0].Features != 2 ||
		r.Jobs[0].Amplification != 1000.0/900 || r.Jobs[0].DedupeFactor != 2 {
		t.Errorf("jobs %+v", r.Jobs)
	}
	live := 0
	for _, f := range r.Features {
		if f.Status != "dropped" {
			live++
		}
		switch f.Name {
		case "items":
			if f.Jobs != 2 || f.BytesNeeded != 800 || f.LastRead != "2026-11-21T01:00:00Z" || f.UnreadDays != 1 {
				t.Errorf("%+v", f.Use)
			}
		case "user":
			if f.Readers != 0 || f.LastRead != "" || f.UnreadDays != 12 {
				t.Errorf("%+v", f.Use)
			}
		}
	}
	if got, want := r.Jobs[0].FeatureShare, 2/float64(live); math.Abs(got-want) > 1e-12 {
		t.Errorf("the job has %v of the features, want %v", got, want)
	}
	if len(r.Days) != 13 || r.Days[0].Day != "2026-11-10" || r.Days[12].Day != "2026-11-22" || r.Days[11].Jobs != 1 ||
		r.Days[5].Readers != 0 {
		t.Errorf("days %+v", r.Days)
	}
	if last, first := r.Days[12].TableRows,
		r.Days[0].TableRows; last == nil || *last != 11 || first == nil || *first != 0 {
		t.Errorf("the table has %v rows on the last day, %v on the first", last, first)
	}
	if v := r.Summary; v.FeaturesRead != 2 || v.BytesReadShare <= 0 || v.BytesReadShare >= 1 ||
		v.LastRead != "2026-11-21T01:00:00Z" || v.Reads.Jobs != 2 {
		t.Errorf("%+v", v)
	}
	if h := r.Health.Records; h.First != "2026-11-10" || h.Last != "2026-11-21" || h.Damaged != 1 ||
		!slices.Equal(h.DamagedNames, []string{"tables/t/usage/x: checksum mismatch"}) {
		t.Errorf("%+v", h)
	}
}

// TestReadsOfOverlays: those that are read are of the features that the table has, without those of overlays.
func TestReadsOfOverlays(t *testing.T) {
	s, _, summary := small(t)
	summary.Features = nil
	for _, f := range build(t, s, Options{}).Features {
		id, err := strconv.ParseUint(f.ID, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		summary.Features = append(summary.Features,
			usage.FeatureTotal{FeatureUse: usage.FeatureUse{ID: catalog.FeatureID(id), Readers: 1, Last: day(21)},
				First: day(21)})
	}
	v := build(t, s, Options{Usage: reads(summary)}).Summary
	if v.FeaturesRead != v.Features || v.Features == 0 || v.BytesReadShare != 1 {
		t.Errorf("%d features of %d, %v of the bytes", v.FeaturesRead, v.Features, v.BytesReadShare)
	}
}

// TestCurve: features are taken in the order of bytes read for each stored.
func TestCurve(t *testing.T) {
	feature := func(stored, read uint64) Feature {
		return Feature{StoredBytes: stored, Use: Use{BytesNeeded: read}}
	}
	c := curveOf([]Feature{feature(500, 0), feature(100, 100), feature(300, 100), feature(100, 800), feature(0, 0)})
	want := []CurvePoint{{}, {0.1, 0.8, 1}, {0.2, 0.9, 2}, {0.5, 1, 3}, {1, 1, 4}, {1, 1, 5}}
	if !reflect.DeepEqual(c.Points, want) {
		t.Errorf("%v, want %v", c.Points, want)
	}
	if want := []CurvePoint{want[1], want[1], want[2], want[3], want[3]}; !reflect.DeepEqual(c.Marks, want) {
		t.Errorf("marks %v, want %v", c.Marks, want)
	}
	var many []Feature
	for i := range 20_000 {
		many = append(many, feature(10, uint64(i*i)))
	}
	c = curveOf(many)
	if n := len(c.Points); n > curvePoints+1 || c.Points[n-1] != (CurvePoint{1, 1, 20_000}) {
		t.Errorf("%d points, the last %v", n, c.Points[n-1])
	}
	for i := 1; i < len(c.Points); i++ {
		a, b := c.Points[i-1], c.Points[i]
		if b.Bytes <= a.Bytes || b.Traffic < a.Traffic || b.Traffic < b.Bytes-1e-9 {
			t.Fatalf("%v after %v", b, a)
		}
	}
	if c := curveOf([]Feature{feature(5, 0)}); len(c.Points) != 0 {
		t.Errorf("a curve of no reads: %v", c)
	}
}

// TestHoldings: what goes when old snapshots expire, a branch is dropped, a lease ends, and nothing of what two of them
// hold.
func TestHoldings(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	o := ingest.Options{PartitionBy: "day", Overwrite: true}
	row := func(day string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"x": %d, "day": %q}`+"\n", i, day)
		}
		return b.String()
	}
	bytesOf := func(snap *storage.Snapshot) uint64 { return snap.Info().Bytes }
	one := latest(t, jsonRows(t, s, row("a", 10), o)) // 1
	two := latest(t, jsonRows(t, s, row("a", 20), o)) // 2: 1 is gone
	table := jsonRows(t, s, row("a", 30), o)          // 3: 2 is gone
	r := build(t, s, Options{})
	h := r.Health.Snapshots
	if h.First != 1 || h.Newest != 3 || h.AloneBytes != bytesOf(one)+bytesOf(two) || len(h.Holding) != 2 {
		t.Fatalf("%+v, of %d and %d bytes", h, bytesOf(one), bytesOf(two))
	}
	if a, b := h.Holding[0], h.Holding[1]; a.Snapshot != 2 || a.Bytes != bytesOf(two) || b.Snapshot != 1 ||
		b.Bytes != bytesOf(one) || a.Next != "overwrite" {
		t.Errorf("%+v", h.Holding)
	}
	change := commit.Change{Operation: "branch", Base: 3,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 1, Created: testNow}}}}
	if _, err := table.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
	lease, err := two.Lease(ctx, "ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(ctx) }()
	other, err := two.Lease(ctx, "bob", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Release(ctx) }()
	// Held by the history and by others: neither alone frees it.
	r = build(t, s, Options{})
	if h := r.Health; h.Snapshots.AloneBytes != 0 || h.Branches[0].AloneBytes != 0 || h.Leases[0].AloneBytes != 0 {
		t.Errorf("%+v %+v %+v", h.Snapshots, h.Branches, h.Leases)
	}
	if _, err := table.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	r = build(t, s, Options{})
	if h := r.Health; h.Snapshots.AloneBytes != 0 || len(h.Branches) != 1 || h.Branches[0].AloneBytes != bytesOf(one) ||
		len(h.Leases) != 2 ||
		h.Leases[0].AloneBytes != bytesOf(two) || h.Leases[1].AloneBytes != bytesOf(two) {
		t.Errorf("%+v %+v %+v, of %d and %d bytes", h.Snapshots, h.Branches, h.Leases, bytesOf(one), bytesOf(two))
	}
}
