package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// A reading is a Source that tests move on.
type reading struct {
	features []Feature

	mu       sync.Mutex
	counters Counters    // since the last call
	uses     [][4]uint64 // of each feature
}

func newReading(features int) *reading {
	r := &reading{uses: make([][4]uint64, features)}
	for i := range features {
		r.features = append(r.features, Feature{ID: catalog.FeatureID(i + 1), Name: fmt.Sprint("f", i+1)})
	}
	return r
}

func (r *reading) Features() []Feature { return r.features }

func (r *reading) Counters() (Counters, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counters
	r.counters = Counters{}
	return c, c.Rows > 0
}

func (r *reading) Uses(to *Uses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, u := range r.uses {
		to.Add(i, u[0], u[1], u[2], u[3])
	}
	clear(r.uses)
}

// read makes the reader read so many rows, of every feature but the last.
func (r *reading) read(rows uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counters.Rows += rows
	r.counters.Stall += time.Duration(rows)
	n := len(r.uses) - 1
	for i := range r.uses[:n] {
		u := &r.uses[i]
		u[0]++
		u[1] += rows
		u[2] += 10 * rows
		u[3] += rows
		r.counters.BytesNeeded += 10 * rows
		r.counters.BytesUnneeded += rows
	}
}

// What a process reads is one object per day, which grows; a reader counts once per day, and so does each of its
// features.
func TestSessions(t *testing.T) {
	table, now := tableIn(t, object.NewMemory()), &clock{noon}
	w := writer(t, table, Options{Now: now.Now})
	key := Key{Job: "train", Program: "go"}
	a, b := newReading(3), newReading(3)
	s := w.Begin(key, 7, a)
	other := w.Begin(key, 8, b)
	idle := w.Begin(Key{Job: "idle"}, 1, newReading(1))
	flush(t, w)
	equal(t, len(names(t, table)), 0)
	a.read(100)
	flush(t, w)
	flush(t, w) // nothing is new
	a.read(20)
	b.read(3)
	other.End()
	other.End()
	now.now = now.now.Add(time.Minute)
	flush(t, w)
	got := names(t, table)
	if len(got) != 1 || !strings.HasPrefix(got[0], "tables/t/usage/2026-11-22/") ||
		!strings.HasSuffix(got[0], "-000002") {
		t.Errorf("objects %q", got)
	}
	x := load(t, table)
	if x.Total.Readers != 2 || x.Total.Rows != 123 || x.Total.BytesNeeded != 2460 || x.Total.BytesUnneeded != 246 ||
		x.Total.Stall != 123 {
		t.Errorf("%+v", x.Total)
	}
	equal(t, len(x.Features), 3)
	equal(t, x.Features[0].FeatureUse, FeatureUse{ID: 1, Name: "f1", Readers: 2, Stripes: 3, Rows: 123,
		BytesNeeded: 1230, BytesUnneeded: 123, Last: now.now})
	// The last is of the projection, and nothing was read of it.
	equal(t, x.Features[2].FeatureUse, FeatureUse{ID: 3, Name: "f3", Readers: 2, Last: noon})
	equal(t, len(x.Jobs), 1)
	if j := &x.Jobs[0]; j.Job != "train" || j.User != "ann" || j.Snapshot != 8 || !j.Start.Equal(noon) ||
		!j.End.Equal(now.now) || !slices.Equal(j.Programs, []string{"go"}) {
		t.Errorf("%+v", j)
	}

	now.now = noon.Add(24 * time.Hour)
	a.read(5)
	s.End()
	idle.End()
	flush(t, w)
	x = load(t, table)
	equal(t, len(x.Days), 2)
	if d := x.Days[1]; !d.Day.Equal(noon.Add(12*time.Hour)) || d.Readers != 1 || d.Rows != 5 || d.BytesNeeded != 100 ||
		d.Features != 3 || d.Jobs != 1 {
		t.Errorf("%+v", d)
	}
	if f := x.Features[0]; f.Days != 2 || f.Readers != 3 || f.Jobs != 1 || !f.First.Equal(noon.Add(-12*time.Hour)) ||
		!f.Last.Equal(now.now) {
		t.Errorf("%+v", f)
	}
	// Of one day only.
	x, err := Load(t.Context(), table, now.now, time.Time{})
	if err != nil || x.Total.Rows != 5 {
		t.Errorf("%+v, %v", x, err)
	}
	x, err = Load(t.Context(), table, time.Time{}, noon.Add(-12*time.Hour))
	if err != nil || len(x.Days) != 0 {
		t.Errorf("%+v, %v", x, err)
	}
}

// Whatever store operation fails or is the last one, readers go on, and in the end everything that could be written is
// there once.
func TestWriterFaults(t *testing.T) {
	for at := int64(1); at < 12; at++ {
		for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
			faulty := object.NewFault(object.NewMemory())
			table := tableIn(t, faulty)
			w := writer(t, table, Options{})
			r := newReading(2)
			s := w.Begin(Key{Job: "train"}, 1, r)
			faulty.FailAt(at, mode)
			for range 4 {
				r.read(1)
				_ = w.Flush(t.Context())
			}
			s.End()
			faulty.FailAt(0, mode)
			flush(t, w)
			if x := load(t, table); x.Total.Rows != 4 || x.Total.Readers != 1 || x.DamagedCount != 0 {
				t.Errorf("fault at %d: %+v", at, x)
			}
			r = newReading(2)
			w.Begin(Key{Job: "train"}, 1, r)
			r.read(1)
			flush(t, w)
			if got := names(t, table); len(got) != 1 {
				t.Errorf("fault at %d: left %q", at, got)
			}
			faulty.DieAt(1, mode)
			r.read(1)
			if err := w.Flush(t.Context()); err == nil {
				t.Error("a dead store took a record")
			}
		}
	}
}

// refusing is a store that may not be written to.
type refusing struct {
	object.Store
	puts atomic.Int64
}

func (r *refusing) PutIfAbsent(context.Context, string, []byte) error {
	r.puts.Add(1)
	return &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
}

// A store that may not be written to is asked once.
func TestReadOnlyStore(t *testing.T) {
	blobs := &refusing{Store: object.NewMemory()}
	w := writer(t, tableIn(t, blobs), Options{})
	r := newReading(2)
	s := w.Begin(Key{}, 1, r)
	before := Totals()
	for range 3 {
		r.read(1)
		_ = w.Flush(t.Context())
	}
	s.End()
	_ = w.Close(t.Context())
	equal(t, blobs.puts.Load(), 1)
	if after := Totals(); after.Failed != before.Failed+1 || after.Lost != before.Lost+1 {
		t.Errorf("%+v after %+v", after, before)
	}
}

// hanging is a store whose writes never end.
type hanging struct{ object.Store }

func (h hanging) PutIfAbsent(context.Context, string, []byte) error { select {} }

// A store that does not answer, not even to a context that ended, holds nobody up for longer than the time-out.
func TestHangingStore(t *testing.T) {
	table := tableIn(t, hanging{object.NewMemory()})
	w := writer(t, table, Options{Timeout: time.Millisecond})
	r := newReading(2)
	s := w.Begin(Key{}, 1, r)
	r.read(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that hangs: %v", err)
	}
	r.read(1)
	s.End()
	if err := w.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed while a write hangs: %v", err)
	}
}

// What a Writer holds is bounded: of many jobs' worth of keys those that are too many become one, and of many days
// those go that are written.
func TestWriterIsBounded(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	w := writer(t, table, Options{})
	for i := range 1000 {
		w.Add(&Record{Key: Key{Job: "job", Filter: uint64(i)}, End: noon, Counters: Counters{Rows: 1, Readers: 1}})
	}
	flush(t, w)
	if x := load(t, table); x.Total.Rows != 1000 || len(x.Jobs) != 1 {
		t.Errorf("%+v", x)
	}
	for i := range 300 {
		w.Add(&Record{End: noon.Add(time.Duration(i) * 24 * time.Hour), Counters: Counters{Rows: 1}})
		flush(t, w)
	}
	if x := load(t, table); x.Total.Rows != 1300 || len(x.Days) != 300 || len(w.files) > maxFiles {
		t.Errorf("%d rows of %d days, %d held", x.Total.Rows, len(x.Days), len(w.files))
	}
	w = writer(t, table, Options{})
	before := Totals()
	for i := range 200 {
		w.Add(&Record{Key: Key{Job: fmt.Sprint(i)}, End: noon})
		w.Add(&Record{End: noon.Add(time.Duration(i) * 24 * time.Hour)})
	}
	if n := len(w.files[dayOf(noon)].sums); n > 2*maxSums || len(w.files) > maxFiles {
		t.Errorf("%d records, %d days", n, len(w.files))
	}
	if Totals().Lost == before.Lost {
		t.Error("nothing is said of what was too much")
	}
}

// Open readers are written every interval, closed ones soon after; what comes after half an hour goes under another id,
// and a Writer that has nothing to do for that long is forgotten.
// What is folded into records all the while, as each reader has a filter of its own, is written before their id is too
// old.
func TestManyFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := tableIn(t, object.NewMemory())
		const readers = 2 * 60 * 60
		for i := range uint64(readers) {
			r := newReading(2)
			s := Begin(table, Key{Job: "serve", Filter: i + 1}, 1, r)
			r.read(1)
			s.End()
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(2 * betweenWrites)
		synctest.Wait()
		equal(t, load(t, table).Total.Readers, readers)
		equal(t, load(t, table).Total.Rows, readers)
		time.Sleep(2 * oneID)
	})
}

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := object.NewMemory()
		table := tableIn(t, memory)
		r := newReading(2)
		s := Begin(table, Key{Job: "train"}, 1, r)
		r.read(1)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		equal(t, len(names(t, table)), 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		first := names(t, table)
		equal(t, len(first), 1)
		ids := map[string]bool{}
		for range 12 { // an hour
			r.read(1)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			for _, n := range names(t, table) {
				ids[n[:strings.LastIndexByte(n, '-')]] = true
			}
		}
		if len(ids) < 2 || len(ids) > 4 {
			t.Errorf("an hour has the ids %v", ids)
		}
		equal(t, load(t, table).Total.Rows, 13)
		r.read(1)
		s.End()
		time.Sleep(betweenWrites + afterClose)
		synctest.Wait()
		equal(t, load(t, table).Total.Rows, 14)
		equal(t, load(t, table).Total.Readers, 1)

		time.Sleep(2 * oneID)
		synctest.Wait()
		writers.mu.Lock()
		equal(t, len(writers.byTable), 0)
		writers.mu.Unlock()

		// What is open when the store is closed is written then, and when the process ends.
		r = newReading(2)
		s = Begin(table, Key{Job: "train"}, 1, r)
		r.read(1)
		FlushAll(t.Context())
		equal(t, load(t, table).Total.Rows, 15)
		r.read(1)
		if err := table.Store().Close(); err != nil {
			t.Fatal(err)
		}
		equal(t, load(t, tableIn(t, memory)).Total.Rows, 16)
		r.read(1)
		s.End()
		FlushAll(t.Context())
		equal(t, load(t, tableIn(t, memory)).Total.Rows, 16)
	})
}

// Many readers begin, read, end and are written at once.
func TestWriterAtOnce(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	w := writer(t, table, Options{Interval: time.Millisecond})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				r := newReading(3)
				s := w.Begin(Key{Job: fmt.Sprint("job", i%2)}, 1, r)
				r.read(2)
				if i == 0 {
					_ = w.Flush(context.Background())
				}
				r.read(1)
				s.End()
			}
		})
	}
	wg.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := load(t, table); x.Total.Rows != 8*20*3 || x.Total.Readers != 8*20 || x.Features[0].Stripes != 8*20*2 {
		t.Errorf("%+v", x.Total)
	}
}

func TestEnvironment(t *testing.T) {
	for value, want := range map[string]bool{"": false, "on": false, "off": true, "OFF": true, "0": true, "no": true,
		"false": true} {
		t.Setenv(OffVariable, value)
		equal(t, Off(), want)
	}
	t.Setenv(JobVariable, "nightly")
	equal(t, Job(), "nightly")
	t.Setenv(JobVariable, "")
	equal(t, strings.HasPrefix(Job(), "usage.test"), true)
	if err := (&Options{Timeout: -1}).Validate(); err == nil {
		t.Error("a negative timeout")
	}
	if err := (&RollupOptions{Keep: -1}).Validate(); err == nil {
		t.Error("a negative keep")
	}
}
