package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/verify"
)

// commitFeatures adds features to a table, in a segment that no one opens.
func commitFeatures(t *testing.T, tab *Table, features ...catalog.Feature) *Snapshot {
	t.Helper()
	d, err := fakeSegment(t.Context(), tab, nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tab.Commit(t.Context(), commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features), commit.AddSegments{d}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func withRole(f catalog.Feature, r catalog.Role) catalog.Feature {
	f.Role = r
	return f
}

// wantKeyFeatures compares what a new process finds with what the whole schema says, and returns the requests and bytes
// of it.
func wantKeyFeatures(t *testing.T, blobs object.Store) (requests, bytes int64) {
	t.Helper()
	counted := object.NewCounted(blobs)
	s, err := newTable(t, counted).Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := counted.Counts()
	got, err := s.KeyFeatures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cost := counted.Counts().Sub(before)
	want, err := s.Features(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(f catalog.Feature) bool { return !f.Role.IsKey() })
	if !slices.Equal(got, want) {
		t.Fatalf("%v, the schema has %v", got, want)
	}
	return cost.Requests(), cost.BytesRead
}

// The keys are found without the schema, whatever its size, wherever its entries lie, and also those that came later.
func TestKeyFeaturesCost(t *testing.T) {
	for _, tail := range []uint64{1, 2000, 1 << 20} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		tab.s.core.Trees.MemtableBytes = tail
		var features []catalog.Feature
		for i := range 5000 {
			features = append(features, feature(fmt.Sprintf("f%05d", i), int64Type))
		}
		features = append(features, withRole(feature("session", int64Type), catalog.RoleSessionKey),
			withRole(feature("at", int64Type), catalog.RoleTimeKey),
			withRole(feature("click", int64Type), catalog.RoleLabel))
		commitFeatures(t, tab, features...)
		commitFeatures(t, tab, withRole(feature("user", int64Type), catalog.RoleUserKey), feature("session", int64Type),
			feature("zz", int64Type))
		commitFeatures(t, tab, feature("session", int64Type))
		s, err := tab.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if k, err := s.NotedKeyFeatures(t.Context()); err != nil || k == nil || len(k.Keys) != 3 || k.Of != 5005 {
			t.Fatalf("noted: %+v, %v", k, err)
		}
		requests, bytes := wantKeyFeatures(t, mem)
		// The top of each of two runs, then an index partition and a block for the entry and for each name.
		if requests > 14 || bytes > 32<<10 {
			t.Errorf("tail of %d bytes: %d requests, %d bytes", tail, requests, bytes)
		}
		if r, err := tab.s.Verify(t.Context(), "", true, nil); err != nil || hasKeyDamage(r) {
			t.Fatal(err, r.Damage)
		}
	}
}

func hasKeyDamage(r *verify.Report) bool {
	return slices.ContainsFunc(r.Damage, func(err error) bool { return strings.Contains(err.Error(), "key features") })
}

// A table of writers that do not know the entry, or stopped to, is read as before: through the schema.
func TestKeyFeaturesOfOtherWriters(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	commitFeatures(t, tab, withRole(feature("session", int64Type), catalog.RoleSessionKey))
	wantKeyFeatures(t, mem)
	// Such a writer adds a key, and leaves the entry as it is.
	rewrite := func(change func(m *snapshot.Manifest)) {
		t.Helper()
		s, err := newTable(t, mem).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := s.Manifest
		m.Info.Number++
		m.Info.AddedRows = 0
		m.Parent, m.Commit = m.Commit, names.RandomID()
		change(&m)
		if err := mem.PutIfAbsent(ctx, names.SnapshotName("ads", m.Info.Number), snapshot.AppendManifest(nil,
			m)); err != nil {
			t.Fatal(err)
		}
	}
	other := withRole(feature("user", int64Type), catalog.RoleUserKey)
	rewrite(func(m *snapshot.Manifest) {
		m.Info.Features++
		m.Schema.Memtable = lsm.MergeEntries(m.Schema.Memtable, lsm.SortEntries([]lsm.Entry{
			{Key: catalog.NameKey("user"), Value: catalog.AppendFeature(nil, other)},
			{Key: catalog.FeatureIDKey(other.ID), Value: []byte("user")},
		}))
	})
	wantKeyFeatures(t, mem)
	// The entry never holds again.
	commitFeatures(t, newTable(t, mem), withRole(feature("at", int64Type), catalog.RoleTimeKey))
	wantKeyFeatures(t, mem)
	// None at all.
	rewrite(func(m *snapshot.Manifest) {
		m.Schema.Memtable = slices.DeleteFunc(slices.Clone(m.Schema.Memtable),
			func(e lsm.Entry) bool { return e.Key[0] == catalog.KeyFeaturesSpace })
	})
	wantKeyFeatures(t, mem)
	commitFeatures(t, newTable(t, mem), withRole(feature("request", int64Type), catalog.RoleRequestKey))
	wantKeyFeatures(t, mem)
	// What lies is found.
	for _, value := range [][]byte{
		{4}, {4, 2}, {4, 1, 1, 'a'}, {}, catalog.AppendKeyFeatures(nil, catalog.KeyFeatures{Of: 4,
			Keys: []catalog.KeyFeature{{Role: catalog.RoleUserKey, Name: "session"}}}),
		catalog.AppendKeyFeatures(nil, catalog.KeyFeatures{Of: 4, Keys: []catalog.KeyFeature{{Role: catalog.RoleUserKey,
			Name: "nobody"}}}),
	} {
		rewrite(func(m *snapshot.Manifest) {
			m.Schema.Memtable = lsm.MergeEntries(m.Schema.Memtable, []lsm.Entry{{Key: catalog.KeyFeaturesKey(),
				Value: value}})
		})
		r, err := newTable(t, mem).s.Verify(ctx, "", false, nil)
		if err != nil || !hasKeyDamage(r) {
			t.Errorf("%x: %v, %v", value, err, r.Damage)
		}
	}
}

// A table of more keys than the entry holds has none: wantKeyFeatures reads them from the schema then.
func TestKeyFeaturesAreBounded(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	for i := range 3 {
		commitFeatures(t, tab, withRole(feature(strings.Repeat(fmt.Sprint(i), 2000), int64Type),
			catalog.RoleRequestKey))
		wantKeyFeatures(t, mem)
	}
	s, err := tab.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := tab.s.core.Trees.Get(t.Context(), s.Manifest.Schema, catalog.KeyFeaturesKey()); err != nil ||
		v[0] != nil {
		t.Fatal(len(v[0]), err)
	}
}
