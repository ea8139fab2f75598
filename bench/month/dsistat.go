package main

import (
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/tools/report"
)

// checkReport holds what dsistat prints of the month to the same.
func (c *checker) checkReport(l *jobs.List, f *footprint, ran *month, t *report.Table) {
	want, byDay := expected(l, f)
	c.equal(t.Summary.Reads.Readers, l.Total(), "dsistat: readers")
	c.equal(t.Summary.Reads.Jobs, len(l.Jobs), "dsistat: jobs")
	c.equal(t.Summary.Reads.Rows, uint64(l.Total())*f.rows, "dsistat: rows")
	c.equal(t.Summary.FeaturesRead, len(want), "dsistat: features that were read")
	c.equal(len(t.Features), len(f.ids), "dsistat: features")
	for i := range t.Features {
		u := &t.Features[i]
		r := want[u.Name]
		if r == nil {
			c.equal(u.Readers, 0, "dsistat: %s: readers", u.Name)
			continue
		}
		c.equal(u.Readers, r.readers, "dsistat: %s: readers", u.Name)
		c.equal(u.Use.Jobs, r.jobs, "dsistat: %s: jobs", u.Name)
		c.equal(u.Days, len(r.days), "dsistat: %s: days", u.Name)
		c.equal(u.Stripes, r.readers*f.stripes[u.Name], "dsistat: %s: stripes", u.Name)
		c.equal(u.RowsRead, r.readers*f.rows, "dsistat: %s: rows", u.Name)
		c.equal(u.FirstRead, l.Day(r.first).Format(time.DateOnly), "dsistat: %s: first read", u.Name)
		c.equal(strings.HasPrefix(u.LastRead, l.Day(r.last).Format(time.DateOnly)), true, "dsistat: %s: last read %s",
			u.Name, u.LastRead)
		c.bytes(u.BytesNeeded, r, "dsistat: ", u.Name)
	}
	c.equal(len(t.Jobs), len(l.Jobs), "dsistat: jobs")
	for i := range l.Jobs {
		j := &l.Jobs[i]
		at := slices.IndexFunc(t.Jobs, func(x report.Job) bool { return x.Job == j.Name && x.User == j.User })
		if at < 0 {
			c.equal("nothing", "a line", "dsistat: job %s of %s", j.Name, j.User)
			continue
		}
		x, runs, counted, days := &t.Jobs[at], uint64(j.Total()), ran.byJob[j.Name], 0
		for _, n := range j.Runs {
			if n > 0 {
				days++
			}
		}
		c.equal(x.Readers, runs, "dsistat: %s: readers", j.Name)
		c.equal(x.Rows, runs*f.rows, "dsistat: %s: rows", j.Name)
		c.equal(x.Days, days, "dsistat: %s: days", j.Name)
		c.equal(x.Features, len(j.Features), "dsistat: %s: features", j.Name)
		c.equal(x.BytesNeeded, runs*f.needed(j.Features), "dsistat: %s: bytes needed", j.Name)
		c.equal(x.BytesUnneeded, counted.BytesUnneeded, "dsistat: %s: bytes of read amplification", j.Name)
		c.equal(x.Requests, counted.Requests, "dsistat: %s: requests", j.Name)
		c.equal(x.Batches, counted.Batches, "dsistat: %s: batches", j.Name)
	}
	for d, x := range byDay {
		at := slices.IndexFunc(t.Days, func(y report.Day) bool { return y.Day == l.Day(d).Format(time.DateOnly) })
		if at < 0 {
			c.equal(0, x.readers, "dsistat: day %d, of which it has no line: readers", d)
			continue
		}
		y := &t.Days[at]
		c.equal(y.Readers, x.readers, "dsistat: day %d: readers", d)
		c.equal(y.Rows, x.rows, "dsistat: day %d: rows", d)
		c.equal(y.Reads.Jobs, x.jobs, "dsistat: day %d: jobs", d)
		c.equal(y.Features, len(x.features), "dsistat: day %d: features", d)
	}
}
