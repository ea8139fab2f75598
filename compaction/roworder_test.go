package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestOrderWithoutSessionKey: a table without a session key keeps the order of its rows when one of its segments is
// rewritten, when some are merged, when one is cut, and when the new ones are rewritten again. verify looks at the
// order.
func TestOrderWithoutSessionKey(t *testing.T) {
	x := newTester(t, object.NewMemory(), 8)
	x.keyless = true
	ingest := func(sizes ...int) {
		for _, n := range sizes {
			x.ingest(x.newRows(n, 1))
		}
	}
	ids := func(from, to int64) (out []int64) {
		for id := from; id < to; id++ {
			out = append(out, id)
		}
		return out
	}
	compact := func(what string, jobs int, change func(*Options)) {
		t.Helper()
		o := x.options()
		change(&o)
		if p, _ := x.compact(o); len(p.Jobs) != jobs {
			t.Fatalf("%s: %d jobs, want %d:\n%v", what, len(p.Jobs), jobs, p)
		}
		x.verify(what)
	}
	ingest(60, 70, 80)
	x.delete(ids(10, 40)) // of the first
	x.verify("deleted")
	compact("one of three is rewritten", 1, func(*Options) {})
	compact("one of three is cut", 1, func(o *Options) {
		o.Segments,
			o.SegmentRows = []string{x.segments(x.latest())[1].ID}, 20
	})
	compact("what was cut is cut again", 1, func(o *Options) {
		o.Segments,
			o.SegmentRows = []string{x.segments(x.latest())[2].ID}, 5
	})
	// Small segments on both sides of a large one: merging all of them would move rows.
	ingest(10, 90, 10, 10)
	compact("small ones beside large ones", 2, func(o *Options) { o.Full, o.SegmentRows = true, 90 })
	ingest(10, 10, 90, 10, 10)
	compact("runs of small ones", 0, func(*Options) {})
	ingest(10, 10)
	compact("four small ones in a row", 1, func(*Options) {})
	segments := x.segments(x.latest())
	compact("two that are no neighbours are asked for", 2,
		func(o *Options) { o.Segments = []string{segments[0].ID, segments[2].ID} })
	// An overlay that tells segments with a layer from others.
	ingest(10, 10, 10, 10, 10, 10)
	segments = x.segments(x.latest())
	x.overlay("o", 1, 2, func(i int) bool { return i != len(segments)-3 })
	compact("a segment of another kind between", 3, func(o *Options) { o.Full = true })
	o := x.options()
	o.Full = true
	if p, _ := x.compact(o); len(p.Jobs) != 0 || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "small segments are not merged") {
		t.Fatalf("a second plan:\n%v", p)
	}
	compact("all is packed anew", len(x.segments(x.latest())), func(o *Options) { o.Repack = true })
	for i := range 4 {
		compact(fmt.Sprint("merged and cut, ", i), 1, func(o *Options) {
			o.Segments,
				o.SegmentRows = []string{x.segments(x.latest())[0].ID}, 8
		})
	}
}
