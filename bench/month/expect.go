package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/usage"
)

// A footprint is what the features of a table take in the store: from the segments' indexes, without a reader.
type footprint struct {
	rows    uint64
	stripes map[string]uint64 // of each feature's files
	bytes   map[string]uint64 // of stripes and dictionaries, what features share left out
	group   map[string]map[inverse]bool
	shared  map[inverse]uint64 // bytes of the inverse of a group of features, in a segment
	ids     map[string]catalog.FeatureID
	names   map[catalog.FeatureID]string
	stored  uint64 // bytes of all features, inverses too
}

// An inverse is that of a group of features in a segment.
type inverse struct {
	segment string
	id      uint64
}

func footprintOf(ctx context.Context, snap *storage.Snapshot) (*footprint, error) {
	f := &footprint{
		rows: snap.Info().LiveRows(), stripes: map[string]uint64{}, bytes: map[string]uint64{},
		group:  map[string]map[inverse]bool{},
		shared: map[inverse]uint64{}, ids: map[string]catalog.FeatureID{}, names: map[catalog.FeatureID]string{},
	}
	features, err := snap.Features(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range features {
		f.ids[x.Name], f.names[x.ID] = x.ID, x.Name
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			return nil, err
		}
		entries, err := g.Entries(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			n := uint64(0)
			for i := range e.Meta.Stripes {
				n += e.Meta.Stripes[i].Length
			}
			_, dictionary := e.Meta.Dictionary.Range()
			n += dictionary
			f.stored += n
			name, ok := f.names[catalog.FeatureID(e.Meta.Feature)]
			if !ok {
				f.shared[inverse{d.ID, e.Meta.Feature}] = n
				continue
			}
			f.bytes[name] += n
			f.stripes[name] += uint64(len(e.Meta.Stripes))
			if e.Meta.Group != 0 {
				if f.group[name] == nil {
					f.group[name] = map[inverse]bool{}
				}
				f.group[name][inverse{d.ID, e.Meta.Group}] = true
			}
		}
	}
	return f, nil
}

// needed returns the bytes that a read of all rows of some features needs.
func (f *footprint) needed(features []string) (n uint64) {
	met := map[inverse]bool{}
	for _, name := range features {
		n += f.bytes[name]
		for i := range f.group[name] {
			if !met[i] {
				met[i] = true
				n += f.shared[i]
			}
		}
	}
	return n
}

// A mismatch is a figure of the usage records that the job list does not give.
type mismatch struct {
	What string `json:"what"`
	Got  string `json:"got"`
	Want string `json:"want"`
}

// A checker compares.
type checker struct {
	compared int
	found    []mismatch
}

func (c *checker) equal(got, want any, what string, args ...any) {
	c.compared++
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		c.found = append(c.found, mismatch{fmt.Sprintf(what, args...), g, w})
	}
}

// A featureRead is what follows from the list of jobs of a feature.
type featureRead struct {
	readers     uint64
	jobs        int
	days        map[int]bool
	byJob       map[string]uint64
	least, most uint64 // bytes needed, without what it shares with others, and with all of that
	first, last int    // days
}

// A dayRead is what follows of a day.
type dayRead struct {
	readers, rows uint64
	jobs          int
	features      map[string]bool
}

// expected returns what follows from a list of jobs, by feature and by day.
func expected(l *jobs.List, f *footprint) (map[string]*featureRead, []dayRead) {
	want, byDay := map[string]*featureRead{}, make([]dayRead, l.Days)
	for i := range l.Jobs {
		j := &l.Jobs[i]
		for d, n := range j.Runs {
			if n == 0 {
				continue
			}
			byDay[d].readers += uint64(n)
			byDay[d].rows += uint64(n) * f.rows
			byDay[d].jobs++
			if byDay[d].features == nil {
				byDay[d].features = map[string]bool{}
			}
			for _, name := range j.Features {
				byDay[d].features[name] = true
			}
		}
		runs := uint64(j.Total())
		for _, name := range j.Features {
			r := want[name]
			if r == nil {
				r = &featureRead{days: map[int]bool{}, byJob: map[string]uint64{}, first: l.Days}
				want[name] = r
			}
			r.readers += runs
			r.jobs++
			r.byJob[j.Name+" of "+j.User] = runs
			r.least += runs * f.bytes[name]
			r.most += runs * f.bytes[name]
			for i := range f.group[name] {
				r.most += runs * f.shared[i]
			}
			for d, n := range j.Runs {
				if n > 0 {
					r.days[d], r.first, r.last = true, min(r.first, d), max(r.last, d)
				}
			}
		}
	}
	return want, byDay
}

// bytes compares the bytes needed of a feature.
func (c *checker) bytes(got uint64, r *featureRead, what, name string) {
	if r.least == r.most {
		c.equal(got, r.least, "%s%s: bytes needed", what, name)
		return
	}
	c.equal(r.least <= got && got <= r.most, true, "%s%s: %d bytes needed, %d to %d", what, name, got, r.least, r.most)
}

// check holds what the usage records say of the month to what follows from the job list, the segments' indexes, and
// what each run's scanner counted itself.
func (c *checker) check(l *jobs.List, f *footprint, ran *month, s *usage.Summary) {
	want, byDay := expected(l, f)
	c.equal(s.DamagedCount, 0, "damaged records")
	c.equal(s.Total.Readers, l.Total(), "readers")
	c.equal(s.Total.Rows, uint64(l.Total())*f.rows, "rows")
	c.equal(len(s.Features), len(want), "features that were read")
	var needed, over uint64
	for i := range s.Features {
		u := &s.Features[i]
		name := f.names[u.ID]
		r := want[name]
		if r == nil {
			c.equal(name, "nothing", "feature %d", u.ID)
			continue
		}
		needed, over = needed+u.BytesNeeded, over+u.BytesUnneeded
		c.equal(u.Name, name, "name of feature %d", u.ID)
		c.equal(u.Readers, r.readers, "%s: readers", name)
		c.equal(u.Jobs, r.jobs, "%s: jobs", name)
		c.equal(u.Days, len(r.days), "%s: days", name)
		c.equal(u.Stripes, r.readers*f.stripes[name], "%s: stripes", name)
		c.equal(u.Rows, r.readers*f.rows, "%s: rows", name)
		c.equal(u.First.Format(time.DateOnly), l.Day(r.first).Format(time.DateOnly), "%s: first read", name)
		c.equal(u.Last.Format(time.DateOnly), l.Day(r.last).Format(time.DateOnly), "%s: last read", name)
		c.bytes(u.BytesNeeded, r, "", name)
	}
	c.equal(needed, s.Total.BytesNeeded, "bytes needed, over features and in all")
	c.equal(over, s.Total.BytesUnneeded, "bytes of read amplification, over features and in all")

	c.equal(len(s.Jobs), len(l.Jobs), "jobs")
	for i := range l.Jobs {
		j := &l.Jobs[i]
		at := slices.IndexFunc(s.Jobs, func(t usage.JobTotal) bool { return t.Job == j.Name && t.User == j.User })
		if at < 0 {
			c.equal("nothing", "a record", "job %s of %s", j.Name, j.User)
			continue
		}
		t, runs, counted := &s.Jobs[at], uint64(j.Total()), ran.byJob[j.Name]
		c.equal(t.Readers, runs, "%s: readers", j.Name)
		c.equal(t.Rows, runs*f.rows, "%s: rows", j.Name)
		c.equal(t.BytesNeeded, runs*f.needed(j.Features), "%s: bytes needed", j.Name)
		c.equal(t.BytesNeeded, counted.BytesNeeded, "%s: bytes needed, as its scanners count", j.Name)
		c.equal(t.BytesUnneeded, counted.BytesUnneeded, "%s: bytes of read amplification, as its scanners count",
			j.Name)
		c.equal(t.Requests, counted.Requests, "%s: requests, as its scanners count", j.Name)
		c.equal(t.Batches, counted.Batches, "%s: batches, as its scanners count", j.Name)
		c.equal(len(t.Features), len(j.Features), "%s: features", j.Name)
		for _, u := range t.Features {
			r := want[f.names[u.ID]]
			if r == nil {
				c.equal(f.names[u.ID], "nothing", "%s: feature %d", j.Name, u.ID)
				continue
			}
			c.equal(u.Readers, r.byJob[j.Name+" of "+j.User], "%s: readers of %s", j.Name, f.names[u.ID])
		}
		var days []string
		for d, n := range j.Runs {
			if n > 0 {
				days = append(days, fmt.Sprint(l.Day(d).Format(time.DateOnly), " ", n))
			}
		}
		var got []string
		for _, d := range t.Days {
			got = append(got, fmt.Sprint(d.Day.Format(time.DateOnly), " ", d.Readers))
		}
		c.equal(got, days, "%s: days and readers on each", j.Name)
	}
	n := 0
	for d, x := range byDay {
		if x.readers == 0 {
			continue
		}
		n++
		at := slices.IndexFunc(s.Days, func(t usage.DayTotal) bool {
			return t.Day.Format(time.DateOnly) == l.Day(d).Format(time.DateOnly)
		})
		if at < 0 {
			c.equal("nothing", "a record", "day %d", d)
			continue
		}
		t := &s.Days[at]
		c.equal(t.Readers, x.readers, "day %d: readers", d)
		c.equal(t.Rows, x.rows, "day %d: rows", d)
		c.equal(t.Jobs, x.jobs, "day %d: jobs", d)
		c.equal(t.Features, len(x.features), "day %d: features", d)
	}
	c.equal(len(s.Days), n, "days")
}
