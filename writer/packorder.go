package writer

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Popularity says how often features are read. Usage records implement it.
type Popularity interface {
	// Popularity returns a number for each feature, larger if it is read more often; 0 if it is never read or unknown.
	Popularity(features []catalog.Feature) []float64
}

// SortForPacks sorts features in the order of packs: by RoleOrder, then by p from most to least read, then by decoded
// bytes from small to large, then by name. Keys and labels come first because nearly every job reads them. Small
// features lie together, so that a job that reads many of them makes few requests. p may be nil. of returns a feature's
// description and its decoded bytes.
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

// RoleOrder returns the rank of a role in packs: keys first, then labels, then the others.
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
