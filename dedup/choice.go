package dedup

import "math"

// A step says how rows share slots.
type step uint8

const (
	noStep  step = iota // each row has its own
	byRuns              // with the row before, when they are equal
	bySlots             // with any earlier row of the stripe that is equal
)

const (
	leastWait, maxWait = 7, 63 // stripes
	// maxDrift is how far the share of rows that differ from the one before may move until a stripe is examined again.
	maxDrift = 0.15
)

// A Choice is what a Finder remembers of a feature: the form that it takes, and when to look again. The zero Choice is
// of a feature of which nothing is known.
type Choice struct {
	known    bool
	step     step
	partial  bool
	backward bool    // the direction of partial
	share    float64 // of the first rows of the stripe examined last that differ from the one before
	grouped  bool    // saved is of the feature in its dedup group
	saved    float64 // bytes per row, against a slot for each; below 0 where decoding is worth them
	wait     int     // stripes until the next is examined
	waited   int     // the wait before
}

// keep notes the form that an examination chose, and how long to keep to it: 7, 15, 31, 63 stripes while it stays the
// same.
func (c *Choice) keep(s step, partial bool, saved float64) {
	if !c.known || c.step != s || c.partial != partial {
		c.waited = 0
	}
	c.known, c.step, c.partial, c.saved = true, s, partial, saved
	c.waited = min(max(2*c.waited+1, leastWait), maxWait)
	c.wait = c.waited
}

// due reports whether a stripe is to be examined, of whose first rows so large a share differ from the one before.
func (c *Choice) due(share float64) bool {
	if !c.known || c.wait == 0 || math.Abs(share-c.share) > maxDrift {
		c.share = share
		return true
	}
	c.wait--
	return false
}

// Note takes over what a sample says of a feature of which nothing is known.
func (c *Choice) Note(s *Sampled) {
	if !c.known {
		c.saved = s.saved
	}
}
