package dedup

import "math"

// A step says how rows share slots.
type step uint8

const (
	noStep  step = iota // each row has a slot of its own
	byRuns              // a row shares the slot of the row before if they are equal
	bySlots             // a row shares the slot of any earlier equal row of the stripe
)

const (
	minWait, maxWait = 7, 63 // stripes
	// maxDrift: a stripe is examined early when Choice.share changes by more.
	maxDrift = 0.15
)

// A Choice is the form that a Finder uses for a feature, and when it examines a stripe next. The zero Choice is that of
// a feature which was not examined yet.
type Choice struct {
	known    bool
	step     step
	partial  bool
	backward bool    // the direction of partial
	share    float64 // of the stripe examined last: the share of sampled rows that differ from the row before
	grouped  bool    // saved is of the feature in its dedup group
	saved    float64 // bytes per row, against one slot per row; negative if faster decoding was worth more bytes
	byRuns   bool    // with grouped: the group is by runs
	wait     int     // stripes until the next is examined
	waited   int     // the last value that wait started from
}

// keep records the form that an examination chose. The Finder uses it for 7 stripes, then, while the next examinations
// choose the same, for 15, 31 and 63.
func (c *Choice) keep(s step, partial bool, saved float64) {
	if !c.known || c.step != s || c.partial != partial {
		c.waited = 0
	}
	c.known, c.step, c.partial, c.saved = true, s, partial, saved
	c.waited = min(max(2*c.waited+1, minWait), maxWait)
	c.wait = c.waited
}

// isIn reports whether the choice is of the feature in a group like u's.
func (c *Choice) isIn(u *Union) bool { return c.grouped && c.byRuns == u.byRuns }

// due reports whether to examine a stripe. share is the share of its sampled rows that differ from the row before.
func (c *Choice) due(share float64) bool {
	if !c.known || c.wait == 0 || math.Abs(share-c.share) > maxDrift {
		c.share = share
		return true
	}
	c.wait--
	return false
}
