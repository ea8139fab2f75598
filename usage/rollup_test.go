package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

func rollup(t interface{ Fatal(...any) }, table *storage.Table, at time.Time) *RollupReport {
	r, err := Rollup(context.Background(), table, RollupOptions{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is recorded stays the same whatever is rolled up in between, wherever a rollup dies, and however often it is
// done again.
func TestRollupKeepsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := &clock{noon}
		memory := object.NewMemory()
		memory.Now = now.Now
		faulty := object.NewFault(memory)
		table := tableIn(t, faulty)
		want := model{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now.now = now.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, 40 * time.Minute, 5 * time.Hour,
				26 * time.Hour}).Draw(t, "later"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				w := writer(t, table, Options{Now: now.Now})
				for range rapid.IntRange(1, 3).Draw(t, "records") {
					r := drawRecord(t, now.now.Truncate(24*time.Hour).Add(2*time.Hour))
					w.Add(r)
					want.add(r)
					if rapid.Bool().Draw(t, "replaced") {
						flush(t, w)
					}
				}
				flush(t, w)
			case 2:
				faulty.DieAt(rapid.Int64Range(1, 12).Draw(t, "dies at"),
					rapid.SampledFrom([]object.FaultMode{object.FailBefore, object.FailAfter}).Draw(t, "mode"))
				_, _ = Rollup(context.Background(), table, RollupOptions{Now: now.Now})
				faulty.FailAt(0, 0)
			case 3:
				rollup(t, table, now.now)
			}
			want.check(t, table)
		}
		now.now = now.now.Add(2 * time.Hour)
		rollup(t, table, now.now)
		want.check(t, table)
		days := map[string]bool{}
		for k := range want {
			days[k.day] = true
		}
		if got := names(t, table); len(got) != len(days) {
			t.Fatalf("%d days in %q", len(days), got)
		}
		if r := rollup(t, table, now.now); r.Merged+r.Days+r.Removed > 0 {
			t.Fatalf("again: %+v", r)
		}
	})
}

// Records that are young are left, those of an hour ago go into a rollup, and days that are too long ago go.
func TestRollupAges(t *testing.T) {
	now := &clock{noon}
	memory := object.NewMemory()
	memory.Now = now.Now
	table := tableIn(t, memory)
	add := func() {
		w := writer(t, table, Options{Now: now.Now})
		w.Add(&Record{Key: Key{Job: "train"}, Counters: Counters{Rows: 1}})
		flush(t, w)
	}
	add()
	now.now = noon.Add(59 * time.Minute)
	add()
	equal(t, *rollup(t, table, now.now), RollupReport{Young: 2})
	now.now = noon.Add(time.Hour)
	dry, err := Rollup(t.Context(), table, RollupOptions{Now: now.Now, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, *dry, RollupReport{DryRun: true, Days: 1, Merged: 1, Young: 1, Removed: 1})
	equal(t, len(names(t, table)), 2)
	equal(t, *rollup(t, table, now.now), RollupReport{Days: 1, Merged: 1, Young: 1, Removed: 1})
	equal(t, load(t, table).Total.Rows, 2)
	// All of them, when asked for.
	r, err := Rollup(t.Context(), table, RollupOptions{Now: now.Now, MinAge: -1})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, *r, RollupReport{Days: 1, Merged: 1, Removed: 2})
	x := load(t, table)
	if x.Total.Rows != 2 || x.Rollups != 1 || x.Records != 0 {
		t.Errorf("%+v", x)
	}
	now.now = noon.Add(399 * 24 * time.Hour)
	equal(t, *rollup(t, table, now.now), RollupReport{})
	now.now = noon.Add(402 * 24 * time.Hour)
	add()
	equal(t, *rollup(t, table, now.now), RollupReport{Expired: 1, Removed: 1, Young: 1})
	equal(t, len(names(t, table)), 1)
}

// A local store keeps no directories of days that are over, and makes one again for what comes late.
func TestRollupRemovesDirectories(t *testing.T) {
	dir := t.TempDir()
	local, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table := tableIn(t, local)
	days := func() int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(table.UsagePrefix()), "20*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	w := writer(t, table, Options{})
	for i := range 2 {
		w.Add(&Record{End: noon, Counters: Counters{Rows: 1}})
		flush(t, w)
		equal(t, days(), 1)
		for j, want := range []int{1, 0} { // the same day, and days later
			at := func() time.Time { return noon.Add(time.Duration(j) * 96 * time.Hour) }
			if j == 1 {
				w = writer(t, table, Options{})
				w.Add(&Record{End: noon, Counters: Counters{Rows: 1}})
				flush(t, w)
			}
			if _, err := Rollup(t.Context(), table, RollupOptions{Now: at, MinAge: -1}); err != nil {
				t.Fatal(err)
			}
			equal(t, days(), want)
		}
		w = writer(t, table, Options{})
		equal(t, load(t, table).Total.Rows, uint64(2*i+2))
	}
}

// What a process writes under an id that was merged counts for nothing, and goes.
func TestRollupOfWhatCameLate(t *testing.T) {
	now := &clock{noon}
	memory := object.NewMemory()
	memory.Now = now.Now
	table := tableIn(t, memory)
	w := writer(t, table, Options{Now: now.Now})
	w.Add(&Record{Counters: Counters{Rows: 1}})
	flush(t, w)
	now.now = noon.Add(2 * time.Hour) // the process stood still, and does not know
	rollup(t, table, now.now)
	w.Add(&Record{End: noon, Counters: Counters{Rows: 1}})
	flush(t, w)
	equal(t, len(names(t, table)), 2)
	equal(t, load(t, table).Total.Rows, 1)
	equal(t, *rollup(t, table, now.now), RollupReport{Removed: 1})
	equal(t, load(t, table).Total.Rows, 1)
	// Ids are remembered for a day.
	w = writer(t, table, Options{Now: now.Now})
	w.Add(&Record{End: noon, Counters: Counters{Rows: 1}})
	flush(t, w)
	now.now = noon.Add(28 * time.Hour)
	rollup(t, table, now.now)
	d, err := decode("x", get(t, table, names(t, table)[0]))
	if err != nil || len(d.merged) != 1 {
		t.Errorf("%v remembered, %v", d, err)
	}
}

// Rollups at once, and readers that are recorded meanwhile: nothing is counted twice, and nothing is lost.
func TestRollupsAtOnce(t *testing.T) {
	t.Run("memory", func(t *testing.T) { rollupsAtOnce(t, func() object.Store { return nil }, 4, 10) })
	dir := t.TempDir()
	t.Run("local", func(t *testing.T) { // each process with a store of its own
		rollupsAtOnce(t, func() object.Store {
			local, err := object.NewLocal(dir)
			if err != nil {
				t.Fatal(err)
			}
			return local
		}, 3, 4)
	})
}

func rollupsAtOnce(t *testing.T, open func() object.Store, processes, times int) {
	memory := object.NewMemory()
	process := func() *storage.Table {
		if blobs := open(); blobs != nil {
			return tableIn(t, blobs)
		}
		return tableIn(t, memory)
	}
	var wg sync.WaitGroup
	for range processes {
		table, other := process(), process()
		wg.Go(func() {
			for range times {
				w := writer(t, table, Options{Now: func() time.Time { return noon }})
				w.Add(&Record{Key: Key{Job: "train"}, Counters: Counters{Rows: 1, Readers: 1}})
				_ = w.Flush(context.Background())
			}
		})
		wg.Go(func() {
			for range times {
				// Each process writes under an id once only, so that it does not matter how old it is.
				_, err := Rollup(context.Background(), other,
					RollupOptions{Now: func() time.Time { return noon }, MinAge: -1})
				if err != nil && !strings.Contains(err.Error(), "were quicker") {
					t.Error(err)
				}
				if x, err := Load(context.Background(), other, time.Time{}, time.Time{}); err != nil ||
					x.DamagedCount > 0 {
					t.Errorf("%+v, %v", x, err)
				}
			}
		})
	}
	wg.Wait()
	table := process()
	if _, err := Rollup(t.Context(), table, RollupOptions{Now: func() time.Time { return noon },
		MinAge: -1}); err != nil {
		t.Fatal(err)
	}
	if x := load(t, table); x.Total.Rows != uint64(processes*times) || x.Rollups != 1 || x.Records != 0 {
		t.Errorf("%+v", x)
	}
	equal(t, len(names(t, table)), 1)
}

// overtaken is a store in which something happens just before a rollup is written.
type overtaken struct {
	object.Store
	before func()
}

func (o *overtaken) PutIfAbsent(ctx context.Context, name string, b []byte) error {
	if f := o.before; f != nil && strings.Contains(name, rollupDir) {
		o.before = nil
		f()
	}
	return o.Store.PutIfAbsent(ctx, name, b)
}

// A rollup that another overtakes begins anew, with what that has made and with what has come meanwhile.
func TestOvertakenRollup(t *testing.T) {
	blobs := &overtaken{Store: object.NewMemory()}
	table := tableIn(t, blobs)
	add := func() {
		w := writer(t, table, Options{Now: func() time.Time { return noon }})
		w.Add(&Record{Key: Key{Job: "train"}, Counters: Counters{Rows: 1}})
		flush(t, w)
	}
	roll := func() *RollupReport {
		r, err := Rollup(t.Context(), table, RollupOptions{Now: func() time.Time { return noon }, MinAge: -1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	add()
	blobs.before = func() {
		add()
		roll()
		add()
	}
	equal(t, *roll(), RollupReport{Days: 1, Merged: 1, Removed: 2})
	x := load(t, table)
	equal(t, x.Total.Rows, 3)
	equal(t, x.Records, 0)
	equal(t, len(names(t, table)), 1)
}

// A feature that was renamed has the name under which it was read last.
func TestRenamedFeature(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	w := writer(t, table, Options{})
	for i, name := range []string{"new", "old"} {
		at := noon.Add(-time.Duration(i) * time.Hour)
		w.Add(&Record{Key: Key{Job: name}, End: at, Features: []FeatureUse{{ID: 7, Name: name, Last: at}}})
	}
	flush(t, w)
	for range 2 {
		equal(t, load(t, table).Features[0].Name, "new")
		if _, err := Rollup(t.Context(), table, RollupOptions{MinAge: -1}); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, table *storage.Table, name string, b []byte) {
	t.Helper()
	if err := table.Store().Blobs().PutIfAbsent(t.Context(), name, b); err != nil {
		t.Fatal(err)
	}
}

// Damaged objects are passed over, counted and named; of a damaged rollup the one before counts while it is there.
func TestDamagedObjects(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	prefix := table.UsagePrefix()
	one := func(kind uint8, rows uint64) []byte {
		f := file{kind: kind, day: dayOf(noon), written: 1}
		f.records = []*Record{{Key: Key{Job: "a"}, Start: noon, End: noon, Counters: Counters{Rows: rows}}}
		return f.append(nil)
	}
	whole, rolled := one(recordsKind, 1), one(rollupKind, 10)
	d := dayOf(noon)
	put(t, table, recordsName(prefix, d, id{1}, 1), whole)
	put(t, table, recordsName(prefix, d, id{2}, 1), whole[:len(whole)-3])
	put(t, table, recordsName(prefix, d, id{3}, 1), nil)
	put(t, table, recordsName(prefix, d, id{4}, 1), rolled)  // of another kind
	put(t, table, recordsName(prefix, d+1, id{5}, 1), whole) // and day
	put(t, table, rollupName(prefix, d, 2), bytes.ToUpper(rolled))
	put(t, table, rollupName(prefix, d, 1), rolled)
	put(t, table, prefix+"2026-11-22/somebody-else", whole)
	check := func(rows uint64, damaged ...string) {
		t.Helper()
		x := load(t, table)
		if x.Total.Rows != rows || x.DamagedCount != uint64(len(damaged)) || len(x.Damaged) != len(damaged) {
			t.Fatalf("%d rows, %d damaged: %+v", x.Total.Rows, x.DamagedCount, x.Damaged)
		}
		for i, d := range x.Damaged {
			if !strings.Contains(d.Object, damaged[i]) || !errors.Is(d.Err, format.ErrCorrupt) {
				t.Errorf("%s: %v, want %s", d.Object, d.Err, damaged[i])
			}
		}
	}
	check(11, "rollup/2026-11-22-0000000002", "/02", "/03", "/04", "2026-11-23/05")
	all, err := Verify(t.Context(), table)
	if err != nil || all.DamagedCount != 5 || all.Records != 1 || all.Rollups != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	r, err := Rollup(t.Context(), table, RollupOptions{Now: func() time.Time { return noon }, MinAge: -1})
	if err != nil || r.Merged != 1 || r.DamagedCount != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	check(11, "/02", "/03", "/04", "2026-11-23/05")
	// Nothing new: the rollup that is good stays, whatever lies above it.
	put(t, table, rollupName(prefix, d, 9), []byte(magic))
	if _, err := Rollup(t.Context(), table, RollupOptions{Now: func() time.Time { return noon },
		MinAge: -1}); err != nil {
		t.Fatal(err)
	}
	check(11, "rollup/2026-11-22-0000000009", "/02", "/03", "/04", "2026-11-23/05")
}

// A program that is older than a rollup leaves the day to newer ones: the rollup that it could make would replace what
// it cannot read.
func TestRollupOfNewerVersion(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	prefix, d := table.UsagePrefix(), dayOf(noon)
	f := file{kind: recordsKind, day: d, written: 1,
		records: []*Record{{Key: Key{Job: "a"}, Start: noon, End: noon, Counters: Counters{Rows: 1}}}}
	whole := f.append(nil)
	newer := sealedAs(version+1, []byte("whatever comes"))
	put(t, table, recordsName(prefix, d, id{1}, 1), whole)
	put(t, table, recordsName(prefix, d, id{2}, 1), newer)
	put(t, table, rollupName(prefix, d, 1), newer)
	f.day = d - 1
	put(t, table, recordsName(prefix, d-1, id{3}, 1), f.append(nil))
	put(t, table, recordsName(prefix, d-1, id{4}, 1), newer)
	opts := RollupOptions{Now: func() time.Time { return noon }, MinAge: -1}
	for range 2 {
		r, err := Rollup(t.Context(), table, opts)
		if err != nil || r.DamagedCount != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, x := range r.Damaged {
			if !errors.Is(x.Err, format.ErrUnsupported) {
				t.Errorf("%s: %v", x.Object, x.Err)
			}
		}
		want := []string{
			recordsName(prefix, d-1, id{4}, 1), recordsName(prefix, d, id{1}, 1), recordsName(prefix, d, id{2}, 1),
			rollupName(prefix, d-1, 1), rollupName(prefix, d, 1),
		}
		if got := names(t, table); !slices.Equal(got, want) {
			t.Fatalf("left are %q, want %q", got, want)
		}
	}
	if x := load(t, table); x.Total.Rows != 2 || x.DamagedCount != 3 {
		t.Errorf("%d rows, %+v", x.Total.Rows, x.Damaged)
	}
	opts.Now = func() time.Time { return noon.AddDate(2, 0, 0) }
	if _, err := Rollup(t.Context(), table, opts); err != nil || len(names(t, table)) > 0 {
		t.Errorf("%v, left are %q", err, names(t, table))
	}
}

// huge is a store one of whose objects says that it is too large to be ours.
type huge struct{ object.Store }

func (h huge) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	if len(p) > maxObject {
		panic("it was read")
	}
	return h.Store.ReadAt(ctx, name, p, off)
}

func TestHugeObject(t *testing.T) {
	table := tableIn(t, huge{object.NewMemory()})
	put(t, table, recordsName(table.UsagePrefix(), dayOf(noon), id{1}, 1), make([]byte, maxObject+1))
	if x := load(t, table); x.DamagedCount != 1 ||
		!strings.Contains(x.Damaged[0].Err.Error(), "bytes: usage records have at most") {
		t.Errorf("%+v", x)
	}
}

// Sums stay at the largest number.
func TestSumsDoNotWrap(t *testing.T) {
	table := tableIn(t, object.NewMemory())
	most := ^uint64(0)
	w := writer(t, table, Options{})
	for i := range 3 {
		w.Add(&Record{
			Key: Key{Job: "a", Filter: uint64(i)}, End: noon, Counters: Counters{Rows: most, Stall: 1 << 62},
			Features: []FeatureUse{{ID: 1, BytesNeeded: most, BytesUnneeded: most, Last: noon.Add(time.Hour)}},
		})
	}
	flush(t, w)
	for range 2 {
		x := load(t, table)
		if x.Total.Rows != most || x.Total.Stall != 1<<63-1 || x.Features[0].BytesNeeded != most ||
			!x.Features[0].Last.Equal(noon) {
			t.Errorf("%+v, %+v", x.Total, x.Features[0])
		}
		if _, err := Rollup(t.Context(), table, RollupOptions{MinAge: -1}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRollupFits: a day of too many jobs is rolled up, and nothing that was read is lost: those that read least are
// one.
func TestRollupFits(t *testing.T) {
	rollup := func(jobs int) *file {
		f := &file{kind: rollupKind, day: dayOf(noon)}
		for job := range jobs {
			r := &Record{Key: Key{Job: fmt.Sprint("run ", job), User: "ann"}, Start: noon, End: noon,
				Counters: Counters{Readers: 1, BytesNeeded: uint64(100 * (job + 1))}}
			r.Features = []FeatureUse{{ID: 1, Name: "all", Readers: 1, BytesNeeded: 5, Last: noon},
				{ID: catalog.FeatureID(job + 2), Name: fmt.Sprint("f", job), Readers: 1, Last: noon}}
			f.records = append(f.records, r)
		}
		return f
	}
	whole := len(rollup(100).append(nil))
	for _, limit := range []int{whole, whole - 1, whole / 2, 2000} {
		f := rollup(100)
		others := newSum(Key{Job: othersJob}) // of a rollup before
		others.add(&Record{Counters: Counters{Readers: 7, BytesNeeded: 1 << 40}, Start: noon, End: noon})
		if limit < whole {
			f.records = append(f.records, &others.Record)
		}
		b := f.fit(limit)
		d, err := decode("x", b)
		if err != nil {
			t.Fatal(err)
		}
		var total Counters
		jobs, features, largest := 0, uint64(0), false
		if err := d.each(func(r *Record) error {
			total.add(&r.Counters)
			jobs++
			largest = largest || r.Job == "run 99"
			for i := range r.Features {
				features += r.Features[i].Readers
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := Counters{Readers: 100, BytesNeeded: 505000}
		if limit < whole {
			want.add(&others.Counters)
		}
		if total != want || features != 200 || limit == whole && jobs != 100 || limit < whole && jobs >= 100 ||
			limit > 2000 && (len(b) > limit || !largest) {
			t.Errorf("within %d of %d bytes: %d bytes, %d jobs, %d reads, %+v, want %+v", limit, whole, len(b), jobs,
				features, total, want)
		}
	}
}
