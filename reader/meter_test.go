package reader

import (
	"context"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/storage/catalog"
)

// What is counted of each feature is what the files' directories say of the stripes that have a row, and adds up to
// what is counted in all.
func TestMeterEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		s := open(t, l, drawOptions(t))
		defer s.Close()
		s.x.Stats.Meter.Begin(len(l.features))
		s.tried = rapid.Bool().Draw(t, "never inline")
		for {
			b, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		checkMeter(t, s.x.Stats, l)
		if table.overlays.defined == nil {
			checkMetered(t, table, s.x.Stats, l)
		}
	})
}

// checkMeter holds the parts to the whole.
func checkMeter(t *rapid.T, c *metering.Counters, l *Layout) {
	var needed, unneeded uint64
	for _, f := range c.Meter.Features {
		needed += f.Needed
		unneeded += f.Unneeded
	}
	if needed != c.Needed.Load() || unneeded != c.Unneeded.Load() {
		t.Fatalf("features add up to %d bytes needed and %d unneeded: want %d and %d", needed, unneeded,
			c.Needed.Load(), c.Unneeded.Load())
	}
}

// checkMetered holds the features of a whole read without overlays to the directories of their files.
func checkMetered(t *rapid.T, table *testTable, c *metering.Counters, l *Layout) {
	type want struct {
		stripes, rows, own uint64
		shared, atLeast    uint64 // bytes of inverses, its part of them rounded down in each stripe
	}
	wanted := make([]want, len(l.features))
	for i, d := range l.segments {
		index := table.indexes[d.ID]
		members := map[uint64][]int{} // of groups, those that are read
		for p, f := range l.features {
			if e := index.entries[f.ID]; e != nil && !IsPartitionKey(f) && e.Meta.Group != 0 {
				members[e.Meta.Group] = append(members[e.Meta.Group], p)
			}
		}
		selected := ioplan.SelectedRows(index.stripeRows, l.selectionOf(i))
		var some bool
		for k := range index.stripeRows {
			if selected[k] == 0 {
				continue
			}
			some = true
			for p, f := range l.features {
				if e := index.entries[f.ID]; e != nil && !IsPartitionKey(f) {
					wanted[p].stripes++
					wanted[p].rows += uint64(selected[k])
					wanted[p].own += e.Meta.Stripes[k].Length
				}
			}
			for group, of := range members {
				for _, p := range of {
					n := index.entries[catalog.FeatureID(group)].Meta.Stripes[k].Length
					wanted[p].shared += n
					wanted[p].atLeast += n / uint64(len(of))
				}
			}
		}
		if !some {
			continue
		}
		for p, f := range l.features {
			if e := index.entries[f.ID]; e != nil && !IsPartitionKey(f) {
				_, length := e.Meta.Dictionary.Range()
				wanted[p].own += length
			}
		}
	}
	for p, w := range wanted {
		var got metering.FeatureReads
		if c.Meter.Features != nil { // something was read
			got = c.Meter.Features[p]
		}
		if got.Stripes != w.stripes || got.Rows != w.rows || got.Needed < w.own+w.atLeast ||
			got.Needed > w.own+w.shared {
			t.Fatalf("feature %s: %+v, want %+v", l.features[p].Name, got, w)
		}
	}
}

// A take counts the rows that it was asked for of the stripes that it fetches.
func TestMeterOfTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		l := table.layout(drawProjection(t, table), 1, OutputColumns)
		opts := drawOptions(t)
		opts.Info = false
		taker, err := l.Taker(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer taker.Close()
		taker.x.Stats.Meter.Begin(len(l.features))
		rows := drawPositions(t, len(table.rows))
		takeRows(t, taker, rows).Release()
		checkMeter(t, taker.x.Stats, l)
		distinct := map[uint64]bool{}
		for _, r := range rows {
			distinct[r] = true
		}
		if st := taker.Stats(); st.Rows != uint64(len(rows)) || st.Batches != 1 {
			t.Fatalf("%+v of %d rows", st, len(rows))
		}
		for p, f := range taker.x.Stats.Meter.Features {
			if f.Rows > uint64(len(distinct)) {
				t.Fatalf("%d rows of feature %d: %d were asked for", f.Rows, p, len(distinct))
			}
		}
	})
}
