package writer

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Popularity says how often features are read. Usage records implement it.
type Popularity interface {
	// Popularity returns a number for each feature that is larger the more often it is read; 0: not known, or never.
	Popularity(features []catalog.Feature) []float64
}

// SortForPacks puts features in the order in which packs hold them: keys and labels, which nearly every job reads, then
// those that are read most, then from small to large by what they decode to, so that a job's many small features lie
// together and large ones do not push them apart. Without p nothing is known of what is read. of returns what there is
// to know of a feature, and its decoded bytes.
func SortForPacks[F any](features []F, p Popularity, of func(F) (catalog.Feature, uint64)) {
	type packed struct {
		feature  F
		role     int
		popular  float64
		rawBytes uint64
		name     string
	}
	known := make([]catalog.Feature, len(features))
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
func RoleOrder(r catalog.Role) int {
	switch r {
	case catalog.RoleSessionKey:
		return 0
	case catalog.RoleRequestKey:
		return 1
	case catalog.RoleUserKey:
		return 2
	case catalog.RoleTimeKey:
		return 3
	case catalog.RoleLabel:
		return 4
	}
	return 5
}
