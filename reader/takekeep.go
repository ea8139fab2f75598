package reader

import "slices"

// What a Taker keeps: the segments that were used last, and of them stripes that are asked for often, decoded whole.
//
//	touched once         decoded for the rows asked for: nothing is kept
//	touched again        decoded whole and kept, while there is room
//	no room              kept in place of the stripe touched least, when it was touched twice as often
//
// A whole stripe costs some times more to decode than some rows, so it must be worth it: where rows are asked for at random
// in a table that is larger than the memory, all stripes are touched alike, and those that are kept stay.
type keptSegments struct {
	max  int64          // bytes of segments, about; one is kept in any case
	size int64          // of used
	used []*keptSegment // the last one used at the end

	maxStripes int64 // bytes of whole stripes
	stripes    int64 // of those kept, and of those admitted and not yet there
	touches    int   // since all were halved
	release    func(*stripe)
}

// A keptSegment is a segment, and what a Taker has of it.
type keptSegment struct {
	*segment
	index   int       // in the layout
	size    int64     // without stripes
	forgot  bool      // no longer kept: so are no stripes of it
	touched []uint32  // how often each stripe was asked for
	stripes []*stripe // nil: not kept
	sizes   []int64   // of stripes, 0: neither kept nor admitted
}

func newKeptSegment(index int, g *segment) *keptSegment {
	n := g.stripes()
	k := &keptSegment{
		segment: g, index: index, touched: make([]uint32, n), stripes: make([]*stripe, n), sizes: make([]int64, n),
		size: int64(n) * int64(len(g.files)+1) * bytesPerStripe,
	}
	if g.dictionaries != nil {
		k.size += g.dictionaries.bytes
	}
	return k
}

// get returns a segment, nil when it is not kept.
func (k *keptSegments) get(index int) *keptSegment {
	if at := slices.IndexFunc(k.used, func(g *keptSegment) bool { return g.index == index }); at >= 0 {
		return k.used[at]
	}
	return nil
}

// put makes a segment the last one used, and forgets others where they are too many.
func (k *keptSegments) put(g *keptSegment) {
	if at := slices.Index(k.used, g); at >= 0 {
		k.used = slices.Delete(k.used, at, at+1)
	} else {
		k.size += g.size
		g.forgot = false
	}
	k.used = append(k.used, g)
	for len(k.used) > 1 && k.size > k.max {
		k.drop(k.used[0])
	}
}

// drop forgets a segment with its stripes.
func (k *keptSegments) drop(g *keptSegment) {
	at := slices.Index(k.used, g)
	if at < 0 {
		return
	}
	k.size -= g.size
	k.used = slices.Delete(k.used, at, at+1)
	g.forgot = true
	for i := range g.stripes {
		k.dropStripe(g, i)
	}
}

// clear forgets everything.
func (k *keptSegments) clear() {
	for len(k.used) > 0 {
		k.drop(k.used[0])
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
		for _, x := range k.used {
			for j := range x.touched {
				x.touched[j] /= 2
			}
		}
	}
	size := int64(g.decodedBytes(i))
	if g.forgot || g.touched[i] < 2 || size > k.maxStripes {
		return false
	}
	for k.stripes+size > k.maxStripes {
		of, least := (*keptSegment)(nil), 0
		for _, x := range k.used {
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
func (k *keptSegments) keep(g *keptSegment, s *stripe) {
	if g.forgot || g.sizes[s.index] == 0 {
		k.release(s)
		return
	}
	g.stripes[s.index] = s
}
