package usage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Load adds up what was recorded of a table, as Walk gives it.
func Load(ctx context.Context, t *storage.Table, since, until time.Time) (*Summary, error) {
	a := adder{
		out:      Summary{Table: t.Name(), Since: since, Until: until},
		features: map[catalog.FeatureID]*addedFeature{}, jobs: map[jobKey]*addedJob{},
	}
	coverage, err := Walk(ctx, t, since, until, func(day time.Time, r *Record) error {
		a.add(day, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.out.Coverage = *coverage
	return a.summary(), nil
}

// An adder makes a Summary. Days come in their order.
type adder struct {
	out      Summary
	features map[catalog.FeatureID]*addedFeature
	jobs     map[jobKey]*addedJob
	day      *DayTotal
}

type jobKey struct{ job, user string }

type addedFeature struct {
	FeatureTotal
	last time.Time // day on which it was read last
}

type addedJob struct {
	JobTotal
	features map[catalog.FeatureID]int // in JobTotal.Features
}

func (a *adder) add(day time.Time, r *Record) {
	if a.day == nil || !a.day.Day.Equal(day) {
		a.out.Days = append(a.out.Days, DayTotal{Day: day})
		a.day = &a.out.Days[len(a.out.Days)-1]
	}
	a.out.Total.add(&r.Counters)
	a.day.add(&r.Counters)
	key := jobKey{r.Job, r.User}
	j := a.jobs[key]
	if j == nil {
		j = &addedJob{JobTotal: JobTotal{Job: r.Job, User: r.User, Start: r.Start, End: r.End},
			features: map[catalog.FeatureID]int{}}
		a.jobs[key] = j
	}
	if k := len(j.Days) - 1; k < 0 || !j.Days[k].Day.Equal(day) {
		j.Days = append(j.Days, JobDay{Day: day})
		a.day.Jobs++
	}
	d := &j.Days[len(j.Days)-1]
	d.Readers = plus(d.Readers, r.Readers)
	j.JobTotal.add(r)
	for i := range r.Features {
		u := &r.Features[i]
		f := a.features[u.ID]
		if f == nil {
			f = &addedFeature{FeatureTotal: FeatureTotal{FeatureUse: FeatureUse{ID: u.ID}, First: day}}
			a.features[u.ID] = f
		}
		f.FeatureUse.add(u)
		if f.Days == 0 || !f.last.Equal(day) {
			f.last = day
			f.Days++
			a.day.Features++
		}
		at, ok := j.features[u.ID]
		if !ok {
			at = len(j.Features)
			j.features[u.ID] = at
			j.Features = append(j.Features, JobFeature{ID: u.ID})
			f.Jobs++
		}
		j.Features[at].add(u)
	}
}

// insert inserts a text into sorted ones, unless it is empty or there.
func insert(sorted []string, s string) []string {
	if at, ok := slices.BinarySearch(sorted, s); !ok && s != "" {
		return slices.Insert(sorted, at, s)
	}
	return sorted
}

func (j *JobTotal) add(r *Record) {
	j.Programs, j.Purposes = insert(j.Programs, r.Program), insert(j.Purposes, r.Purpose)
	j.Snapshot = max(j.Snapshot, r.Snapshot)
	if r.Start.Before(j.Start) {
		j.Start = r.Start
	}
	if r.End.After(j.End) {
		j.End = r.End
	}
	j.Counters.add(&r.Counters)
}

func (f *JobFeature) add(u *FeatureUse) {
	f.Readers = plus(f.Readers, u.Readers)
	f.Stripes = plus(f.Stripes, u.Stripes)
	f.Rows = plus(f.Rows, u.Rows)
	f.BytesNeeded = plus(f.BytesNeeded, u.BytesNeeded)
	f.BytesUnneeded = plus(f.BytesUnneeded, u.BytesUnneeded)
}

func (a *adder) summary() *Summary {
	for _, id := range sortedKeys(a.features) {
		a.out.Features = append(a.out.Features, a.features[id].FeatureTotal)
	}
	for _, j := range a.jobs {
		slices.SortFunc(j.Features, func(x, y JobFeature) int { return cmp.Compare(x.ID, y.ID) })
		a.out.Jobs = append(a.out.Jobs, j.JobTotal)
	}
	slices.SortFunc(a.out.Jobs, func(x, y JobTotal) int {
		return cmp.Or(strings.Compare(x.Job, y.Job), strings.Compare(x.User, y.User))
	})
	return &a.out
}

// Popularity returns how many stripes of each feature were fetched: what compaction puts popular features together by.
// It counts stripes, not bytes, so that a feature is not popular because it is large, and each epoch of a job, and each
// of its processes, counts.
func (s *Summary) Popularity(features []catalog.Feature) []float64 {
	out := make([]float64, len(features))
	for i, f := range features {
		if at, ok := slices.BinarySearchFunc(s.Features, f.ID,
			func(t FeatureTotal, id catalog.FeatureID) int { return cmp.Compare(t.ID, id) }); ok {
			out[i] = float64(s.Features[at].Stripes)
		}
	}
	return out
}
