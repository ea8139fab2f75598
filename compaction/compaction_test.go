package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestMerge: many small ingests become a few segments of the size asked for, clustered, and a second plan finds nothing
// to do.
func TestMerge(t *testing.T) {
	x := newTester(t, object.NewMemory(), 1)
	for range 10 {
		x.ingest(x.newRows(60, 2))
	}
	before := x.latest().Info()
	p, r := x.compact(x.options())
	if len(p.Jobs) != 2 || p.Segments() != 20 || p.Left != 0 {
		t.Fatalf("plan:\n%v", p)
	}
	after := x.latest().Info()
	if after.Segments < 5 || after.Segments > 7 || after.Rows != 600 || after.Bytes >= before.Bytes {
		t.Fatalf("%d segments of %d bytes, %d before", after.Segments, after.Bytes, before.Bytes)
	}
	for _, j := range r.Jobs {
		if j.KeptOrder || j.Attempts != 1 || j.Commits != 1 || j.LeftOut != "" {
			t.Fatalf("%+v", j)
		}
	}
	x.verify("merged")
	sessions := map[string]string{} // the segment of each
	cut := 0
	for _, d := range x.segments(x.latest()) {
		last := ""
		for _, r := range x.decode(d) {
			key := r.values["session"] + d.Partition.String()
			if key != last {
				if other, ok := sessions[key]; ok && other == d.ID {
					t.Fatalf("session %s comes twice in segment %s", key, d.ID)
				} else if ok {
					cut++
				}
				sessions[key] = d.ID
			}
			last = key
		}
	}
	if cut > 0 {
		t.Fatalf("%d sessions lie in two segments", cut)
	}
	if p, r := x.compact(x.options()); len(p.Jobs) != 0 || len(r.Jobs) != 0 || r.Snapshot != 0 {
		t.Fatalf("a second plan:\n%v", p)
	}
}

// TestPlan: what is worth rewriting, and what is not.
func TestPlan(t *testing.T) {
	ctx := t.Context()
	x := newTester(t, object.NewMemory(), 2)
	plan := func(change func(*Options), jobs int, reason string) *Plan {
		t.Helper()
		o := x.options()
		change(&o)
		before := x.latest().Info().Number
		p, err := NewPlan(ctx, x.table, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Jobs) != jobs || jobs > 0 && !strings.Contains(p.String(), reason) {
			t.Fatalf("want %d jobs, %q, got\n%v", jobs, reason, p)
		}
		if n := x.latest().Info().Number; n != before {
			t.Fatal("a plan made a snapshot")
		}
		b, err := json.Marshal(p)
		if err != nil || !strings.Contains(string(b), `"jobs":[`) {
			t.Fatalf("%s: %v", b, err)
		}
		return p
	}
	none := func(*Options) {}
	for range 3 {
		x.ingest(x.newRows(30, 1))
	}
	plan(none, 0, "")
	plan(func(o *Options) { o.Full = true }, 1, "3 segments have less than 50 %")
	plan(func(o *Options) { o.Fanout = 3 }, 1, "3 segments")
	plan(func(o *Options) { o.Fanout, o.Partition = 3, "day = 'd1'" }, 0, "")
	plan(func(o *Options) { o.SegmentRows, o.SharedShare, o.Write.StripeRows = 10, 2, 7 }, 3, "3.0 times as large")
	plan(func(o *Options) { o.Repack = true }, 3, "packed anew")
	plan(func(o *Options) { o.Segments = []string{} }, 0, "")
	plan(func(o *Options) { o.Segments = []string{x.segments(x.latest())[1].ID} }, 1, "asked for")
	if p := plan(func(o *Options) { o.Fanout, o.MaxInputs = 3, 2 }, 1, ""); p.Segments() != 2 || p.Left != 1 {
		t.Fatalf("%v", p)
	}
	x.delete([]int64{1, 2, 3, 31, 32, 33, 61, 62, 63}) // of 30 rows each
	if p := plan(func(o *Options) { o.DeletedShare = 0.9 }, 0, ""); len(p.Notes) != 1 ||
		!strings.HasPrefix(p.Notes[0], "9 deleted rows stay: less than 90 %") {
		t.Fatalf("%v", p)
	}
	plan(func(o *Options) { o.DeletedShare = 0.001 }, 3, "are deleted")
	dropped := catalog.FeatureDropped
	x.commit(x.latest(), commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "history",
		Status: &dropped}}}})
	plan(func(o *Options) { o.DroppedShare, o.DeletedShare = 0.001, 0.9 }, 3, "that were dropped")
	// Large segments with the same sessions.
	large := func(o *Options) { o.SegmentRows, o.DeletedShare, o.DroppedShare = 30, 0.9, 0.9 }
	plan(large, 1, "sessions of partition")
	plan(func(o *Options) { large(o); o.SharedShare = 2 }, 0, "")
	if p := plan(func(o *Options) { large(o); o.SharedShare = 0.99 }, 0, ""); len(p.Notes) != 3 ||
		!strings.Contains(p.Notes[2], "of dropped features stay: less than 90 %") {
		t.Fatalf("%v", p)
	}
	for _, o := range []Options{{Fanout: 1}, {DeletedShare: -1}, {MaxInputs: -1}, {Partition: "nothing = "}} {
		if _, err := NewPlan(ctx, x.table, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestConverges: a compaction after a compaction finds nothing to do, also where sessions lie in segments that no job
// can have together, and where they are larger than a segment.
func TestConverges(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(*Options)
		rows, jobs int
		sessions   int
	}{
		{"few inputs", func(o *Options) { o.SegmentRows, o.MaxInputs = 60, 2 }, 60, 2, 20},
		{"large sessions", func(o *Options) { o.SegmentRows = 20 }, 200, 1, 1},
		{"small segments", func(o *Options) { o.SegmentRows = 4 }, 60, 1, 60},
	} {
		x := newTester(t, object.NewMemory(), 4)
		for range 4 {
			rows := x.newRows(c.rows, 1)
			for i := range rows {
				rows[i].Session = fmt.Sprint(i % c.sessions)
			}
			x.ingest(rows)
		}
		o := x.options()
		c.change(&o)
		if p, _ := x.compact(o); len(p.Jobs) != c.jobs || p.Segments() != 4 {
			t.Fatalf("%s:\n%v", c.name, p)
		}
		if p, _ := x.compact(o); len(p.Jobs) > 0 {
			t.Errorf("%s, again:\n%v", c.name, p)
		}
		x.verify(c.name)
	}
}

// TestCarried: random tables, with and without a session key, with deletes, sample lists, overlays of every policy and
// merged ones, are the same after a compaction with random options.
func TestCarried(t *testing.T) {
	seeds := uint64(12)
	if race.Enabled {
		seeds = 1
	}
	for i := range 2 * seeds {
		seed, keyless := i/2, i%2 == 1
		t.Run(fmt.Sprintf("seed %d, keyless %v", seed, keyless), func(t *testing.T) {
			t.Parallel()
			x := newTester(t, object.NewMemory(), seed)
			x.keyless = keyless
			x.ingest(x.newRows(40, 2))
			missingRows := []catalog.MissingPolicy{catalog.FallThrough, catalog.Null}
			overlays := 0
			for step := range 12 {
				switch x.rand.IntN(7) {
				case 0, 1:
					x.ingest(x.newRows(5+x.rand.IntN(40), 2))
				case 2:
					x.delete(x.some(6))
				case 3:
					x.list(fmt.Sprint("list ", step), x.some(3))
				case 4:
					some := x.rand.IntN(3)
					x.overlay(fmt.Sprint("overlay ", step), missingRows[x.rand.IntN(2)],
						catalog.MissingPolicy(x.rand.IntN(3)),
						func(int) bool { return some == 0 || x.rand.IntN(2) == 0 })
				case 5:
					overlays++
					name := fmt.Sprint("merged ", step)
					x.overlay(name, missingRows[x.rand.IntN(2)], catalog.FallThrough,
						func(int) bool { return x.rand.IntN(3) > 0 })
					x.merge(name)
				case 6:
					o := x.options()
					o.Full = x.rand.IntN(2) == 0
					o.Repack = x.rand.IntN(3) == 0
					o.SegmentRows = []uint64{20, 100, 1000}[x.rand.IntN(3)]
					o.MaxInputs = 1 + x.rand.IntN(10)
					o.DeletedShare = 0.05
					p, err := NewPlan(context.Background(), x.table, o)
					x.check(err)
					// With little memory, stripes are spilled.
					o.Write.Memory = []int64{o.Write.Memory, 4 << 10}[x.rand.IntN(2)]
					_, err = Run(context.Background(), x.table, p, o)
					x.check(err)
				}
				x.verify(fmt.Sprint("step ", step))
			}
			o := x.options()
			o.Repack, o.Full = true, true
			x.compact(o)
			x.verify("at the end")
			if info := x.latest().Info(); info.DeletedRows != 0 {
				t.Fatalf("%d deleted rows are left", info.DeletedRows)
			}
			left, err := x.latest().Overlays(t.Context())
			x.check(err)
			for _, o := range left {
				if o.Merged != 0 {
					t.Fatalf("overlay %s is part of the table yet", o.Name)
				}
			}
			if left, err := x.table.Leases(t.Context()); err != nil || len(left) > 0 {
				t.Fatalf("leases are left: %v %v", left, err)
			}
		})
	}
}

// TestKinds: segments with a layer and segments without one are not merged where the overlay says different things of
// them.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		missingRows, missingLayers catalog.MissingPolicy
		jobs                       int
	}{
		{catalog.FallThrough, catalog.FallThrough, 1}, {catalog.Null, catalog.Null, 1}, {catalog.Null,
			catalog.FallThrough, 2},
		{catalog.FallThrough, catalog.Null, 2}, {catalog.FallThrough, catalog.Refuse, 2},
	} {
		x := newTester(t, object.NewMemory(), 3)
		for range 4 {
			x.ingest(x.newRows(10, 1))
		}
		x.overlay("o", c.missingRows, c.missingLayers, func(i int) bool { return i%2 == 0 })
		o := x.options()
		o.Full = true
		p, _ := x.compact(o)
		if len(p.Jobs) != c.jobs {
			t.Errorf("%v, %v: want %d jobs:\n%v", c.missingRows, c.missingLayers, c.jobs, p)
		}
		x.verify("compacted")
	}
}

// A hooked store calls a function when the first index of a segment was made by a compaction: between its reading and
// its commit.
type hooked struct {
	object.Store
	armed atomic.Bool
	do    func()
}

func (h *hooked) Create(ctx context.Context, name string) (object.Writer, error) {
	if strings.HasSuffix(name, "index.sst") && h.armed.CompareAndSwap(true, false) {
		h.do()
	}
	return h.Store.Create(ctx, name)
}

// TestMeanwhile: while a compaction writes, others append, delete, list, add overlays, drop and take back features,
// compact and overwrite. It remaps what came, or gives up and leaves nothing.
func TestMeanwhile(t *testing.T) {
	dropped, active := catalog.FeatureDropped, catalog.FeatureActive
	for _, c := range []struct {
		name              string
		before            func(x *tester)
		do                func(x *tester)
		attempts, commits int
		left              bool
	}{
		{name: "append", do: func(x *tester) { x.ingest(x.newRows(20, 1)) }, attempts: 1, commits: 1},
		{name: "delete", do: func(x *tester) { x.delete(x.some(3)) }, attempts: 1, commits: 2},
		{name: "list", do: func(x *tester) { x.list("new", x.some(3)) }, attempts: 1, commits: 2},
		{name: "overlay", do: func(x *tester) {
			x.overlay("new", catalog.FallThrough, catalog.FallThrough, func(int) bool { return true })
		}, attempts: 2, commits: 2},
		{name: "overlay over some", do: func(x *tester) {
			x.overlay("new", catalog.FallThrough, catalog.Null, func(i int) bool { return i == 1 })
		}, left: true},
		{name: "merge", before: func(x *tester) {
			x.overlay("o", catalog.Null, catalog.FallThrough, func(int) bool { return true })
		}, do: func(x *tester) { x.merge("o") }, attempts: 2, commits: 2},
		{name: "taken back", before: func(x *tester) {
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "name",
					Status: &dropped}},
			}})
		}, do: func(x *tester) {
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "name",
					Status: &active}},
			}})
		}, attempts: 2, commits: 2},
		{name: "taken back, of a merged overlay", before: func(x *tester) {
			x.overlay("o", catalog.FallThrough, catalog.FallThrough, func(int) bool { return true })
			x.merge("o")
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "label",
					Status: &dropped}},
			}})
		}, do: func(x *tester) {
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "label",
					Status: &active}},
			}})
		}, attempts: 2, commits: 2},
		{name: "renamed", do: func(x *tester) {
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "name",
					Rename: "called"}},
			}})
			x.commit(x.latest(), commit.Change{Ops: []commit.Operation{
				commit.ChangeFeatures{{Feature: "called",
					Rename: "name"}},
			}})
		}, attempts: 1, commits: 1},
		{name: "compaction", do: func(x *tester) {
			o := x.options()
			o.Full = true
			x.compact(o)
		}, left: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			blobs := &hooked{Store: object.NewMemory()}
			x := newTester(t, blobs, 4)
			for range 4 {
				x.ingest(x.newRows(20, 1))
			}
			x.list("before", x.some(2))
			if c.before != nil {
				c.before(x)
			}
			p, err := NewPlan(t.Context(), x.table, x.options())
			x.check(err)
			blobs.do = func() { c.do(x) }
			blobs.armed.Store(true)
			other, err := x.store.Table(t.Context(), "ads")
			x.check(err)
			r, err := Run(t.Context(), other, p, x.options())
			x.check(err)
			j := r.Jobs[0]
			if left := j.LeftOut != ""; left != c.left || !left &&
				(j.Attempts != c.attempts || j.Commits != c.commits) {
				t.Fatalf("%+v", j)
			}
			x.verify("after")
			// Nothing is left of what was given up.
			g, err := x.store.GC(t.Context(), gc.Options{NoWait: true, DryRun: true})
			x.check(err)
			if len(g.Removed) > 0 {
				t.Fatalf("left: %v", g.Removed)
			}
		})
	}
}

// TestFaults: an error of the store at any operation of a compaction leaves the table as it was, or compacted; nothing
// of it that gc does not take; and running again works.
func TestFaults(t *testing.T) {
	run := func(x *tester) error {
		p, err := NewPlan(t.Context(), x.table, x.options())
		if err == nil {
			_, err = Run(t.Context(), x.table, p, x.options())
		}
		return err
	}
	total, step := int64(0), int64(7)
	if race.Enabled {
		step = 1
	}
	for at := int64(0); at <= total; at += 1 + at/step {
		for _, die := range []bool{false, true} {
			fault := object.NewFault(object.NewMemory())
			x := newTester(t, fault, 5)
			for range 4 {
				x.ingest(x.newRows(20, 1))
			}
			x.overlay("o", catalog.FallThrough, catalog.FallThrough, func(i int) bool { return i != 1 })
			x.list("l", x.some(2))
			x.delete(x.some(5))
			x.open()
			before := fault.Operations()
			switch {
			case at > 0 && die:
				fault.DieAt(at, object.FailAfter)
			case at > 0:
				fault.FailAt(at, object.FailBefore)
			}
			err := run(x)
			if at == 0 {
				total = fault.Operations() - before
				x.check(err)
			}
			if err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			fault.FailAt(0, object.FailBefore)
			x.open()
			x.verify(fmt.Sprint("operation ", at))
			x.check(run(x))
			x.verify(fmt.Sprint("operation ", at, ", run again"))
			if n := x.latest().Info().Segments; n != 1 {
				t.Fatalf("operation %d: %d segments after running again", at, n)
			}
			_, err = x.store.GC(t.Context(), gc.Options{NoWait: true})
			x.check(err)
			x.verify(fmt.Sprint("operation ", at, ", gc"))
		}
	}
	t.Logf("%d operations", total)
}

// TestInterrupted: a compaction whose context ends says so and leaves nothing.
func TestInterrupted(t *testing.T) {
	blobs := &hooked{Store: object.NewMemory()}
	x := newTester(t, blobs, 6)
	for range 4 {
		x.ingest(x.newRows(20, 1))
	}
	p, err := NewPlan(t.Context(), x.table, x.options())
	x.check(err)
	ctx, cancel := context.WithCancel(t.Context())
	blobs.do = cancel
	blobs.armed.Store(true)
	if _, err := Run(ctx, x.table, p, x.options()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	g, err := x.store.GC(t.Context(), gc.Options{NoWait: true, DryRun: true})
	x.check(err)
	if len(g.Removed) > 0 {
		t.Fatalf("left: %v", g.Removed)
	}
	x.verify("interrupted")
}

// TestOrderKept: segments that were written by another key keep their order, since merging them would not cluster them.
func TestOrderKept(t *testing.T) {
	x := newTester(t, object.NewMemory(), 7)
	x.ingest(x.newRows(20, 1))
	// Rows by hand, out of order.
	ctx := t.Context()
	s := x.latest()
	features, err := s.Lookup(ctx, "session", "time", "id", "history")
	x.check(err)
	w, err := x.table.NewSegment(ctx, x.segments(s)[0].Partition, []uint32{2, 1}, segment.Options{})
	x.check(err)
	rows := []testRow{
		{Day: "d0", Session: "z", Time: 1, ID: 1001}, {Day: "d0", Session: "a", Time: 1, ID: 1002}, {Day: "d0",
			Session: "m", Time: 1, ID: 1003},
	}
	for i, f := range features {
		x.check(w.AddFeature(ctx, i, f, func(out *format.Writer) error {
			for _, part := range [][]testRow{rows[:2], rows[2:]} {
				col := vector.NewColumn(f.Type)
				for _, r := range part {
					switch f.Name {
					case "session":
						col.Data = append(col.Data, r.Session...)
					case "time":
						col.Ints = append(col.Ints, r.Time)
					case "id":
						col.Ints = append(col.Ints, r.ID)
					}
					col.AddSlot()
				}
				if err := out.WriteStripe(col); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	d, err := w.Finish(ctx)
	x.check(err)
	x.commit(s, commit.Change{Ops: []commit.Operation{commit.AddSegments{d}, commit.AddFeatures(features)}})
	for _, r := range rows {
		x.rows[r.ID] = r
	}
	x.verify("out of order")
	o := x.options()
	o.Full = true
	if _, r := x.compact(o); len(r.Jobs) != 1 || !r.Jobs[0].KeptOrder || r.Jobs[0].Made != 1 {
		t.Fatalf("%+v", r)
	}
	x.verify("compacted")
	all := x.decode(x.segments(x.latest())[0])
	for i, r := range rows {
		if got := all[len(all)-len(rows)+i].id; got != r.ID {
			t.Fatalf("row %d is %d", i, got)
		}
	}
}

// TestDamaged: a compaction of damaged segments says what is damaged, commits nothing of it, and never panics.
func TestDamaged(t *testing.T) {
	ctx := t.Context()
	damaged, enough := 0, 15
	if race.Enabled {
		enough = 3
	}
	for seed := uint64(0); damaged < enough; seed++ {
		if seed == uint64(20*enough) {
			t.Fatalf("%d errors of %d: the test sees nothing", damaged, seed)
		}
		r := rand.New(rand.NewPCG(seed, 3))
		memory := object.NewMemory()
		x := newTester(t, memory, 8)
		for range 2 {
			x.ingest(x.newRows(20, 1))
		}
		x.overlay("o", catalog.FallThrough, catalog.FallThrough, func(int) bool { return true })
		x.delete(x.some(5))
		var objects []object.Info
		for info, err := range memory.List(ctx, "", "") {
			x.check(err)
			if !strings.HasPrefix(info.Name, "tables/") {
				objects = append(objects, info)
			}
		}
		o := objects[r.IntN(len(objects))]
		b := make([]byte, o.Size)
		x.check(memory.ReadAt(ctx, o.Name, b, 0))
		b[r.Int64N(o.Size)] ^= 1 << r.IntN(8)
		x.check(memory.Delete(ctx, o.Name))
		x.check(memory.PutIfAbsent(ctx, o.Name, b))
		opts := x.options()
		opts.Full = true
		before := x.latest().Info().Number
		p, err := NewPlan(ctx, x.table, opts)
		if err == nil {
			_, err = Run(ctx, x.table, p, opts)
		}
		if err == nil {
			continue // a byte that nothing reads
		}
		damaged++
		if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v", o.Name, err)
		}
		if n := x.latest().Info().Number; n != before {
			t.Errorf("%s: snapshot %d was made", o.Name, n)
		}
	}
}

// TestThrottled: a compaction works through a store that lets bytes pass at a rate.
func TestThrottled(t *testing.T) {
	x := newTester(t, object.NewThrottled(object.NewMemory(), 8<<20), 9)
	for range 4 {
		x.ingest(x.newRows(30, 1))
	}
	if _, r := x.compact(x.options()); r.Snapshot == 0 {
		t.Fatalf("%+v", r)
	}
	x.verify("compacted")
}
