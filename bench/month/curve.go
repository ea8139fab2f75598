package main

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/bench/jobs"
)

// A curvePoint says which part of the stored bytes, those read most first, serves a part of the traffic.
type curvePoint struct {
	Traffic  float64 `json:"traffic"`
	Bytes    float64 `json:"bytes"`
	Features float64 `json:"features"`
}

// curve draws the curve from the job list and what features take: a feature's popularity is the bytes read of it over
// those stored. What features share is divided among those of a group.
func curve(l *jobs.List, f *footprint) []curvePoint {
	type part struct {
		name           string
		stored, served float64
	}
	members := map[inverse]int{}
	for _, groups := range f.group {
		for i := range groups {
			members[i]++
		}
	}
	runs := map[string]int{}
	for i := range l.Jobs {
		for _, name := range l.Jobs[i].Features {
			runs[name] += l.Jobs[i].Total()
		}
	}
	var parts []part
	stored, served := 0.0, 0.0
	for name, n := range f.bytes {
		p := part{name: name, stored: float64(n)}
		for i := range f.group[name] {
			p.stored += float64(f.shared[i]) / float64(members[i])
		}
		p.served = p.stored * float64(runs[name])
		parts = append(parts, p)
		stored, served = stored+p.stored, served+p.served
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(runs[b.name], runs[a.name]), cmp.Compare(a.name, b.name))
	})
	var out []curvePoint
	at := 0
	bytes, traffic := 0.0, 0.0
	for _, y := range []float64{0.5, 0.8, 0.9, 0.95, 0.99, 1} {
		for at < len(parts) && traffic < y*served*(1-1e-12) {
			bytes, traffic = bytes+parts[at].stored, traffic+parts[at].served
			at++
		}
		out = append(out, curvePoint{y, bytes / stored, float64(at) / float64(len(parts))})
	}
	return out
}
