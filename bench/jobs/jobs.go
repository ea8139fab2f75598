// Package jobs draws lists of training jobs: who reads which features of a generated table, and how often.
package jobs

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dsistore/dsistore/internal/workload"
)

// A Job is what somebody trains again and again: the same features of the whole table each time.
type Job struct {
	Name     string
	User     string
	Features []string // sorted
	Runs     []int    // by day of the month
}

// Total returns how often the job runs in the month.
func (j *Job) Total() (n int) {
	for _, k := range j.Runs {
		n += k
	}
	return n
}

// A List is the truth of a simulated month: what was read by whom on which day follows from it alone.
type List struct {
	First time.Time // the first day
	Days  int
	Jobs  []Job // the one that runs most often first
}

// A Shape says what the jobs of a month are like.
type Shape struct {
	Jobs, Days int
	// Runs is how often the job runs that runs most often; the k-th runs Runs / k^RunZipf times, and once at least.
	Runs    int
	RunZipf float64
	// A job takes from MinShare to MaxShare of the dense and sparse features, drawn without replacement with weights of
	// Zipf's law: the feature of popularity rank r has 1 / r^FeatureZipf, times SparseFavour where it is sparse.
	MinShare, MaxShare        float64
	FeatureZipf, SparseFavour float64
	Seed                      uint64
}

// users are who the jobs belong to, by turns.
var users = []string{"ads", "feed", "video", "search", "research"}

// New draws the jobs of a month that begins on a day. Every job has the labels that it is told, and features of
// the workload.
func New(t *workload.Truth, first time.Time, s Shape, labels []string) *List {
	r := rand.New(rand.NewPCG(s.Seed, 40))
	var all []workload.Feature
	for _, f := range t.Features() {
		if f.MapColumn() != "" {
			all = append(all, f)
		}
	}
	// Popularity has nothing to do with the names' order, nor with families.
	rank := r.Perm(len(all))
	weight := make([]float64, len(all))
	for i, f := range all {
		weight[i] = math.Pow(float64(rank[i]+1), -s.FeatureZipf)
		if f.Type.Kind.String() != "dense" {
			weight[i] *= s.SparseFavour
		}
	}
	list := &List{First: first, Days: s.Days}
	for k := range s.Jobs {
		j := Job{Name: fmt.Sprintf("rank_%02d", k), User: users[k%len(users)], Runs: make([]int, s.Days)}
		share := s.MinShare + r.Float64()*(s.MaxShare-s.MinShare)
		j.Features = draw(r, all, weight, max(int(share*float64(len(all))+0.5), 1))
		j.Features = append(j.Features, labels...)
		slices.Sort(j.Features)
		for range max(int(float64(s.Runs)/math.Pow(float64(k+1), s.RunZipf)+0.5), 1) {
			j.Runs[r.IntN(s.Days)]++
		}
		list.Jobs = append(list.Jobs, j)
	}
	slices.SortStableFunc(list.Jobs, func(a, b Job) int { return cmp.Compare(b.Total(), a.Total()) })
	return list
}

// draw takes n of the features by their weights, without replacement: those with the largest u^(1/w), u uniform
// (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). Its logarithm is compared.
func draw(r *rand.Rand, all []workload.Feature, weight []float64, n int) []string {
	type drawn struct {
		name string
		key  float64
	}
	keys := make([]drawn, len(all))
	for i, f := range all {
		keys[i] = drawn{f.Name, math.Log(1-r.Float64()) / weight[i]}
	}
	slices.SortFunc(keys, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, k := range keys[:min(n, len(keys))] {
		out = append(out, k.name)
	}
	return out
}

// Day returns the date of a day of the month.
func (l *List) Day(d int) time.Time { return l.First.AddDate(0, 0, d) }

// Total returns how often jobs ran.
func (l *List) Total() (n int) {
	for i := range l.Jobs {
		n += l.Jobs[i].Total()
	}
	return n
}
