package writer

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/storage"
)

// A Popularity says how often features are read. Usage records implement it.
type Popularity interface {
	// Popularity returns a number for each feature that is larger the more often it is read; 0: not known, or never.
	Popularity(features []storage.Feature) []float64
}

// SortForPacks puts features in the order in which packs hold them: keys and labels, which nearly every job reads, then
// those that are read most, then from small to large by what they decode to, so that a job's many small features lie
// together and large ones do not push them apart. Without p nothing is known of what is read. of returns what there is
// to know of a feature, and its decoded bytes.
func SortForPacks[F any](features []F, p Popularity, of func(F) (storage.Feature, uint64)) {
	type packed struct {
		feature  F
		role     int
		popular  float64
		rawBytes uint64
		name     string
	}
	known := make([]storage.Feature, len(features))
	order := make([]packed, len(features))
	for i, x := range features {
		var raw uint64
		known[i], raw = of(x)
		order[i] = packed{feature: x, role: RoleOrder(known[i].Role), rawBytes: raw, name: known[i].Name}
	}
	if p != nil {
		for i, n := range p.Popularity(known) {
			order[i].popular = n
		}
	}
	slices.SortFunc(order, func(a, b packed) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(b.popular, a.popular),
			cmp.Compare(a.rawBytes, b.rawBytes), cmp.Compare(a.name, b.name))
	})
	for i := range order {
		features[i] = order[i].feature
	}
}

// RoleOrder says where in packs features of a role come: keys first, then labels, then the others.
func RoleOrder(r storage.Role) int {
	switch r {
	case storage.RoleSessionKey:
		return 0
	case storage.RoleRequestKey:
		return 1
	case storage.RoleUserKey:
		return 2
	case storage.RoleTimeKey:
		return 3
	case storage.RoleLabel:
		return 4
	}
	return 5
}
