package ioplan

import (
	"fmt"
	"math/rand/v2"
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

// TestPlannedTasks: the tasks of a segment have every stripe once, with its bytes; their ranges stay within the limit
// where the stripes' bytes do; and no task costs more for a stripe than that of FetchSizes.Task.
func TestPlannedTasks(t *testing.T) {
	wider, narrower := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomSegment(r, 2+r.IntN(60), 1+r.IntN(12), 2+r.IntN(400))
		if len(g.Files) == 0 {
			continue
		}
		sizes := FetchSizes{Gap: int64(r.IntN(2000)), Request: 1000, Task: int64(1 + r.IntN(20_000)), Apart: true}
		sizes.Ranges = sizes.Task * int64(1+r.IntN(4))
		var u, plain IOTask
		for from := 0; from < g.Stripes(); from = u.To {
			u.Plan(g, from, g.Stripes(), sizes)
			plain.Segment, plain.From, plain.Sizes = g, from, sizes
			plain.stripes(g.Stripes(), sizes.Task)
			plain.coalesceWithin()
			at := fmt.Sprintf("seed %d, stripes %d to %d of %d, %+v", seed, from, u.To, g.Stripes(), sizes)
			if u.To < plain.To || len(u.Decoded) != u.To-from || len(u.Asked) != u.To-from {
				t.Fatalf("%s: %d and %d stripes have sizes", at, len(u.Decoded), len(u.Asked))
			}
			if u.Stored > uint64(sizes.Ranges) && u.Stored > u.Needed {
				t.Fatalf("%s: ranges of %d bytes, %d are needed", at, u.Stored, u.Needed)
			}
			if u.Stored > max(widest*plain.Stored, plain.Stored) || u.cost() > plain.cost() {
				t.Fatalf("%s: %d bytes in %d requests, instead of %d in %d", at, u.Stored, len(u.Requests),
					plain.Stored, len(plain.Requests))
			}
			if u.To > plain.To {
				wider++
			}
			if u.gap < sizes.Gap {
				narrower++
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
	if wider < 100 || narrower < 100 {
		t.Errorf("%d tasks were wider, %d had smaller gaps: nothing is shown", wider, narrower)
	}
}
