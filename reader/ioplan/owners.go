package ioplan

// SetOwners says of each file of the segment, once they and the items are there, whose bytes it has: the position of a
// feature, or, where it is the inverse of several, ^i for shared[i].
func (g *Segment) SetOwners() {
	g.Owners = make([]int32, len(g.Files))
	inverse := func(file int32, features []int32) {
		switch {
		case file < 0:
		case g.Owners[file] < 0: // of another item too
			at := ^g.Owners[file]
			g.Shared[at] = append(g.Shared[at][:len(g.Shared[at]):len(g.Shared[at])], features...)
		default:
			g.Shared = append(g.Shared, features)
			g.Owners[file] = ^int32(len(g.Shared) - 1)
		}
	}
	for i := range g.Items {
		it := &g.Items[i]
		inverse(it.Inverse, it.Features)
		for p := range it.Parts {
			inverse(it.Parts[p].Inverse, it.Features)
			for k, file := range it.Parts[p].Files {
				if file >= 0 {
					g.Owners[file] = it.Features[k]
				}
			}
		}
		if it.Parts == nil {
			for _, at := range it.Features {
				if file := g.FeatureFile[at]; file >= 0 {
					g.Owners[file] = at
				}
			}
		}
	}
}
