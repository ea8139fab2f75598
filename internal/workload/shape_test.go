package workload

import (
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	t.Logf("%-52s %10.3f", what, got)
	if got < want-tolerance || got > want+tolerance {
		t.Errorf("%s is %.3f; the published figure is %.3f +- %.3f", what, got, want, tolerance)
	}
}

// The table measures what the published ones do.
func TestPublishedShape(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 100,000 rows")
	}
	tr := truth(t, Options{Order: Clustered})
	tally := newTally(tr.Features())
	var same, pairs, sameBytes, bytes, userSame, userPairs float64
	step := stepsOf(t, tr)
	c := new(vector.Column)
	for f := range tr.Features() {
		feature := &tr.Features()[f]
		c.Type = feature.Type
		c.Reset()
		if err := tr.Append(c, f, 0, tr.Rows()); err != nil {
			t.Fatal(err)
		}
		tally.add(f, c)
		if feature.Family < UserHistory {
			continue
		}
		for i := 1; i < c.Rows; i++ {
			if step[i] == 0 {
				continue
			}
			lo, hi := c.SlotRange(i)
			weight := float64(hi - lo)
			pairs++
			bytes += weight
			equal := vector.RowsEqual(c, i, c, i-1)
			if equal {
				same++
				sameBytes += weight
			}
			switch feature.Family {
			case UserHistory, UserWeighted, UserList, UserDense:
				userPairs++
				if equal {
					userSame++
				}
			}
		}
	}
	for _, s := range step {
		if s == 0 {
			tally.sessions++
		}
	}
	s := tally.stats(tr.Rows())
	within(t, "samples per session", s.SamplesPerSession, 16.5, 0.7)
	within(t, "coverage", s.Coverage, 0.45, 0.01)
	within(t, "mean length of a list", s.MeanLength, 24, 2)
	within(t, "raw bytes per row", s.RawBytes, 10602, 200)
	within(t, "values equal to the session's previous one", same/pairs, 0.80, 0.06)
	within(t, "the same by elements", sameBytes/bytes, 0.82, 0.04)
	within(t, "the same of user features", userSame/userPairs, 0.90, 0.05)
	if longest := slices.Max(step) + 1; longest < 100 {
		t.Errorf("the longest session has %d samples; want a long tail", longest)
	}

	inter := truth(t, Options{})
	sessions := values(t, inter, 0, 0, inter.Rows()).Ints
	var perBatch float64
	batches := len(sessions) / 4096
	for b := range batches {
		distinct := make(map[int64]bool)
		for _, s := range sessions[b*4096 : (b+1)*4096] {
			distinct[s] = true
		}
		perBatch += 4096 / float64(len(distinct)) / float64(batches)
	}
	within(t, "samples of a session in an interleaved batch of 4,096", perBatch, 1.15, 0.03)
}

// stepsOf returns the number of each row's sample in its session.
func stepsOf(t *testing.T, tr *Truth) []int {
	out := make([]int, tr.Rows())
	for i := range out {
		r, err := tr.Row(int64(i))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = r.Step
	}
	return out
}

// Within a session a history is the one before, or has a few new ids at its newest end and has lost as many old ones as
// its limit demands.
func TestHistoriesSlide(t *testing.T) {
	tr := truth(t, Options{Rows: 5000, Order: Clustered})
	step := stepsOf(t, tr)
	oldest, shifts := 0, 0
	for f := range tr.Features() {
		feature := &tr.Features()[f]
		if feature.Family != UserHistory && feature.Family != UserWeighted {
			continue
		}
		if feature.OldestFirst {
			oldest++
		}
		c := values(t, tr, f, 0, tr.Rows())
		list := func(i int) []int64 {
			lo, hi := c.RowRange(i)
			ids := slices.Clone(c.Ints[lo:hi])
			if feature.OldestFirst {
				slices.Reverse(ids)
			}
			return ids
		}
		for i, step := range step {
			if feature.Family == UserWeighted {
				ids := list(i)
				slices.Sort(ids)
				if len(slices.Compact(ids)) != len(ids) {
					t.Fatalf("feature %s row %d: an id occurs twice", feature.Name, i)
				}
			}
			if step == 0 || vector.RowsEqual(c, i, c, i-1) {
				continue
			}
			shifts++
			now, before := list(i), list(i-1)
			k := slices.IndexFunc([]int{1, 2, 3}, func(k int) bool {
				n := min(len(before), len(now)-k)
				return n >= 0 && slices.Equal(now[k:k+n], before[:n])
			})
			if k < 0 || len(now) > feature.Length || len(now) < len(before) {
				t.Fatalf("feature %s row %d: %v does not follow %v", feature.Name, i, now, before)
			}
		}
	}
	if oldest == 0 || shifts == 0 {
		t.Errorf("%d features oldest first, %d shifts; want some of both", oldest, shifts)
	}
}

// The features of a group take new versions on the same rows, and an item's features are the item's.
func TestGroupsAndItems(t *testing.T) {
	tr := truth(t, Options{Rows: 3000, Order: Clustered})
	step := stepsOf(t, tr)
	changed := make(map[int]map[int]bool) // by group: rows on which a history of the group changed
	items := 0
	for f := range tr.Features() {
		feature := &tr.Features()[f]
		c := values(t, tr, f, 0, tr.Rows())
		switch feature.Family {
		case UserHistory:
			rows := changed[feature.Group]
			for i, s := range step {
				if s == 0 || c.IsNull(i) {
					continue
				}
				now := !vector.RowsEqual(c, i, c, i-1)
				if rows != nil {
					if was, ok := rows[i]; ok && was != now {
						t.Fatalf("feature %s row %d: changed %v, another of group %d %v", feature.Name, i, now,
							feature.Group, was)
					}
				} else {
					changed[feature.Group] = map[int]bool{}
					rows = changed[feature.Group]
				}
				rows[i] = now
			}
		case ItemList, ItemDense:
			first := make(map[int32]int)
			for i := range c.Rows {
				r, err := tr.Row(int64(i))
				if err != nil {
					t.Fatal(err)
				}
				at, ok := first[r.Item]
				if !ok {
					first[r.Item] = i
				} else if !vector.RowsEqual(c, i, c, at) {
					t.Fatalf("feature %s: rows %d and %d show item %d and differ", feature.Name, at, i, r.Item)
				}
			}
			items = len(first)
		}
	}
	if items == 0 || items > 2500 {
		t.Errorf("%d items in %d rows; want popular ones to repeat", items, tr.Rows())
	}
}

// What Content has once is all that the rows hold.
func TestContentIsWhatTheRowsHold(t *testing.T) {
	tr := truth(t, Options{Rows: 2000, Order: Clustered})
	for f := range tr.Features() {
		if !tr.Features()[f].Type.IsList() {
			continue
		}
		c := values(t, tr, f, 0, tr.Rows())
		held := make(map[int64]bool)
		for _, id := range c.Ints {
			held[id] = true
			if id < 0 {
				t.Fatalf("feature %s: id %d has more than 63 bits", tr.Features()[f].Name, id)
			}
		}
		content, err := tr.Content(f, 0)
		if err != nil {
			t.Fatal(err)
		}
		once := make(map[int64]bool)
		for _, id := range content.IDs {
			once[id] = true
		}
		nulls := c.Rows - c.Present.Count()
		if len(once) != len(held) || content.Null != nulls || len(content.IDs) > len(c.Ints) {
			t.Errorf("feature %s: content has %d ids and %d nulls; the rows have %d and %d", tr.Features()[f].Name,
				len(once), content.Null, len(held), nulls)
		}
	}
}
