package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/usage"
)

// An accessModel is what jobs must be recorded to have read, out of the directories of the segments' files.
type accessModel struct {
	w     *world
	uses  map[catalog.FeatureID]usage.FeatureUse // without names and times
	total usage.Counters                         // readers, rows, batches and bytes
}

// reader adds a reader of features (positions in the world's) of the rows from a number on, which are read whole so
// often.
func (m *accessModel) reader(features []int, from, passes int) {
	m.total.Readers++
	for _, f := range features {
		u := m.uses[m.w.features[f].ID]
		u.Readers++
		m.uses[m.w.features[f].ID] = u
	}
	for range passes {
		for i := range m.w.segments {
			m.pass(&m.w.segments[i], features, from)
		}
	}
}

func (m *accessModel) pass(g *worldSegment, features []int, from int) {
	open, err := m.w.now.snap.OpenSegment(context.Background(), g.d)
	if err != nil {
		m.w.t.Fatal(err)
	}
	first := g.first
	for k, n := range g.stripe {
		rows := first + int(n) - max(first, from)
		first += int(n)
		if rows <= 0 {
			continue
		}
		rows = min(rows, int(n))
		m.total.Rows += uint64(rows)
		for _, f := range features {
			found, err := open.Lookup(context.Background(), m.w.features[f].ID)
			if err != nil {
				m.w.t.Fatal(err)
			}
			if found[0] == nil {
				continue
			}
			if _, length := found[0].Meta.Dictionary.Range(); length > 0 {
				m.w.t.Fatal("tables of this size have no dictionaries")
			}
			u := m.uses[m.w.features[f].ID]
			u.Stripes++
			u.Rows += uint64(rows)
			u.BytesNeeded += found[0].Meta.Stripes[k].Length
			m.uses[m.w.features[f].ID] = u
		}
	}
}

// Records of jobs that read in every way say what the directories of the files say, and what filters read besides.
func TestUsageRecordsEqualModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.store.Close()
		for range rapid.IntRange(1, 3).Draw(t, "segments") {
			w.ingest()
		}
		ctx := context.Background()
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		recorder, err := usage.NewWriter(w.table, usage.Options{Interval: -1, User: "ann",
			Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		last := w.segments[len(w.segments)-1]
		m := &accessModel{w: w, uses: map[catalog.FeatureID]usage.FeatureUse{}}
		var filtered uint64 // bytes that filters needed
		for range rapid.IntRange(1, 4).Draw(t, "readers") {
			features := []int{1}
			opts := PlanOptions{Features: []string{"label"},
				BatchSize: rapid.SampledFrom([]int{1, 4, 100}).Draw(t, "batch size")}
			for f := 2; f < 4; f++ {
				if found, err := w.now.snap.Find(ctx, w.features[f].Name); err != nil {
					t.Fatal(err)
				} else if found[0] != nil && rapid.Bool().Draw(t, "projected") {
					features, opts.Features = append(features, f), append(opts.Features, w.features[f].Name)
				}
			}
			from := 0
			if rapid.Bool().Draw(t, "filtered") {
				from = rapid.IntRange(0, last.first+len(last.rows)-1).Draw(t, "from")
				opts.Filter = fmt.Sprintf("n >= %d", from)
			}
			plan, err := NewPlan(ctx, w.now.snap, opts)
			if err != nil {
				t.Fatal(err)
			}
			l, err := NewLayoutWith(ctx, w.now.snap, plan, LayoutOptions{Selections: NewSelections(0)})
			if err != nil {
				t.Fatal(err)
			}
			if opts.Filter != "" {
				u := m.uses[w.features[0].ID] // what it is about is read, and asked for by every reader
				p := l.Pruning()
				u.Stripes += p.StripesEvaluated
				u.BytesNeeded += p.BytesNeeded
				filtered += p.BytesNeeded
				m.uses[w.features[0].ID] = u
			}
			ropts := drawOptions(t)
			ropts.Info, ropts.Lease.Off = false, true
			ropts.Usage = UsageOptions{Writer: recorder, Job: rapid.SampledFrom([]string{"train", "eval"}).Draw(t,
				"job")}
			passes := 1
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				passes = rapid.IntRange(1, 2).Draw(t, "epochs")
				s := open(t, l, ropts)
				for epoch := range passes {
					if err := s.Seek(Position{Epoch: uint64(epoch)}); err != nil {
						t.Fatal(err)
					}
					exhaust(t, func() (*Batch, error) { return s.Next(ctx) })
					if rapid.Bool().Draw(t, "written meanwhile") {
						if err := recorder.Flush(ctx); err != nil {
							t.Fatal(err)
						}
					}
				}
				s.Close()
			case 1:
				s, err := l.OpenRank(ropts, Ranks{World: 1, Shards: 1})
				if err != nil {
					t.Fatal(err)
				}
				exhaust(t, func() (*Batch, error) { b, _, err := s.Next(ctx); return b, err })
				s.Close()
			case 2:
				taker, err := l.Taker(ropts)
				if err != nil {
					t.Fatal(err)
				}
				rows := make([]uint64, l.Rows())
				for i := range rows {
					rows[i] = uint64(i)
				}
				takeRows(t, taker, rows).Release()
				taker.Close()
			}
			m.reader(features, from, passes)
			filters := uint64(1)
			if rapid.Bool().Draw(t, "another reader") { // what the filter took is not taken again
				s := open(t, l, ropts)
				exhaust(t, func() (*Batch, error) { return s.Next(ctx) })
				s.Close()
				m.reader(features, from, 1)
				filters++
			}
			if opts.Filter != "" {
				u := m.uses[w.features[0].ID]
				u.Readers += filters
				m.uses[w.features[0].ID] = u
			}
		}
		if err := recorder.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := usage.Load(ctx, w.table, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var needed, unneeded uint64
		for i := range s.Features {
			got := s.Features[i].FeatureUse
			want := m.uses[got.ID]
			if got.Name == "n" {
				want.Rows = got.Rows // of stripes that were evaluated: Pruning does not say
			}
			want.ID, want.Name, want.Last, want.BytesUnneeded = got.ID, got.Name, now, got.BytesUnneeded
			if got != want {
				t.Fatalf("recorded %+v, want %+v", got, want)
			}
			needed += got.BytesNeeded
			unneeded += got.BytesUnneeded
		}
		if len(s.Features) != len(m.uses) || s.Total.Readers != m.total.Readers || s.Total.Rows != m.total.Rows {
			t.Fatalf("recorded %+v of %d features, want %+v of %d", s.Total, len(s.Features), m.total, len(m.uses))
		}
		if needed != s.Total.BytesNeeded || unneeded != s.Total.BytesUnneeded || needed < filtered {
			t.Fatalf("features add up to %d and %d bytes, filters to %d: %+v", needed, unneeded, filtered, s.Total)
		}
	})
}

func exhaust(t *rapid.T, next func() (*Batch, error)) {
	for {
		b, err := next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
}

// What nobody asked to record is not recorded, nor are readers without a table.
func TestAccessOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.store.Close()
		w.ingest()
		recorder, err := usage.NewWriter(w.table, usage.Options{Interval: -1})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := NewPlan(context.Background(), w.now.snap, PlanOptions{Features: []string{"n"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []UsageOptions{{}, {Off: true, Writer: recorder}} { // the environment of the tests has it off
			s, err := Open(context.Background(), w.now.snap, plan, Options{Usage: o})
			if err != nil {
				t.Fatal(err)
			}
			exhaust(t, func() (*Batch, error) { return s.Next(context.Background()) })
			s.Close()
		}
		if err := recorder.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		usage.FlushAll(context.Background())
		for info, err := range w.store.Blobs().List(context.Background(), w.table.UsagePrefix(), "") {
			t.Fatalf("%v, %v", info, err)
		}
	})
}

// TestFilterHash: of what a filter says there is nothing in a record but that another is another; not even what trying
// all values would find.
func TestFilterHash(t *testing.T) {
	hash := func(filter, downsample string) uint64 {
		return filterHash(&Plan{Filter: filter, Downsample: downsample})
	}
	if hash("", "") != 0 {
		t.Error("no filter has a hash")
	}
	a := hash("user_id = 7", "")
	if a == 0 || a != hash("user_id = 7", "") || a == hash("user_id = 8", "") || a == hash("", "user_id = 7") {
		t.Errorf("%x", a)
	}
	for _, text := range []string{"user_id = 7", "user_id = 7\n"} {
		if a == xxhash.Sum64String(text) {
			t.Error("anybody can compute it")
		}
	}
}

// TestThousandReadersAtOnce: readers of one process, all open and reading at once, and closed in any order, are
// recorded each once, with nothing of another's.
func TestThousandReadersAtOnce(t *testing.T) {
	const readers = 1000
	checkOnce(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.store.Close()
		w.ingest()
		w.ingest()
		ctx := context.Background()
		recorder, err := usage.NewWriter(w.table, usage.Options{Interval: time.Millisecond, User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		m := &accessModel{w: w, uses: map[catalog.FeatureID]usage.FeatureUse{}}
		var layouts []*Layout
		for _, f := range []int{0, 1} {
			plan, err := NewPlan(ctx, w.now.snap, PlanOptions{Features: []string{w.features[f].Name}, BatchSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			l, err := NewLayout(ctx, w.now.snap, plan)
			if err != nil {
				t.Fatal(err)
			}
			layouts = append(layouts, l)
		}
		var wg, open sync.WaitGroup
		open.Add(readers)
		errs := make([]error, readers)
		for i := range readers {
			m.reader([]int{i % 2}, 0, 1)
			wg.Go(func() {
				s, err := layouts[i%2].Open(Options{Workers: 1, Lease: LeaseOptions{Off: true},
					Usage: UsageOptions{Writer: recorder, Job: fmt.Sprint("job ", i%3)}})
				open.Done()
				if errs[i] = err; err != nil {
					return
				}
				open.Wait()
				for errs[i] == nil {
					var b *Batch
					if b, errs[i] = s.Next(ctx); errs[i] == nil {
						b.Release()
					}
				}
				s.Close()
			})
		}
		wg.Wait()
		for _, err := range errs {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		if err := recorder.Close(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := usage.Load(ctx, w.table, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Total.Readers != m.total.Readers || s.Total.Rows != m.total.Rows || len(s.Jobs) != 3 ||
			len(s.Features) != 2 {
			t.Fatalf("recorded %+v of %d jobs, want %+v", s.Total, len(s.Jobs), m.total)
		}
		for i := range s.Features {
			got, want := s.Features[i].FeatureUse, m.uses[s.Features[i].ID]
			want.ID, want.Name, want.Last, want.BytesUnneeded = got.ID, got.Name, got.Last, got.BytesUnneeded
			if got != want {
				t.Fatalf("recorded %+v, want %+v", got, want)
			}
		}
	})
}

// TestWhatOpenReadersHold: of a wide table a reader that has read nothing holds nothing for records, one that reads 32
// bytes for each feature that it projects; and what all of them share is there once.
func TestWhatOpenReadersHold(t *testing.T) {
	const features, readers = 20_000, 100
	checkOnce(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.store.Close()
		l := &Layout{plan: &Plan{}, table: w.table}
		for i := range features {
			l.features = append(l.features, catalog.Feature{ID: catalog.FeatureID(i + 1), Name: "feature"})
		}
		recorder, err := usage.NewWriter(w.table, usage.Options{Interval: -1})
		if err != nil {
			t.Fatal(err)
		}
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		held := func() uint64 { now := heap(); return now - min(now, before) }
		var stats []*metering.Counters
		var sessions []*usage.Session
		for range readers {
			c := new(metering.Counters)
			stats = append(stats, c)
			sessions = append(sessions, l.record(&UsageOptions{Writer: recorder}, c))
		}
		if got := held(); got > 1<<20 {
			t.Fatalf("%d readers that have read nothing hold %d bytes", readers, got)
		}
		g := &ioplan.Segment{Files: make([]ioplan.File, features), FeatureFile: make([]int32, features)}
		for i := range features {
			g.FeatureFile[i] = int32(i)
			g.Items = append(g.Items, ioplan.Item{Inverse: -1, Features: []int32{int32(i)}})
		}
		g.SetOwners()
		u := &ioplan.IOTask{Segment: g, To: 1, Asked: []uint64{1}}
		for _, c := range stats {
			c.Needed.Add(1)
			c.CountTask(u)
		}
		if err := recorder.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		const own = 32 * features * readers
		// of all together: the sum that was written, and the layout
		if got := held(); got < own || got > own+own/8+(16<<20) {
			t.Fatalf("%d readers hold %d bytes: want about %d", readers, got, own)
		}
		for _, s := range sessions {
			s.End()
		}
		runtime.KeepAlive(stats)
		s, err := usage.Load(context.Background(), w.table, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Total.Readers != readers || len(s.Features) != features || s.Features[7].Stripes != readers {
			t.Fatalf("%+v of %d features", s.Total, len(s.Features))
		}
	})
}

// checkOnce is rapid.Check of something to which it does not matter what is drawn.
func checkOnce(t *testing.T, f func(t *rapid.T)) {
	t.Helper()
	ran := false
	rapid.Check(t, func(t *rapid.T) {
		if !ran {
			ran = true
			f(t)
		}
	})
}
