package storage

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// A table keeps the properties that commits set, each as it was set last, and in each snapshot as it was then.
func TestProperties(t *testing.T) {
	blobs := object.NewMemory()
	tab := newTable(t, blobs)
	want := []map[string]string{
		{}, {"profile": "size"}, {"profile": "size", "other": "é"}, {"profile": "size",
			"other": "é"}, {"profile": "speed", "other": "é"},
	}
	for i, set := range []map[string]string{nil, {"profile": "size"}, {"other": "é"}, {"profile": "size"},
		{"profile": "speed"}} {
		d, err := fakeSegment(t.Context(), tab, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Commit(t.Context(), commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddSegments{d}, commit.SetProperties(set)}}); err != nil {
			t.Fatal(err)
		}
		for n := range i + 1 {
			s, err := newTable(t, blobs).At(t.Context(), uint64(n+1))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"profile", "other", "none"} {
				if got, err := s.Property(t.Context(), name); err != nil || got != want[n][name] {
					t.Errorf("after %d commits, snapshot %d: %s is %q, want %q: %v", i+1, n+1, name, got,
						want[n][name], err)
				}
			}
		}
	}
	for _, set := range []map[string]string{{"": "x"}, {strings.Repeat("x", 65): "x"}, {"x": "\xff"},
		{"x": strings.Repeat("x", 1025)}, {"partition_keys": "ds="}} {
		if _, err := tab.Commit(t.Context(), commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.SetProperties(set)}}); err == nil {
			t.Errorf("properties %.20q are taken", set)
		}
	}
}

// A table whose last segment goes keeps its partition keys, until it gets segments of others.
func TestPartitionKeysStay(t *testing.T) {
	ctx := t.Context()
	blobs := object.NewMemory()
	tab := newTable(t, blobs)
	check := func(what string, want ...string) {
		t.Helper()
		s, err := newTable(t, blobs).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.PartitionKeys(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q %v, want %q", what, got, err, want)
		}
	}
	commit := func(remove string, p catalog.Partition) string {
		t.Helper()
		c := commit.Change{Operation: "test"}
		if remove != "" {
			c.Set(commit.RemoveSegments{remove})
		}
		if p != nil {
			d, err := fakeSegment(ctx, tab, p, 10)
			if err != nil {
				t.Fatal(err)
			}
			c.Set(commit.AddSegments{d})
			remove = d.ID
		}
		if _, err := tab.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		return remove
	}
	a := commit("", catalog.Partition{{Key: "d/s=", Value: "1"}, {Key: "hr", Null: true}})
	check("filled", "d/s=", "hr")
	commit(a, nil)
	check("emptied", "d/s=", "hr")
	b := commit("", catalog.Partition{{Key: "day", Value: ""}})
	check("filled otherwise", "day")
	commit(b, nil)
	check("emptied again", "day")
	long := catalog.Partition{}
	for i := range catalog.MaxPartitionKeys {
		long = append(long, catalog.PartitionValue{Key: strings.Repeat("k", 30) + string(rune('a'+i%26)) +
			string(rune('a'+i/26))})
	}
	d := commit("", long)
	commit(d, nil)
	check("of more than a property holds")
	c := commit("", catalog.Partition{})
	check("without partitions")
	commit(c, nil)
	check("emptied, without partitions")
}
