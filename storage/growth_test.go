package storage

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/verify"
)

// TestGrowth: what opening, time travel and a commit cost does not grow with the history and the size of a table but by
// the logarithm; listing the history and gc cost a bounded number of requests, and of bytes, for each snapshot.
func TestGrowth(t *testing.T) {
	ctx := t.Context()
	if race.Short() {
		t.Skip("thousands of commits")
	}
	type cost struct{ requests, bytes int64 }
	costs := map[string][]cost{}
	sizes := []int{256, 4096}
	for _, n := range sizes {
		mem := object.NewMemory()
		counted := object.NewCounted(mem)
		now := time.Unix(0, 0)
		s, err := Create(ctx, counted, Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
		if err != nil {
			t.Fatal(err)
		}
		tab, err := s.NewTable(ctx, "ads")
		if err != nil {
			t.Fatal(err)
		}
		var firstHalf object.Counts
		for i := range n {
			d, err := fakeSegment(ctx, tab, partition("ds", fmt.Sprint(i%10)), 10)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
				t.Fatal(err)
			}
			if i == n/2 {
				firstHalf = counted.Counts()
			}
		}
		half := counted.Counts().Sub(firstHalf) // on average: now and then a commit makes a run
		costs["commit"] = append(costs["commit"], cost{(half.Requests() + half.Writes) / int64(n/2),
			(half.BytesRead + half.BytesWritten) / int64(n/2)})
		measure := func(what string, per int, op func(tab *Table) error) {
			before := counted.Counts()
			if err := op(newTable(t, counted)); err != nil {
				t.Fatal(what, err)
			}
			c := counted.Counts().Sub(before)
			costs[what] = append(costs[what], cost{c.Requests() / int64(per), c.BytesRead / int64(per)})
		}
		measure("latest", 1, func(tab *Table) error { _, err := tab.Latest(ctx); return err })
		measure("at", 1, func(tab *Table) error { _, err := tab.At(ctx, uint64(n/3)); return err })
		measure("as of", 1, func(tab *Table) error {
			s, err := tab.AsOf(ctx, time.Unix(int64(n/3), 1))
			if err == nil && s.Info().Number != uint64(n/3) {
				err = fmt.Errorf("snapshot %d, want %d", s.Info().Number, n/3)
			}
			return err
		})
		measure("verify's totals", n, func(tab *Table) error {
			damage, err := verify.Totals(ctx, tab.log, uint64(n))
			return errors.Join(append(damage, err)...)
		})
		measure("history", n, func(tab *Table) error { _, err := tab.Snapshots(ctx); return err })
		measure("gc", n, func(tab *Table) error { _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); return err })
	}
	for what, most := range map[string]cost{
		"commit":          {8, 80 << 10},
		"latest":          {3, 64 << 10}, // the marker, a listing, the snapshot
		"at":              {3, 64 << 10}, // the marker, a stat, the snapshot,
		"as of":           {32, 64 << 10},
		"history":         {2, 300},
		"verify's totals": {0, 2 << 10}, // a segment: its listing is read in large pieces
		"gc":              {4, 64 << 10},
	} {
		for i, c := range costs[what] {
			t.Logf("%s at %d snapshots: %d requests, %d bytes", what, sizes[i], c.requests, c.bytes)
			if c.requests > most.requests || c.bytes > most.bytes {
				t.Errorf("%s at %d snapshots: %+v, want at most %+v", what, sizes[i], c, most)
			}
		}
	}
}
