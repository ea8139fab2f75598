package selection

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// A ledger is a store that keeps how much was read of each object.
type ledger struct {
	object.Store
	mu    sync.Mutex
	bytes map[string]uint64 // guarded by mu
}

func (l *ledger) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	l.mu.Lock()
	l.bytes[name] += uint64(len(p))
	l.mu.Unlock()
	return l.Store.ReadAt(ctx, name, p, off)
}

// fetched returns how much was read of objects since it was asked last.
func (l *ledger) fetched(objects map[string]bool) (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, bytes := range l.bytes {
		if objects[name] {
			n += bytes
		}
	}
	clear(l.bytes)
	return n
}

// TestFindingIsRecorded: what is read to count rows, to delete them and to make lists of them is recorded, each under
// its purpose, and says what the directories of the segments and a count of what was read of their files say.
func TestFindingIsRecorded(t *testing.T) {
	ctx := t.Context()
	blobs := &ledger{Store: object.NewMemory(), bytes: map[string]uint64{}}
	w := newWorld(t, blobs)
	w.ingest("1", 130, false)
	w.ingest("2", 90, false)
	snap := w.latest()
	// What all stripes of a feature are, and which objects hold them.
	type whole struct{ stripes, rows, bytes uint64 }
	sizes, files := map[string]whole{}, map[string]bool{}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range segments {
		index, err := snap.OpenSegment(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"number", "name", "user"} {
			f, err := snap.Lookup(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := index.Lookup(ctx, f[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			x := sizes[name]
			for _, s := range entries[0].Meta.Stripes {
				x.stripes++
				x.bytes += s.Length
			}
			_, dictionary := entries[0].Meta.Dictionary.Range()
			x.bytes += dictionary
			x.rows += d.Rows
			sizes[name], files[entries[0].Object] = x, true
		}
	}

	recorder, err := usage.NewWriter(w.table, usage.Options{Interval: -1, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	records := reader.UsageOptions{Writer: recorder, Job: "nightly"}
	read := reader.Options{Usage: records}
	// Of samples statistics know nothing: every stripe is read. Each with a seed of its own, so that nothing is known
	// from the one before.
	sample := func(key string, seed int) string { return fmt.Sprintf("sample(0.3, key=%s, seed=%d)", key, seed) }
	keys := w.file("keys.txt", "name\nrequest-1\nrequest-77\n")
	wanted := map[string]map[string]whole{}
	for _, x := range []struct {
		purpose string
		feature string
		find    func() error
	}{
		{usage.PurposeCount, "number", func() error {
			_, err := reader.Matching(ctx, snap, reader.PlanOptions{Filter: sample("number", 1)},
				reader.LayoutOptions{Read: read})
			return err
		}},
		{usage.PurposeCount, "name", func() error {
			_, err := (&Query{Where: sample("name", 2)}).Find(ctx, snap, read)
			return err
		}},
		{usage.PurposeDelete, "number", func() error {
			_, err := Delete(ctx, w.table, &Query{Where: sample("number", 3)}, Options{Read: read, DryRun: true})
			return err
		}},
		{usage.PurposeDelete, "name", func() error {
			_, err := Delete(ctx, w.table, &Query{Keys: &KeySource{Feature: "name", Paths: []string{keys}}},
				Options{Read: read, DryRun: true})
			return err
		}},
		{usage.PurposeSelect, "user", func() error {
			_, err := Create(ctx, w.table, "some", &Query{Where: sample("user", 4)}, false, Options{Read: read})
			return err
		}},
	} {
		blobs.fetched(files)
		before := total(t, recorder, w.table)
		if err := x.find(); err != nil {
			t.Fatal(err)
		}
		fetched := blobs.fetched(files)
		after := total(t, recorder, w.table)
		if got := after.BytesRead() - before.BytesRead(); got != fetched || fetched < sizes[x.feature].bytes {
			t.Errorf("%s by %s: %d bytes recorded, %d read, %d of the feature", x.purpose, x.feature, got, fetched,
				sizes[x.feature].bytes)
		}
		if after.Readers != before.Readers+1 || after.Requests == before.Requests ||
			after.BytesNeeded-before.BytesNeeded != sizes[x.feature].bytes {
			t.Errorf("%s by %s: %+v after %+v", x.purpose, x.feature, after, before)
		}
		if wanted[x.purpose] == nil {
			wanted[x.purpose] = map[string]whole{}
		}
		wanted[x.purpose][x.feature] = sizes[x.feature]
	}
	// Of what is known nothing is read, but that it is needed is recorded; and where recording is off nothing is.
	before := total(t, recorder, w.table)
	if _, err := reader.Matching(ctx, snap, reader.PlanOptions{Filter: sample("number", 1)},
		reader.LayoutOptions{Read: read}); err != nil {
		t.Fatal(err)
	}
	after := total(t, recorder, w.table)
	if after.Readers != before.Readers+1 || after.Requests != before.Requests ||
		after.BytesRead() != before.BytesRead() {
		t.Errorf("%+v after %+v", after, before)
	}
	before, read.Usage.Off = after, true
	if _, err := Delete(ctx, w.table, &Query{Where: sample("number", 5)},
		Options{Read: read, DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if after := total(t, recorder, w.table); after != before {
		t.Errorf("%+v after %+v", after, before)
	}

	got := map[string]map[string]whole{}
	if _, err := usage.Walk(ctx, w.table, time.Time{}, time.Time{}, func(_ time.Time, r *usage.Record) error {
		if r.Job != "nightly" || r.User != "ann" || r.Program != "go" {
			t.Errorf("%+v", r.Key)
		}
		if got[r.Purpose] == nil {
			got[r.Purpose] = map[string]whole{}
		}
		for _, u := range r.Features {
			x := got[r.Purpose][u.Name]
			got[r.Purpose][u.Name] = whole{x.stripes + u.Stripes, x.rows + u.Rows, x.bytes + u.BytesNeeded}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("recorded %v, want %v", got, wanted)
	}
}

// total writes what was recorded and returns the sum.
func total(t *testing.T, w *usage.Writer, table *storage.Table) usage.Counters {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := usage.Load(t.Context(), table, time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Total
}
