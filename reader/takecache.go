package reader

import (
	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A takeCache keeps the segments that a Taker used last, and decoded stripes of them that are used often.
//
//	used once       only the needed rows are decoded, and nothing is kept
//	used again      decoded whole and kept, while the budget allows
//	budget is full  replaces the least recently used stripe, if it was used at least twice as often as that one
//
// Decoding a whole stripe costs several times more than decoding a few rows. Without this admission rule, which is
// similar to TinyLFU, uniform random takes of a table larger than the budget would replace stripes all the time.
type takeCache struct {
	segments *lru.Cache[int, *takeSegment] // by index in the layout
	stripes  *lru.Cache[stripeKey, *ioplan.Stripe]
	admitted int64 // bytes of stripes that are admitted and not yet decoded
	// uses of stripes, halved after every agingPeriod uses.
	uses    map[stripeKey]int
	counted int // uses since then
}

// A takeSegment is a segment of a layout.
type takeSegment struct {
	*ioplan.Segment
	index int // in the layout
}

type stripeKey struct{ segment, stripe int }

func (g *takeSegment) key(stripe int) stripeKey { return stripeKey{g.index, stripe} }

// agingPeriod is the number of uses after which all counts of uses are halved.
const agingPeriod = 1 << 12

// newTakeCache returns an empty cache for about so many bytes of segments and of stripes. It calls release for each
// stripe that it removes.
func newTakeCache(segments, stripes int64, release func(*ioplan.Stripe)) *takeCache {
	c := &takeCache{uses: map[stripeKey]int{}}
	c.stripes = lru.New(stripes, func(_ stripeKey, s *ioplan.Stripe) { release(s) })
	c.segments = lru.New(segments, func(_ int, g *takeSegment) {
		for i := range g.Stripes() {
			c.stripes.Remove(g.key(i))
		}
	})
	return c
}

// put adds a segment.
func (c *takeCache) put(g *takeSegment) {
	size := int64(g.Stripes()) * int64(len(g.Files)+1) * bytesPerStripe
	if g.Dictionaries != nil {
		size += g.Dictionaries.Bytes
	}
	c.segments.Put(g.index, g, size)
}

// has reports whether g is in the cache.
func (c *takeCache) has(g *takeSegment) bool {
	kept, _ := c.segments.Get(g.index)
	return kept == g
}

// drop removes a segment and its stripes.
func (c *takeCache) drop(g *takeSegment) {
	if c.has(g) {
		c.segments.Remove(g.index)
	}
}

// use counts a use of a stripe, and returns the count.
func (c *takeCache) use(key stripeKey) int {
	if c.counted++; c.counted >= agingPeriod {
		c.counted = 0
		for k, n := range c.uses {
			if c.uses[k] = n / 2; n < 2 {
				delete(c.uses, k)
			}
		}
	}
	c.uses[key]++
	return c.uses[key]
}

// get returns a cached stripe, with one more user, and counts a use; nil: the stripe is not cached.
func (c *takeCache) get(g *takeSegment, i int) *ioplan.Stripe {
	s, ok := c.stripes.Get(g.key(i))
	if !ok {
		return nil
	}
	c.use(g.key(i))
	s.Users.Add(1)
	return s
}

// admit counts a use of a stripe that is not cached, and reports whether to decode it whole. If so, it frees memory for
// it, and the caller calls keep afterwards.
func (c *takeCache) admit(g *takeSegment, i int) bool {
	uses, size := c.use(g.key(i)), int64(g.DecodedBytes(i))
	if uses < 2 || size > c.stripes.Max() || !c.has(g) {
		return false
	}
	for c.stripes.Size()+c.admitted+size > c.stripes.Max() {
		oldest, ok := c.stripes.Oldest()
		if !ok || uses < 2*c.uses[oldest] {
			return false
		}
		c.stripes.Remove(oldest)
	}
	c.admitted += size
	return true
}

// keep adds a stripe that was admitted, unless err says that decoding failed.
func (c *takeCache) keep(g *takeSegment, s *ioplan.Stripe, err error) {
	size := int64(g.DecodedBytes(s.Index))
	c.admitted -= size
	if err == nil && c.has(g) {
		s.Users.Add(1)
		c.stripes.Put(g.key(s.Index), s, size)
	}
}
