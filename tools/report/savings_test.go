package report

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/selection"
)

// addsUp checks that savings add up to the byte, for the table and for each feature, and that both ends are what
// reading all rows and listing all objects say. widened are features whose source was narrower than what is read.
func addsUp(t *testing.T, s *storage.Store, snap *storage.Snapshot, r *Table) {
	t.Helper()
	sum := int64(0)
	for _, c := range r.Savings.Causes {
		sum += c.Bytes
		t.Logf("%s %d (%d estimated)", c.Cause, c.Bytes, c.EstimatedBytes)
	}
	if want := int64(r.Savings.RawBytes) - int64(r.Savings.StoredBytes); sum != want || want == 0 {
		t.Errorf("causes come to %d, want %d - %d", sum, r.Savings.RawBytes, r.Savings.StoredBytes)
	}
	if want := objectBytes(t, s, snap); r.Savings.StoredBytes != want {
		t.Errorf("%d bytes stored, want %d", r.Savings.StoredBytes, want)
	}
	raw := uint64(0)
	for _, f := range r.Features {
		sum := int64(0)
		for _, n := range f.Saved {
			sum += n
		}
		if want := int64(f.RawBytes) - int64(f.StoredBytes); sum != want {
			t.Errorf("%s: causes come to %d, want %d - %d: %v", f.Name, sum, f.RawBytes, f.StoredBytes, f.Saved)
		}
		raw += f.RawBytes
	}
	if raw != r.Savings.RawBytes {
		t.Errorf("features have %d raw bytes, the table %d", raw, r.Savings.RawBytes)
	}
}

// rawEquals checks raw bytes against those of all rows.
func rawEquals(t *testing.T, snap *storage.Snapshot, r *Table) {
	t.Helper()
	want := plainBytes(t, snap)
	for _, f := range r.Features {
		if f.RawBytes != want[f.Name] {
			t.Errorf("%s: %d raw bytes, its rows have %d", f.Name, f.RawBytes, want[f.Name])
		}
	}
}

// TestSavingsGenerated: a table as it was ingested, whose runs, slots, partial duplicates and groups all save
// something.
func TestSavingsGenerated(t *testing.T) {
	s := openStore(t)
	snap := latest(t, generated(t, s, 1600))
	r := build(t, s, Options{})
	addsUp(t, s, snap, r)
	rawEquals(t, snap, r)
	for _, c := range r.Savings.Causes {
		costs := c.Cause == CauseShape || c.Cause == CauseInverses || c.Cause == CauseFrames
		if c.Bytes == 0 || (c.Bytes < 0) != costs {
			t.Errorf("%s saves %d", c.Cause, c.Bytes)
		}
	}
	if r.Savings.DuplicatesSaved == 0 || len(r.Groups) == 0 || r.Summary.DedupeFactor < 2 {
		t.Errorf("duplicates saved %d, groups %v, factor %v", r.Savings.DuplicatesSaved, r.Groups,
			r.Summary.DedupeFactor)
	}
}

// TestSavingsForeign: a table of ratings that other programs wrote.
func TestSavingsForeign(t *testing.T) {
	path := filepath.Join(testdata(t), "parquet", "parquet-testing", "data", "alltypes_plain.parquet")
	if !testing.Short() && !race.Enabled {
		path = filepath.Join(testdata(t), "recsys", "derived", "ml-latest-small.session.parquet")
	}
	s := openStore(t)
	o := ingest.Options{}
	if !testing.Short() && !race.Enabled {
		o = ingest.Options{SessionKey: "session_id", TimeKey: "timestamp"}
	}
	snap := latest(t, ingested(t, s, path, o))
	r := build(t, s, Options{})
	addsUp(t, s, snap, r)
	rawEquals(t, snap, r)
}

// TestSavingsLayered: partial duplicates, groups, deleted rows, a dropped feature, overlays, a sample list; and after
// compaction has taken out what it can.
func TestSavingsLayered(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	table := generated(t, s, 1200)
	whole := plainBytes(t, latest(t, table))
	if _, err := selection.Delete(ctx, table, &selection.Query{Where: "click = 1"}, selection.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := selection.Create(ctx, table, "some", &selection.Query{Where: "conversion = 0"}, false,
		selection.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := overlay.Add(ctx, s, "t", "more", overlay.Options{Exprs: []string{"bought = conversion = 1"},
		Role: catalog.RoleLabel}); err != nil {
		t.Fatal(err)
	}
	dropped := catalog.FeatureDropped
	change := commit.Change{Operation: "features",
		Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "user_history_00000", Status: &dropped}}}}
	if _, err := table.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
	snap := latest(t, table)
	r := build(t, s, Options{})
	addsUp(t, s, snap, r)
	for _, f := range r.Features {
		if f.Status != statusOverlay && f.RawBytes != whole[f.Name] {
			t.Errorf("%s: %d raw bytes, its rows have %d", f.Name, f.RawBytes, whole[f.Name])
		}
		if f.Name == "user_history_00000" && f.Status != "dropped" || f.Name == "bought" &&
			(f.Status != statusOverlay || f.LayerBytes == 0) {
			t.Errorf("%+v", f)
		}
	}
	v := &r.Savings
	if i := snap.Info(); v.Deleted.Count != i.DeletedRows || v.Deleted.Count == 0 ||
		v.Deleted.Bytes*i.Rows > 2*i.DeletedRows*i.Bytes {
		t.Errorf("deleted %+v of %+v", v.Deleted, i)
	}
	if v.Dropped.Count != 1 || v.Dropped.Segments != snap.Info().Segments || v.Dropped.Bytes == 0 {
		t.Errorf("dropped %+v", v.Dropped)
	}
	if len(v.Overlays) != 1 || v.Overlays[0].Bytes != r.Summary.LayerBytes+overlayFrames(t, snap) ||
		v.Overlays[0].SavedBytes != snap.Info().Bytes {
		t.Errorf("overlays %+v, layers of %d", v.Overlays, r.Summary.LayerBytes)
	}
	if len(v.Lists) != 1 || v.Lists[0].Rows == 0 || v.Lists[0].Rows >= snap.Info().Rows || v.Lists[0].SavedBytes == 0 {
		t.Errorf("lists %+v", v.Lists)
	}

	plan, err := compaction.NewPlan(ctx, table, compaction.Options{Repack: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compaction.Run(ctx, table, plan, compaction.Options{Repack: true}); err != nil {
		t.Fatal(err)
	}
	snap = latest(t, table)
	r = build(t, s, Options{})
	addsUp(t, s, snap, r)
	if v := &r.Savings; v.Deleted != (Waiting{}) || v.Dropped != (Waiting{}) {
		t.Errorf("after compaction deleted %+v, dropped %+v", v.Deleted, v.Dropped)
	}
	live := plainBytes(t, snap)
	for _, f := range r.Features {
		if f.Status == "" && f.RawBytes != live[f.Name] {
			t.Errorf("%s: %d raw bytes after compaction, its rows have %d", f.Name, f.RawBytes, live[f.Name])
		}
	}
}

// overlayFrames returns what of the layers is in no feature file.
func overlayFrames(t *testing.T, snap *storage.Snapshot) uint64 {
	t.Helper()
	overlays, err := snap.Overlays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, o := range overlays {
		err := snap.EachOverlaySegment(t.Context(), o, func(l catalog.OverlaySegment) error {
			n += l.Data.Bytes
			g, err := snap.OpenSegment(t.Context(), l.Data)
			if err != nil {
				return err
			}
			entries, err := g.Entries(t.Context())
			for _, e := range entries {
				n -= e.Length
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}
