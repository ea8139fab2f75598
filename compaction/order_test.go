package compaction

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

type popular map[string]float64

func (p popular) Popularity(features []storage.Feature) []float64 {
	out := make([]float64, len(features))
	for i, f := range features {
		out[i] = p[f.Name]
	}
	return out
}

// TestPackOrder: in the packs keys come first, then what is read most, then what is small.
func TestPackOrder(t *testing.T) {
	x := newTester(t, object.NewMemory(), 9)
	x.ingest(x.newRows(40, 1))
	order := func(p Popularity) (names []string) {
		opts := x.options()
		opts.Repack, opts.Popularity = true, p
		opts.Write.Dedup = "off" // no groups, which lie together
		x.compact(opts)
		x.verify("packed")
		g, err := x.store.OpenSegment(context.Background(), x.segments(x.latest())[0])
		x.check(err)
		entries, err := g.Entries(context.Background())
		x.check(err)
		slices.SortFunc(entries, func(a, b *storage.FeatureEntry) int { return int(a.Offset) - int(b.Offset) })
		for _, e := range entries {
			names = append(names, e.Meta.Name)
		}
		return names
	}
	if got := fmt.Sprint(order(nil)); got != "[session time id name history]" && got != "[session time name id history]" {
		t.Errorf("by size: %s", got)
	}
	if got := fmt.Sprint(order(popular{"history": 9, "time": 5, "name": 1})); got != "[session time history name id]" {
		t.Errorf("by popularity: %s", got)
	}
}
