package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/usage"
	"github.com/dsistore/dsistore/writer"
)

// repack estimates which share of the unneeded bytes jobs would not read if compaction ordered packs by what is read.
// For each job it adds up the gaps between the features that the job reads in the largest segment, with the packs as
// they are and as they would be. A job weighs as much as the bytes that it needed.
func (c *collector) repack(s *usage.Summary) (share float64) {
	now := slices.Clone(c.layout)
	slices.SortFunc(now, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.offset, b.offset))
	})
	then := c.packed(s)
	at := uint64(0)
	for i := range then { // as if in one pack
		then[i].object, then[i].offset = "", at
		at += then[i].length
	}
	var before, after float64
	for i := range s.Jobs {
		j := &s.Jobs[i]
		read := make(map[catalog.FeatureID]bool, len(j.Features))
		for _, f := range j.Features {
			read[f.ID] = true
		}
		needed, over := unneeded(now, read, c.gap)
		if needed == 0 {
			continue
		}
		_, overThen := unneeded(then, read, c.gap)
		weight := float64(j.BytesNeeded) / float64(needed)
		before += weight * float64(over)
		after += weight * float64(overThen)
	}
	if before <= after {
		return 0
	}
	return 1 - after/before
}

// packed returns the files of the largest segment in the order in which compaction would write them: a group, its
// inverse first, where the first of its features would be.
func (c *collector) packed(s *usage.Summary) []place {
	var features []place
	inverses, groups := map[catalog.FeatureID]place{}, map[catalog.FeatureID][]place{}
	for _, p := range c.layout {
		if c.byID[p.feature] == nil {
			inverses[p.feature] = p
		} else {
			features = append(features, p)
		}
	}
	writer.SortForPacks(features, &ingest.Reads{Summary: s}, func(p place) (catalog.Feature, uint64) {
		f := c.byID[p.feature]
		return f.Feature, f.raw
	})
	for _, p := range features {
		if p.group != 0 {
			groups[p.group] = append(groups[p.group], p)
		}
	}
	out := make([]place, 0, len(c.layout))
	for _, p := range features {
		if p.group == 0 {
			out = append(out, p)
			continue
		}
		if members := groups[p.group]; members != nil {
			out = append(append(out, inverses[p.group]), members...)
			delete(groups, p.group)
		}
	}
	return out
}

// unneeded returns how many bytes are needed to read features from files in the order of their positions, and how many
// of the gaps between that are at most so long.
func unneeded(files []place, read map[catalog.FeatureID]bool, most uint64) (needed, over uint64) {
	inverses := map[catalog.FeatureID]bool{}
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
			if gap := f.offset - (files[last].offset + files[last].length); gap <= most {
				over += gap
			}
		}
		last = i
	}
	return needed, over
}

// repack says what packs in the order of popularity would save.
func (a *adviser) repack(s *usage.Summary) {
	over := a.t.Summary.Reads.BytesUnneeded
	if over < worthBytes || share(over, over+a.t.Summary.Reads.BytesNeeded) < 10*worthShare {
		return
	}
	less := a.c.repack(s)
	if less < 0.05 {
		return
	}
	saved := uint64(less * float64(over))
	rest := "--repack"
	// so that it looks at the same records
	if days := daysSince(firstDay(s, a.now), a.now) + 1; days > popularDays || !a.since.IsZero() {
		rest += fmt.Sprintf(" --popular-days %d", days)
	}
	r := &a.t.Summary.Reads
	a.add(Advice{
		Kind: AdviceRepack, UnneededBytes: saved, Estimate: true, Command: a.dsi("compact", rest), Readers: r.Readers,
		Jobs: r.Jobs, Days: a.readDays(),
		Text: fmt.Sprintf("packs in the order in which features are read would have saved about %s of the %s that %s "+
			"of %s need not have read (%.0f %%)",
			terminal.Bytes(saved), terminal.Bytes(over), terminal.Plural(r.Readers, "reader"),
			terminal.Plural(r.Jobs, "job"), 100*less),
	})
}
