package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

type popular map[string]float64

func (p popular) Popularity(features []catalog.Feature) []float64 {
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
		g, err := x.store.Segments().Open(context.Background(), x.segments(x.latest())[0])
		x.check(err)
		entries, err := g.Entries(context.Background())
		x.check(err)
		slices.SortFunc(entries, func(a, b *segment.Entry) int { return int(a.Offset) - int(b.Offset) })
		for _, e := range entries {
			names = append(names, e.Meta.Name)
		}
		return names
	}
	if got := fmt.Sprint(order(nil)); got != "[session time id name history]" &&
		got != "[session time name id history]" {
		t.Errorf("by size: %s", got)
	}
	if got := fmt.Sprint(order(popular{"history": 9, "time": 5, "name": 1})); got != "[session time history name id]" {
		t.Errorf("by popularity: %s", got)
	}
}

// A plan says which features its packs will begin with, and why.
func TestPlanSaysPackOrder(t *testing.T) {
	x := newTester(t, object.NewMemory(), 9)
	x.ingest(x.newRows(40, 1))
	plan := func(p Popularity, repack bool) *Plan {
		opts := x.options()
		opts.Repack, opts.Popularity = repack, p
		out, err := NewPlan(t.Context(), x.table, opts)
		x.check(err)
		return out
	}
	if p := plan(popular{"history": 9}, false); len(p.Jobs) != 0 || p.Packs != nil {
		t.Errorf("nothing is rewritten, and packs are %v", p.Packs)
	}
	for _, p := range []Popularity{nil, popular{}} {
		got := plan(p, true)
		if o := got.Packs; o.By != "size" || o.Read != 0 || o.Unread != 5 || len(o.Popular) != 0 ||
			!strings.Contains(got.String(), o.String()) {
			t.Errorf("nothing is known of what is read: %+v", o)
		}
	}
	got := plan(popular{"history": 9, "time": 5, "name": 1}, true)
	o := got.Packs
	if want := "[{time time key 5} {history  9} {name  1}]"; o.By != "popularity" || fmt.Sprint(o.Popular) != want ||
		o.Read != 3 || o.Unread != 2 {
		t.Errorf("%+v, want %s", o, want)
	}
	line := "packs: keys and labels first, then what is read most: time, history, name; " +
		"then 2 that are not read, from small to large\n"
	if !strings.Contains(got.String(), line) {
		t.Errorf("%s does not say: %s", got, line)
	}
	long := &PackOrder{By: "popularity", Read: 20}
	for i := range long.Read {
		long.Popular = append(long.Popular, PopularFeature{Name: fmt.Sprint("f", i), Popularity: 1})
	}
	if text := long.String(); !strings.HasSuffix(text, ", and 12 more") {
		t.Errorf("20 features are %s", text)
	}
}
