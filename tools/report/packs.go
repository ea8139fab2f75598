package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/access"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/command"
	"github.com/dsistore/dsistore/tools/ingest"
)

// gapBytes: readers fetch what lies so close together at once (reader.Options.GapBytes).
const gapBytes = 64 << 10

// A packed is a feature file in the order of packs.
type packed struct {
	place
	role    int
	popular uint64 // stripes that were read of it (access.Summary.Popularity)
}

// repack estimates which share of the over-read bytes would not be read if packs had the order in which features are read: it goes through the
// largest segment as each job does that reads whole features, once as its packs are and once as compaction would lay them. What a job reads
// weighs as much as the bytes that it needed.
func (c *collector) repack(s *access.Summary, uses map[storage.FeatureID]Use) (share float64) {
	now := make([]packed, 0, len(c.layout))
	// The features of a group, and its inverse, lie together: where the first of them would.
	groups := map[storage.FeatureID]packed{}
	for _, p := range c.layout {
		f := c.byID[p.feature]
		if f == nil {
			continue // an inverse
		}
		x := packed{place: p, role: ingest.RoleOrder(f.Role), popular: uses[p.feature].Stripes}
		if g, ok := groups[groupOf(x)]; ok {
			x.role, x.popular = min(x.role, g.role), max(x.popular, g.popular)
		}
		groups[groupOf(x)] = x
	}
	for _, p := range c.layout {
		x := packed{place: p}
		x.role, x.popular = groups[groupOf(x)].role, groups[groupOf(x)].popular
		now = append(now, x)
	}
	byPlace := func(a, b packed) int { return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.offset, b.offset)) }
	slices.SortFunc(now, byPlace)
	then := slices.Clone(now)
	slices.SortStableFunc(then, func(a, b packed) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(b.popular, a.popular), cmp.Compare(groupOf(a), groupOf(b)), cmp.Compare(a.length, b.length))
	})
	at := uint64(0)
	for i := range then { // as if in one pack
		then[i].object, then[i].offset = "", at
		at += then[i].length
	}
	var before, after float64
	for i := range s.Jobs {
		j := &s.Jobs[i]
		read := make(map[storage.FeatureID]bool, len(j.Features))
		for _, f := range j.Features {
			read[f.ID] = true
		}
		needed, over := overRead(now, read)
		if needed == 0 {
			continue
		}
		_, overThen := overRead(then, read)
		weight := float64(j.BytesNeeded) / float64(needed)
		before += weight * float64(over)
		after += weight * float64(overThen)
	}
	if before <= after {
		return 0
	}
	return 1 - after/before
}

// groupOf returns what the files of a group have in common.
func groupOf(p packed) storage.FeatureID {
	if p.group != 0 {
		return p.group
	}
	return p.feature
}

// overRead returns how many bytes are needed to read features from files in the order of their places, and how many of the gaps between.
func overRead(files []packed, read map[storage.FeatureID]bool) (needed, over uint64) {
	inverses := map[storage.FeatureID]bool{}
	for i := range files {
		if f := &files[i]; f.group != 0 && read[f.feature] {
			inverses[f.group] = true
		}
	}
	last := -1
	for i := range files {
		f := &files[i]
		if !read[f.feature] && !inverses[f.feature] {
			continue
		}
		needed += f.length
		if last >= 0 && files[last].object == f.object {
			if gap := f.offset - (files[last].offset + files[last].length); gap <= gapBytes {
				over += gap
			}
		}
		last = i
	}
	return needed, over
}

// repack says what packs in the order of popularity would save.
func (a *adviser) repack(s *access.Summary, uses map[storage.FeatureID]Use) {
	over := a.t.Summary.Reads.BytesOverRead
	if over < worthBytes || share(over, over+a.t.Summary.Reads.BytesNeeded) < 10*worthShare {
		return
	}
	less := a.c.repack(s, uses)
	if less < 0.05 {
		return
	}
	saved := uint64(less * float64(over))
	a.add(Advice{
		Kind: AdviceRepack, OverReadBytes: saved, Estimate: true, Command: a.dsi("compact", "--repack"),
		Text: fmt.Sprintf("packs in the order in which features are read would save about %s of the %s over-read (%.0f %%)",
			command.Bytes(saved), command.Bytes(over), 100*less),
	})
}
