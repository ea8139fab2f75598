package reader

import (
	"context"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/storage"
)

// What is counted of each feature is what the files' directories say of the stripes that have a row, and adds up to what is counted in all.
func TestMeterEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.dedupLayout(features, drawBatchSize(t), OutputColumns, drawDedup(t))
		s := open(t, l, drawOptions(t))
		defer s.Close()
		s.stats.meter.begin(len(l.features))
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
		checkMeter(t, s.stats, l)
		if table.overlays.defined == nil {
			checkMetered(t, table, s.stats, l)
		}
	})
}

// checkMeter holds the parts to the whole.
func checkMeter(t *rapid.T, c *counters, l *Layout) {
	var needed, unneeded uint64
	for _, f := range c.meter.features {
		needed += f.needed
		unneeded += f.unneeded
	}
	if needed != c.needed.Load() || unneeded != c.unneeded.Load() {
		t.Fatalf("features add up to %d bytes needed and %d unneeded: want %d and %d", needed, unneeded, c.needed.Load(), c.unneeded.Load())
	}
}

// checkMetered holds the features of a whole read without overlays to the directories of their files.
func checkMetered(t *rapid.T, table *testTable, c *counters, l *Layout) {
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
		selected := load.SelectedRows(index.stripeRows, l.selectionOf(i))
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
					n := index.entries[storage.FeatureID(group)].Meta.Stripes[k].Length
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
		var got featureMeter
		if c.meter.features != nil { // something was read
			got = c.meter.features[p]
		}
		if got.stripes != w.stripes || got.rows != w.rows || got.needed < w.own+w.atLeast || got.needed > w.own+w.shared {
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
		taker.stats.meter.begin(len(l.features))
		rows := drawPlaces(t, len(table.rows))
		takeRows(t, taker, rows).Release()
		checkMeter(t, taker.stats, l)
		distinct := map[uint64]bool{}
		for _, r := range rows {
			distinct[r] = true
		}
		if st := taker.Stats(); st.Rows != uint64(len(rows)) || st.Batches != 1 {
			t.Fatalf("%+v of %d rows", st, len(rows))
		}
		for p, f := range taker.stats.meter.features {
			if f.rows > uint64(len(distinct)) {
				t.Fatalf("%d rows of feature %d: %d were asked for", f.rows, p, len(distinct))
			}
		}
	})
}

// Bytes of a range that nobody needs are shared in proportion, and those of a group's inverse equally; nothing is lost to rounding.
func TestMeterDealsOut(t *testing.T) {
	g := &load.Segment{
		Files:       make([]load.File, 4), // of features 0, 1, 2, and the inverse of 1 and 2
		Items:       []load.Item{{Inverse: -1, Features: []int32{0}}, {Inverse: 3, Features: []int32{1, 2}}},
		FeatureFile: []int32{0, 1, 2},
	}
	g.SetOwners()
	u := &load.IOTask{Segment: g, From: 2, To: 4, Asked: []uint64{10, 7}}
	u.Ranges = []load.Range{{Object: "a", From: 0, To: 150}, {Object: "b", From: 50, To: 57}}
	u.Needs = []load.Need{
		{File: 0, Bytes: 30, Range: 0}, {File: 1, Bytes: 60, Range: 0}, {File: 2, Bytes: 0, Range: -1}, {File: 3, Bytes: 7, Range: 1},
		{File: 0, Bytes: 10, Range: 0}, // its dictionary
	}
	m := meter{size: 3}
	m.count(u)
	m.count(u)
	want := []featureMeter{
		{stripes: 4, rows: 34, needed: 2 * 40, unneeded: 2 * 20},
		{stripes: 4, rows: 34, needed: 2 * (60 + 3), unneeded: 2 * 30},
		{stripes: 4, rows: 34, needed: 2 * 4},
	}
	for i := range want {
		if m.features[i] != want[i] {
			t.Errorf("feature %d: %+v, want %+v", i, m.features[i], want[i])
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.count(u) }); n > 0 {
		t.Errorf("%v allocations a unit", n)
	}
	// Parts that do not divide, and amounts that do not fit 64 bits when they are multiplied.
	s, sum := share{amount: 1<<63 + 11, total: 1 << 62}, uint64(0)
	for range 1 << 10 {
		sum += s.take(1 << 52)
	}
	if sum != s.amount {
		t.Errorf("dealt out %d of %d", sum, s.amount)
	}
	nothing := share{amount: 9}
	if a, b := nothing.take(0), nothing.take(0); a != 9 || b != 0 {
		t.Errorf("of nothing needed: %d, %d", a, b)
	}
}

// What counting a unit of 400 features costs: a unit has 32 MiB at the most, and takes milliseconds to read and decode.
func BenchmarkMeter(b *testing.B) {
	const features = 400
	g := &load.Segment{Files: make([]load.File, features), FeatureFile: make([]int32, features)}
	u := &load.IOTask{Segment: g, To: 3, Asked: []uint64{16384, 16384, 16384}, Ranges: make([]load.Range, features/8)}
	for i := range features {
		g.FeatureFile[i] = int32(i)
		g.Items = append(g.Items, load.Item{Inverse: -1, Features: []int32{int32(i)}})
		u.Needs = append(u.Needs, load.Need{File: int32(i), Bytes: 1000, Range: int32(i / 8)})
	}
	for i := range u.Ranges {
		u.Ranges[i].To = 8 * 1100
	}
	g.SetOwners()
	m := meter{size: features}
	b.ReportAllocs()
	for b.Loop() {
		m.count(u)
	}
}

// Gaps are counted range by range: bytes that two files need do not make up for a gap elsewhere, and what is counted in all is what is
// dealt out.
func TestGapsAreCountedByRange(t *testing.T) {
	entry := func(object string, offset uint64) *storage.FeatureEntry {
		return &storage.FeatureEntry{Object: object, Offset: offset, Meta: &format.FileMeta{Stripes: []format.StripeMeta{{Rows: 10, Length: 40}}}}
	}
	g := &load.Segment{
		Files:       []load.File{{Entry: entry("a", 0)}, {Entry: entry("a", 0)}, {Entry: entry("b", 0)}, {Entry: entry("b", 50)}},
		Items:       []load.Item{{Inverse: -1, Features: []int32{0}}, {Inverse: -1, Features: []int32{1}}, {Inverse: -1, Features: []int32{2}}, {Inverse: -1, Features: []int32{3}}},
		FeatureFile: []int32{0, 1, 2, 3},
	}
	g.SetOwners()
	u := &load.IOTask{Segment: g, To: 1, Asked: []uint64{10}}
	for range g.Files {
		u.Needed += 40
	}
	u.Coalesce(load.FetchSizes{Gap: 16, Request: 1 << 20})
	c := &counters{meter: meter{size: 4}}
	c.count(u)
	if u.Stored != 40+90 || u.Unneeded != 10 || c.unneeded.Load() != 10 || c.needed.Load() != 160 {
		t.Errorf("%d bytes stored, %d unneeded, %d and %d counted", u.Stored, u.Unneeded, c.unneeded.Load(), c.needed.Load())
	}
	for i, want := range []featureMeter{{needed: 40}, {needed: 40}, {needed: 40, unneeded: 5}, {needed: 40, unneeded: 5}} {
		if got := c.meter.features[i]; got.needed != want.needed || got.unneeded != want.unneeded {
			t.Errorf("feature %d: %+v, want %+v", i, got, want)
		}
	}
}
