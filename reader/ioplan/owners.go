package ioplan

// SetOwners sets Owners and Shared from Files and Items. Owners[file] is the position of the file's feature or, for an
// inverse of several features, ^i, where Shared[i] are their positions.
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
