package compaction

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
)

// sortForPacks puts features in the order in which packs hold them: keys and labels, which nearly every job reads, then those that are read
// most, then from small to large, so that a job's many small features lie together and large ones do not push them apart.
func sortForPacks(features []ingest.RewriteFeature, p Popularity) {
	var popular []float64
	if p != nil {
		all := make([]storage.Feature, len(features))
		for i := range features {
			all[i] = features[i].Feature
		}
		popular = p.Popularity(all)
	}
	type ordered struct {
		f       ingest.RewriteFeature
		popular float64
	}
	order := make([]ordered, len(features))
	for i, f := range features {
		order[i].f = f
		if i < len(popular) {
			order[i].popular = popular[i]
		}
	}
	slices.SortFunc(order, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(ingest.RoleOrder(a.f.Role), ingest.RoleOrder(b.f.Role)), cmp.Compare(b.popular, a.popular),
			cmp.Compare(a.f.RawBytes, b.f.RawBytes), cmp.Compare(a.f.Name, b.f.Name))
	})
	for i := range order {
		features[i] = order[i].f
	}
}
