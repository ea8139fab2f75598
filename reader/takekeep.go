package reader

import (
	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/reader/load"
)

// What a Taker keeps: the segments that were used last, and of them stripes that are asked for often, decoded whole.
//
//	touched once         decoded for the rows asked for: nothing is kept
//	touched again        decoded whole and kept, while there is room
//	no room              kept in place of the stripe touched least, when it was touched twice as often
//
// A whole stripe costs some times more to decode than some rows, so it must be worth it: where rows are asked for at random
// in a table that is larger than the memory, all stripes are touched alike, and those that are kept stay.
type keptSegments struct {
	segments *lru.Cache[int, *keptSegment] // by index in the layout; one is kept in any case

	maxStripes int64 // bytes of whole stripes
	stripes    int64 // of those kept, and of those admitted and not yet there
	touches    int   // since all were halved
	release    func(*load.Stripe)
}

// newKeptSegments returns an empty one of about so many bytes of segments and of stripes. release takes a stripe back.
func newKeptSegments(segments, stripes int64, release func(*load.Stripe)) *keptSegments {
	k := &keptSegments{maxStripes: stripes, release: release}
	k.segments = lru.New(segments, func(_ int, g *keptSegment) {
		g.forgot = true
		for i := range g.stripes {
			k.dropStripe(g, i)
		}
	})
	return k
}

// A keptSegment is a segment, and what a Taker has of it.
type keptSegment struct {
	*load.Segment
	index   int            // in the layout
	forgot  bool           // no longer kept: so are no stripes of it
	touched []uint32       // how often each stripe was asked for
	stripes []*load.Stripe // nil: not kept
	sizes   []int64        // of stripes, 0: neither kept nor admitted
}

func newKeptSegment(index int, g *load.Segment) *keptSegment {
	n := g.Stripes()
	return &keptSegment{Segment: g, index: index, touched: make([]uint32, n), stripes: make([]*load.Stripe, n), sizes: make([]int64, n)}
}

// bytes returns about what the segment takes without stripes.
func (g *keptSegment) bytes() int64 {
	n := int64(len(g.stripes)) * int64(len(g.Files)+1) * bytesPerStripe
	if g.Dictionaries != nil {
		n += g.Dictionaries.Bytes
	}
	return n
}

// drop forgets a segment with its stripes.
func (k *keptSegments) drop(g *keptSegment) {
	if !g.forgot {
		k.segments.Remove(g.index)
	}
}

// dropStripe forgets stripe i of a segment, or that it was admitted.
func (k *keptSegments) dropStripe(g *keptSegment, i int) {
	k.stripes -= g.sizes[i]
	g.sizes[i] = 0
	if s := g.stripes[i]; s != nil {
		g.stripes[i] = nil
		k.release(s)
	}
}

// halveAfter is after how many calls of admit touches count half.
const halveAfter = 1 << 12

// admit counts a use of stripe i of a segment, which is not kept, and reports whether it is to be decoded whole; if so it makes
// room, and keep follows, or dropStripe where decoding fails.
func (k *keptSegments) admit(g *keptSegment, i int) bool {
	g.touched[i]++
	if k.touches++; k.touches >= halveAfter {
		k.touches = 0
		for _, x := range k.segments.All() {
			for j := range x.touched {
				x.touched[j] /= 2
			}
		}
	}
	size := int64(g.DecodedBytes(i))
	if g.forgot || g.touched[i] < 2 || size > k.maxStripes {
		return false
	}
	for k.stripes+size > k.maxStripes {
		of, least := (*keptSegment)(nil), 0
		for _, x := range k.segments.All() {
			for j, s := range x.stripes {
				if s != nil && (of == nil || x.touched[j] < of.touched[least]) {
					of, least = x, j
				}
			}
		}
		if of == nil || g.touched[i] < 2*of.touched[least] {
			return false
		}
		k.dropStripe(of, least)
	}
	k.stripes += size
	g.sizes[i] = size
	return true
}

// keep takes over a stripe that was admitted, and one use of it.
func (k *keptSegments) keep(g *keptSegment, s *load.Stripe) {
	if g.forgot || g.sizes[s.Index] == 0 {
		k.release(s)
		return
	}
	g.stripes[s.Index] = s
}
