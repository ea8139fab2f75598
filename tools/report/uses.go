package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/usage"
)

const (
	// curvePoints is how many points a curve has at most, beside its origin.
	curvePoints = 256
	// maxDays bounds the days of a trend: a wrong clock must not make thousands of empty days.
	maxDays = 3660
)

func timeText(t time.Time) string { return formatted(t, time.RFC3339) }
func dayText(t time.Time) string  { return formatted(t, time.DateOnly) }

// formatted prints a time in UTC, the zero time as nothing.
func formatted(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout)
}

// readsOf turns counters into Reads of so many jobs.
func readsOf(c usage.Counters, jobs int) Reads {
	r := Reads{
		Readers: c.Readers, Jobs: uint64(jobs), Rows: c.Rows, Batches: c.Batches, Requests: c.Requests,
		BytesNeeded:   c.BytesNeeded,
		BytesUnneeded: c.BytesUnneeded, SentReads: c.SentReads, SentLists: c.SentLists, BytesDown: c.BytesDown,
		BytesCached: c.BytesCached, StallSeconds: c.Stall.Seconds(), ReadSeconds: c.Read.Seconds(),
		DecodeSeconds:   c.Decode.Seconds(),
		AssembleSeconds: c.Assemble.Seconds(), DedupeFactor: c.StoredFactor(), EmittedFactor: c.EmittedFactor(),
	}
	r.Amplification = amplification(r.BytesNeeded, r.BytesUnneeded)
	return r
}

// amplification is what was fetched over what was needed; 0 when that is nothing.
func amplification(needed, unneeded uint64) float64 {
	return ratio(float64(needed)+float64(unneeded), float64(needed))
}

// ratio returns a / b, 0 for b = 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func share(part, whole uint64) float64 { return ratio(float64(part), float64(whole)) }

// possible reports whether a day can be that of a read. Wrong clocks give 1970, or days in the future.
func possible(day, now time.Time) bool {
	return day.After(now.AddDate(0, 0, -maxDays-1)) && !day.After(now.AddDate(0, 0, 1))
}

// firstDay is the first day that there are records of.
func firstDay(s *usage.Summary, now time.Time) time.Time {
	for i := range s.Days {
		if d := s.Days[i].Day; possible(d, now) {
			return d
		}
	}
	return time.Time{}
}

// notAfter returns t, or now where that is earlier: nothing was read later, whatever clocks say.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// usesOf returns how each feature was read.
func usesOf(s *usage.Summary, now time.Time) map[catalog.FeatureID]Use {
	out := make(map[catalog.FeatureID]Use, len(s.Features))
	for i := range s.Features {
		f := &s.Features[i]
		out[f.ID] = Use{
			Readers: f.Readers, Jobs: uint64(f.Jobs), Days: uint64(f.Days), Stripes: f.Stripes, RowsRead: f.Rows,
			BytesNeeded:   f.BytesNeeded,
			BytesUnneeded: f.BytesUnneeded, FirstRead: dayText(f.First), LastRead: timeText(notAfter(f.Last, now)),
		}
		if possible(f.Last, now) { // else by a wrong clock: when it was read is not known, and it may have been today
			use := out[f.ID]
			use.UnreadDays = daysSince(f.Last, now)
			out[f.ID] = use
		}
	}
	return out
}

// daysSince returns how many whole days have passed; 0 for the zero time.
func daysSince(t, now time.Time) uint64 {
	if t.IsZero() || now.Before(t) {
		return 0
	}
	return uint64(now.Sub(t) / (24 * time.Hour))
}

// jobsOf returns the jobs, those that read most bytes first. stored are the bytes of the table's features.
func jobsOf(s *usage.Summary, stored map[catalog.FeatureID]uint64) []Job {
	all := uint64(0)
	for _, n := range stored {
		all += n
	}
	out := []Job{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		job := Job{
			Job: j.Job, User: j.User, Programs: append([]string{}, j.Programs...),
			Purposes: append([]string{}, j.Purposes...),
			Snapshot: j.Snapshot, First: timeText(j.Start), Last: timeText(j.End),
			Days: uint64(len(j.Days)), Reads: readsOf(j.Counters, 1), Features: uint64(len(j.Features)),
		}
		known, bytes := uint64(0), uint64(0)
		for _, f := range j.Features {
			if n, ok := stored[f.ID]; ok {
				known, bytes = known+1, bytes+n
			}
		}
		job.FeatureShare, job.BytesShare = share(known, uint64(len(stored))), share(bytes, all)
		out = append(out, job)
	}
	slices.SortStableFunc(out, func(a, b Job) int {
		return cmp.Or(cmp.Compare(b.BytesNeeded+b.BytesUnneeded, a.BytesNeeded+a.BytesUnneeded),
			cmp.Compare(a.Job, b.Job), cmp.Compare(a.User, b.User))
	})
	return out
}

// daysOf returns what was read on each day: from that of the first read, or of the first snapshot since, to today.
func daysOf(s *usage.Summary, infos []snapshot.Info, since, now time.Time) []Day {
	byDay := map[string]*Day{}
	day := func(t time.Time) *Day {
		d := byDay[dayText(t)]
		if d == nil {
			d = &Day{Day: dayText(t), Reads: readsOf(usage.Counters{}, 0)}
			byDay[d.Day] = d
		}
		return d
	}
	for i := range s.Days {
		d := &s.Days[i]
		if !possible(d.Day, now) { // it has no place between the days that were
			continue
		}
		*day(d.Day) = Day{Day: dayText(d.Day), Reads: readsOf(d.Counters, d.Jobs), Features: uint64(d.Features)}
	}
	for _, i := range infos {
		if !i.Time.Before(since) && possible(i.Time, now) {
			day(i.Time)
		}
	}
	names := slices.Sorted(maps.Keys(byDay))
	if len(names) == 0 {
		return []Day{}
	}
	first, _ := time.Parse(time.DateOnly, names[0])
	last, _ := time.Parse(time.DateOnly, names[len(names)-1])
	if n := now.UTC().Truncate(24 * time.Hour); n.After(last) {
		last = n
	}
	if last.Sub(first) > maxDays*24*time.Hour {
		first = last.Add(-maxDays * 24 * time.Hour)
	}
	out, next := []Day{}, 0
	var rows, bytes *uint64 // of the snapshots before the first that is kept nothing is known
	if len(infos) == 0 || infos[0].Number <= 1 {
		rows, bytes = new(uint64), new(uint64)
	}
	for t := first; !t.After(last); t = t.Add(24 * time.Hour) {
		for ; next < len(infos) && infos[next].Time.Before(t.Add(24*time.Hour)); next++ {
			live := infos[next].LiveRows()
			rows, bytes = &live, &infos[next].Bytes
		}
		d := *day(t)
		d.TableRows, d.TableBytes = rows, bytes
		out = append(out, d)
	}
	return out
}

// curveOf returns which share of the bytes serves which share of the traffic.
func curveOf(features []Feature) Curve {
	type item struct {
		stored, read uint64
		density      float64 // bytes read for each stored
	}
	items := make([]item, 0, len(features))
	var stored, read float64
	for i := range features {
		f := &features[i]
		x := item{stored: f.StoredBytes + f.LayerBytes, read: f.BytesNeeded + f.BytesUnneeded}
		if x.read > 0 {
			x.density = float64(x.read) / float64(x.stored) // infinite where nothing is stored any more
		}
		items = append(items, x)
		stored, read = stored+float64(x.stored), read+float64(x.read)
	}
	c := Curve{Points: []CurvePoint{}, Marks: []CurvePoint{}}
	if read == 0 {
		return c
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.density, a.density) })
	marks := []float64{0.5, 0.8, 0.9, 0.95, 0.99}
	c.Points = append(c.Points, CurvePoint{})
	var s, r float64
	every := (len(items) + curvePoints - 1) / curvePoints
	for i, x := range items {
		s, r = s+float64(x.stored), r+float64(x.read)
		p := CurvePoint{Bytes: ratio(s, stored), Traffic: r / read, Features: uint64(i + 1)}
		for len(marks) > 0 && p.Traffic >= marks[0] {
			c.Marks = append(c.Marks, p)
			marks = marks[1:]
		}
		if (i+1)%every == 0 || i == len(items)-1 {
			c.Points = append(c.Points, p)
		}
	}
	return c
}
