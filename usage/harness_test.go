package usage

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// noon is the middle of a day, and of all tests.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// A clock stands still unless it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func tableIn(t interface{ Fatal(...any) }, blobs object.Store) *storage.Table {
	// records may be there before the first commit
	s, err := storage.Create(context.Background(), blobs, storage.Options{Init: true})
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.NewTable(context.Background(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func writer(t interface{ Fatal(...any) }, table *storage.Table, opts Options) *Writer {
	if opts.Interval == 0 {
		opts.Interval = -1
	}
	if opts.User == "" {
		opts.User, opts.Host = "ann", "h1"
	}
	w, err := NewWriter(table, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func flush(t interface{ Fatal(...any) }, w *Writer) {
	if err := w.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func load(t interface{ Fatal(...any) }, table *storage.Table) *Summary {
	s, err := Load(context.Background(), table, time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// names lists the objects of the table's records.
func names(t interface{ Fatal(...any) }, table *storage.Table) []string {
	var out []string
	for info, err := range table.Store().Blobs().List(context.Background(), table.UsagePrefix(), "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

func get(t interface{ Fatal(...any) }, table *storage.Table, name string) []byte {
	info, err := table.Store().Blobs().Stat(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size)
	if err := table.Store().Blobs().ReadAt(context.Background(), name, b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}

// drawRecord draws a record of a day; few keys and features, so that records meet.
func drawRecord(t *rapid.T, at time.Time) *Record {
	number := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64Range(0, 1<<40))
	time_ := rapid.Int64Range(0, int64(time.Hour))
	r := &Record{
		Key: Key{
			Job:     rapid.SampledFrom([]string{"train", "eval", "Ünïcode", ""}).Draw(t, "job"),
			User:    rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user"),
			Program: rapid.SampledFrom([]string{"go", "python"}).Draw(t, "program"),
			Branch:  rapid.SampledFrom([]string{"", "exp"}).Draw(t, "branch"),
			List:    rapid.SampledFrom([]string{"", "panel"}).Draw(t, "list"),
			Purpose: rapid.SampledFrom([]string{PurposeRead, PurposeCount, PurposeOverlay}).Draw(t, "purpose"),
			Filter:  rapid.SampledFrom([]uint64{0, 1, 1 << 63}).Draw(t, "filter"),
		},
		Host: rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host"), PID: number.Draw(t, "pid"),
		Snapshot: number.Draw(t, "snapshot"),
		End:      at.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "end")) * time.Second),
	}
	r.Start = r.End.Add(-time.Duration(rapid.IntRange(0, 3600).Draw(t, "start")) * time.Second)
	for _, n := range r.Counters.numbers() {
		*n = number.Draw(t, "number")
	}
	for _, d := range r.durations() {
		*d = time.Duration(time_.Draw(t, "duration"))
	}
	for _, f := range rapid.SliceOfNDistinct(rapid.IntRange(1, 9), 0, 6, rapid.ID[int]).Draw(t, "features") {
		u := FeatureUse{ID: catalog.FeatureID(f) << 55, Name: fmt.Sprint("feature ", f), Last: r.End}
		for _, n := range u.numbers() {
			*n = number.Draw(t, "use")
		}
		r.Features = append(r.Features, u)
	}
	return r
}

// A model adds records up on its own: by day, job and user, and of these by feature.
type model map[modelKey]*modelSum

type modelKey struct{ day, job, user string }

type modelSum struct {
	counters Counters
	uses     map[catalog.FeatureID][5]uint64
	last     map[catalog.FeatureID]time.Time
}

func (m model) add(r *Record) {
	k := modelKey{r.End.UTC().Format("2006-01-02"), r.Job, r.User}
	s := m[k]
	if s == nil {
		s = &modelSum{uses: map[catalog.FeatureID][5]uint64{}, last: map[catalog.FeatureID]time.Time{}}
		m[k] = s
	}
	c, o := &s.counters, &r.Counters
	c.Readers += o.Readers
	c.Rows += o.Rows
	c.Batches += o.Batches
	c.Requests += o.Requests
	c.BytesNeeded += o.BytesNeeded
	c.BytesUnneeded += o.BytesUnneeded
	c.Stall += o.Stall
	c.Decode += o.Decode
	c.Assemble += o.Assemble
	c.Read += o.Read
	c.StoredRows += o.StoredRows
	c.StoredSlots += o.StoredSlots
	c.EmittedRows += o.EmittedRows
	c.EmittedSlots += o.EmittedSlots
	c.SentReads += o.SentReads
	c.SentLists += o.SentLists
	c.BytesDown += o.BytesDown
	c.BytesCached += o.BytesCached
	for _, u := range r.Features {
		x := s.uses[u.ID]
		for i, n := range []uint64{u.Readers, u.Stripes, u.Rows, u.BytesNeeded, u.BytesUnneeded} {
			x[i] += n
		}
		s.uses[u.ID] = x
		if u.Last.After(s.last[u.ID]) {
			s.last[u.ID] = u.Last
		}
	}
}

// check holds what Walk and Load say to the model.
func (m model) check(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, table *storage.Table) {
	got := model{}
	_, err := Walk(context.Background(), table, time.Time{}, time.Time{}, func(day time.Time, r *Record) error {
		if !day.Equal(r.End.Truncate(24 * time.Hour)) {
			t.Fatalf("a record of %v on %v", r.End, day)
		}
		got.add(r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Fatalf("recorded\n%v\nwant\n%v", got, m)
	}
	s := load(t, table)
	var total Counters
	days, jobs, features := map[string]bool{}, map[[2]string]bool{}, map[catalog.FeatureID][5]uint64{}
	jobsOf := map[catalog.FeatureID]map[[2]string]bool{}
	for k, x := range m {
		total.add(&x.counters)
		days[k.day], jobs[[2]string{k.job, k.user}] = true, true
		for id, u := range x.uses {
			sum := features[id]
			for i := range u {
				sum[i] += u[i]
			}
			features[id] = sum
			if jobsOf[id] == nil {
				jobsOf[id] = map[[2]string]bool{}
			}
			jobsOf[id][[2]string{k.job, k.user}] = true
		}
	}
	if s.Total != total || len(s.Days) != len(days) || len(s.Jobs) != len(jobs) || len(s.Features) != len(features) {
		t.Fatalf("summary %+v, want %+v of %d days, %d jobs, %d features", s, total, len(days), len(jobs),
			len(features))
	}
	var byJob, byDay Counters
	for i := range s.Jobs {
		byJob.add(&s.Jobs[i].Counters)
	}
	for i := range s.Days {
		byDay.add(&s.Days[i].Counters)
	}
	if byJob != total || byDay != total {
		t.Fatalf("jobs add up to %+v, days to %+v: want %+v", byJob, byDay, total)
	}
	for i := range s.Features {
		f := &s.Features[i]
		if want := features[f.ID]; want != [5]uint64{f.Readers, f.Stripes, f.Rows, f.BytesNeeded, f.BytesUnneeded} ||
			f.Jobs != len(jobsOf[f.ID]) {
			t.Fatalf("feature %+v, want %v of %d jobs", f, want, len(jobsOf[f.ID]))
		}
	}
	ids := slices.Sorted(maps.Keys(features))
	var asked []catalog.Feature
	for _, id := range append(ids, 99) {
		asked = append(asked, catalog.Feature{ID: id})
	}
	for i, p := range s.Popularity(asked) {
		if want := float64(features[asked[i].ID][1]); p != want {
			t.Fatalf("popularity of %d is %v, want %v", asked[i].ID, p, want)
		}
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
