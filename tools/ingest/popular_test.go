package ingest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// What is read more often comes first, and among what is read about as often, what the same jobs read lies together.
func TestReadsKeepJobsTogether(t *testing.T) {
	features := make([]catalog.Feature, 9)
	for i := range features {
		features[i] = catalog.Feature{ID: catalog.FeatureID(i + 1), Name: fmt.Sprint(i)}
	}
	job := func(name string, bytes uint64, stripes uint64, read ...int) usage.JobTotal {
		j := usage.JobTotal{Job: name, Counters: usage.Counters{BytesNeeded: bytes}}
		for _, i := range read {
			j.Features = append(j.Features, usage.JobFeature{ID: features[i].ID, Stripes: stripes})
		}
		return j
	}
	// Fetched: 0 and 7 80 times by both, 2, 4 and 6 32 times by a, 1, 3 and 5 48 times by b, as often to a power of
	// two; 8 never.
	r := &Reads{&usage.Summary{Jobs: []usage.JobTotal{job("a", 5, 32, 0, 2, 4, 6, 7), job("b", 9, 48, 1, 0, 3, 5, 7),
		job("c", 1, 0, 8)}}}
	popular := r.Popularity(features)
	order := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case popular[x] > popular[y]:
			return -1
		case popular[x] < popular[y]:
			return 1
		}
		return 0
	})
	if got := fmt.Sprint(order); got != "[0 7 1 3 5 2 4 6 8]" || popular[8] != 0 || popular[2] <= 0 {
		t.Errorf("order %s of %v", got, popular)
	}
	// Jobs beyond those that fit the number count, but tell nothing apart.
	many := &usage.Summary{}
	for i := range 60 {
		many.Jobs = append(many.Jobs, job(fmt.Sprint(i), uint64(100-i), 1, 0, i%8+1))
	}
	popular = (&Reads{many}).Popularity(features)
	if popular[0] <= popular[1] || popular[1] < popular[2] {
		t.Errorf("60 jobs: %v", popular)
	}
}

// Reads of the last days count, and those before do not; a table that nobody read has none.
func TestRecentlyRead(t *testing.T) {
	ctx := context.Background()
	store, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := RecentlyRead(ctx, table, PopularDays); r != nil || err != nil {
		t.Fatalf("nothing was read: %v, %v", r, err)
	}
	now := time.Now()
	w, err := usage.NewWriter(table, usage.Options{Now: func() time.Time { return now }, Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	for ago, id := range map[int]catalog.FeatureID{0: 1, 6: 2, 7: 3, 40: 4} {
		w.Add(&usage.Record{Key: usage.Key{Job: "j", User: "u", Program: "go"}, End: now.AddDate(0, 0, -ago),
			Counters: usage.Counters{Readers: 1},
			Features: []usage.FeatureUse{{ID: id, Name: fmt.Sprint(id), Readers: 1, Stripes: 1}}})
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{1: "[1]", 7: "[1 2]", 8: "[1 2 3]", 100: "[1 2 3 4]"} {
		r, err := RecentlyRead(ctx, table, days)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		var ids []catalog.FeatureID
		for _, f := range r.Features {
			ids = append(ids, f.ID)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("in %d days features %s were read, want %s", days, got, want)
		}
	}
}
