package ioplan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/segment"
)

// randomSegment returns a segment of feature files that follow each other in one object.
func randomSegment(r *rand.Rand, files, stripes, most int) *Segment {
	g := &Segment{Starts: []uint64{0}, First: []uint64{0}}
	for i := range stripes {
		g.Starts = append(g.Starts, uint64(i+1)*10)
	}
	g.First = g.Starts
	at := uint64(0)
	for range files {
		m := &format.FileMeta{}
		e := &segment.Entry{Object: "pack", Offset: at, Meta: m}
		for range stripes {
			n := uint64(r.IntN(most))
			m.Stripes = append(m.Stripes, format.StripeMeta{Offset: e.Length, Length: n, Rows: 10, Slots: 10})
			e.Length += n
		}
		at += e.Length
		if r.IntN(3) > 0 { // else another job reads it
			g.Files = append(g.Files, File{Entry: e})
		}
	}
	return g
}

// costs returns what a stripe of u costs by the bytes and requests of a plan, without and with what its memory costs.
func costs(u *IOTask, s FetchSizes) (plain, all float64) {
	stored := int64(0)
	for k := range u.Ranges {
		stored += int64(u.Ranges[k].To - u.Ranges[k].From)
	}
	plain = float64(stored+int64(len(u.Requests))*s.Gap) / float64(u.To-u.From)
	switch {
	case stored > s.Memory:
		return plain, math.Inf(1)
	case stored > s.Share:
		return plain, 2 * plain
	case stored > s.Share/2:
		return plain, 1.25 * plain
	}
	return plain, plain
}

// TestPlannedTasks: the tasks of a segment have every stripe once, with its bytes; their ranges stay within the memory,
// unless one stripe needs more; and none costs more for a stripe than the stripes of FetchSizes.Task, with any gap that
// is tried.
func TestPlannedTasks(t *testing.T) {
	larger, smallerGaps := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomSegment(r, 2+r.IntN(60), 1+r.IntN(12), 2+r.IntN(400))
		if len(g.Files) == 0 {
			continue
		}
		sizes := FetchSizes{Gap: int64(r.IntN(2000)), Request: 1 << 30, Task: int64(1 + r.IntN(20_000)), Apart: true}
		sizes.Share = sizes.Task * int64(2+r.IntN(4))
		sizes.Memory = sizes.Share * int64(1+r.IntN(4))
		var u, near IOTask
		for from := 0; from < g.Stripes(); from = u.To {
			u.Plan(g, from, g.Stripes(), sizes)
			at := fmt.Sprintf("seed %d, stripes %d to %d of %d, %+v", seed, from, u.To, g.Stripes(), sizes)
			if len(u.Decoded) != u.To-from || len(u.Asked) != u.To-from {
				t.Fatalf("%s: %d and %d stripes have sizes", at, len(u.Decoded), len(u.Asked))
			}
			if u.Stored > uint64(sizes.Memory) && (u.To > from+1 || u.Stored > u.Needed) {
				t.Fatalf("%s: ranges of %d bytes, %d are needed", at, u.Stored, u.Needed)
			}
			_, cost := costs(&u, sizes)
			near.Plan(g, from, g.Stripes(), FetchSizes{Request: sizes.Request, Task: sizes.Task, Apart: true,
				Share: math.MaxInt64, Memory: math.MaxInt64, Gap: -1})
			if to := near.To; u.To < to && u.Stored <= uint64(sizes.Memory) {
				t.Fatalf("%s: the stripes of a task go to %d", at, to)
			}
			for gap := sizes.Gap; ; gap /= 4 {
				near.Coalesce(gap)
				if _, c := costs(&near, sizes); c < cost && !math.IsInf(cost, 1) {
					t.Fatalf("%s: %d bytes in %d requests cost %g, and %d in %d to stripe %d %g", at, u.Stored,
						len(u.Requests), cost, near.Stored, len(near.Requests), near.To, c)
				}
				if gap == 0 {
					break
				}
			}
			if u.To > near.To {
				larger++
			}
			near.From, near.To = from, u.To
			if near.Coalesce(sizes.Gap); len(near.Requests) < len(u.Requests) {
				smallerGaps++
			}
			needed := uint64(0)
			for k := range u.Ranges {
				u.Ranges[k].Bytes = make([]byte, u.Ranges[k].To-u.Ranges[k].From)
			}
			for j := range g.Files {
				for i := from; i < u.To; i++ {
					b, _ := u.Bytes(int32(j), i)
					needed += uint64(len(b))
				}
			}
			if needed != u.Needed || u.Stored < needed || u.Unneeded != u.Stored-needed {
				t.Fatalf("%s: %d bytes needed, %d stored, %d unneeded, want %d needed", at, u.Needed, u.Stored,
					u.Unneeded, needed)
			}
		}
	}
	if larger < 100 || smallerGaps < 100 {
		t.Errorf("%d tasks were larger, %d had smaller gaps: nothing is shown", larger, smallerGaps)
	}
}

// TestChoice: tasks that were computed by hand. The files follow each other in one object, with so many bytes a stripe.
func TestChoice(t *testing.T) {
	ten := []uint64{100, 100, 100, 100, 100, 100, 100, 100, 100, 100}
	for name, c := range map[string]struct {
		files    []uint64
		stripes  int
		sizes    FetchSizes
		to       int
		requests int
		stored   uint64
	}{
		// Two stripes would read 7,400 bytes, as far as to the next stripes of the last file.
		"all":                  {ten, 8, FetchSizes{Gap: 700, Task: 2000, Share: 20_000, Memory: 40_000}, 8, 1, 8000},
		"all, alone":           {ten, 8, FetchSizes{Gap: 700, Task: 2000, Share: 8000, Memory: 40_000}, 8, 1, 8000},
		"all, with all memory": {ten, 8, FetchSizes{Gap: 700, Task: 1000, Share: 4000, Memory: 8000}, 8, 1, 8000},
		// (4,000 + 10 x 700) / 4 stripes x 1.25; two stripes are (2,000 + 7,000) / 2, and seven 14,000 / 7 x 2.
		"without gaps": {ten, 8, FetchSizes{Gap: 700, Task: 2000, Share: 4000, Memory: 7000}, 4, 10, 4000},
		// Gaps of up to 175 are read: those between the small files.
		"with smaller gaps": {[]uint64{100, 100, 100, 100, 100, 10, 10, 10, 10, 10}, 8,
			FetchSizes{Gap: 700, Task: 1100, Share: 3000, Memory: 3000}, 5, 6, 2870},
		// One stripe would read 9 x 400 + 1,000 bytes: eight need less than twice as many.
		"not too many": {[]uint64{10, 10, 10, 10, 10, 10, 10, 10, 10, 1000}, 40,
			FetchSizes{Gap: 400, Task: 1090, Share: 200_000, Memory: 400_000}, 8, 1, 11_600},
		// (15,400 + 21 x 400) / 7 stripes; with gaps (22,000 + 400) / 7 x 1.25, and of nine (26,000 + 400) / 9 x 1.25.
		"leaves room for another": {append(slices.Repeat([]uint64{10}, 20), 2000), 40,
			FetchSizes{Gap: 400, Task: 2200, Share: 32_000, Memory: 32_000}, 7, 21, 15_400},
		"more than the memory": {ten, 8, FetchSizes{Gap: 700, Task: 75, Share: 150, Memory: 300}, 1, 10, 1000},
		"no gap":               {ten[:1], 8, FetchSizes{Gap: 700, Task: 200, Share: 2000, Memory: 2000}, 2, 1, 200},
	} {
		g := &Segment{Starts: []uint64{0}}
		for i := range c.stripes {
			g.Starts = append(g.Starts, uint64(i+1)*10)
		}
		g.First = g.Starts
		at := uint64(0)
		for _, n := range c.files {
			m := &format.FileMeta{}
			for i := range c.stripes {
				m.Stripes = append(m.Stripes, format.StripeMeta{Offset: uint64(i) * n, Length: n, Rows: 10, Slots: 10})
			}
			g.Files = append(g.Files, File{Entry: &segment.Entry{Object: "pack", Offset: at, Meta: m}})
			at += uint64(c.stripes) * n
		}
		c.sizes.Apart, c.sizes.Request = true, 100_000
		for _, dictionary := range []int{0, 50_000} { // stored bytes of a dictionary, which no choice makes smaller
			if dictionary > 0 {
				g.Dictionaries = &Dictionaries{Bytes: 1 << 40}
				g.Files = append(g.Files, File{Entry: &segment.Entry{Object: "other", Meta: &format.FileMeta{
					Dictionary: format.DictionaryMeta{Length: uint64(dictionary)},
					Stripes:    slices.Repeat([]format.StripeMeta{{Offset: 4}}, c.stripes)}}})
				c.requests++
				c.stored += uint64(dictionary)
			}
			u := new(IOTask)
			u.Plan(g, 0, c.stripes, c.sizes)
			if u.To != c.to || len(u.Requests) != c.requests || u.Stored != c.stored {
				t.Errorf("%s, dictionary of %d: %d stripes, %d requests, %d bytes; want %d, %d, %d", name, dictionary,
					u.To, len(u.Requests), u.Stored, c.to, c.requests, c.stored)
			}
		}
	}
}
