package reader

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/dsistore/dsistore/reader/plan"
)

// An order is the order in which an epoch of a shuffled plan gives rows. It is a pure function of the rows of the plan's
// segments, the shuffle and the epoch; the rows of stripes and sessions are asked for where they are needed:
//
//	segments   permuted, and cut into groups of max(64, window)        costs a number a segment, opens none
//	  group    the stripes of its segments permuted, cut into windows  opens the indexes of its segments
//	    window its stripes' sessions, or rows, permuted                 decodes its stripes
//	      batch  rows [j*B, (j+1)*B) of what that makes
//
// Rows are whole in the order of an epoch: windows and groups follow each other without loss, so the batch that holds a row is
// found by searching the cumulative rows of groups, then of the windows of one group, then by skipping runs of one window.
//
// Each permutation draws from a generator of its own, keyed by the seed, the epoch, what is permuted and its number: what
// one window does depends on no other. The numbers below are part of OrderVersion and never change meaning.
type order struct {
	shuffle plan.Shuffle
	epoch   uint64

	segments []int32  // places in the layout, permuted; those without rows left out
	firstRow []uint64 // in the epoch's order, of each group, and the total at the end
}

// groupSegments is how many segments a group has, or the stripes of a window where those are more, so that a group always
// has a window's stripes. Each of them may be any stripe of some 64 segments, which are 64 million rows of a table
// ingested with the defaults.
const groupSegments = 64

// What is permuted, in the keys of generators.
const (
	permuteSegments uint64 = 1
	permuteStripes  uint64 = 2
	permuteRuns     uint64 = 3
)

// newOrder returns the order of an epoch over segments of so many rows each.
func newOrder(firstRow []uint64, s plan.Shuffle, epoch uint64) *order {
	o := &order{shuffle: s, epoch: epoch, firstRow: []uint64{0}}
	for i := range len(firstRow) - 1 {
		if firstRow[i+1] > firstRow[i] {
			o.segments = append(o.segments, int32(i))
		}
	}
	g := newGenerator(s.Seed, epoch, permuteSegments, 0, 0)
	permute(&g, o.segments)
	sum := uint64(0)
	for group := range slices.Chunk(o.segments, o.groupSize()) {
		for _, i := range group {
			sum += firstRow[i+1] - firstRow[i]
		}
		o.firstRow = append(o.firstRow, sum)
	}
	return o
}

func (o *order) groupSize() int { return max(groupSegments, o.shuffle.Window) }

func (o *order) groups() int { return len(o.firstRow) - 1 }

// groupAt returns the group that holds a row of the epoch's order, which must be less than the total.
func (o *order) groupAt(row uint64) int {
	return sort.Search(o.groups(), func(i int) bool { return o.firstRow[i+1] > row })
}

// group returns the segments of a group. Borrowed: do not write.
func (o *order) group(i int) []int32 {
	size := o.groupSize()
	return o.segments[i*size : min((i+1)*size, len(o.segments))]
}

// A stripeRef is one stripe of a group.
type stripeRef struct {
	segment int32 // its place in the group
	stripe  int32
}

// An orderWindow is stripes whose sessions or rows are interleaved, in the order in which they are read.
type orderWindow struct {
	group, number int
	firstRow      uint64 // in the epoch's order
	stripes       []stripeRef
}

// windows returns the windows of a group whose segments have stripes of the given rows. They are as equal in stripes as may
// be. Their stripes are in the order of the table, for it does not matter to what is made of them, and neighbours are read
// together.
func (o *order) windows(group int, stripeRows [][]uint32) []orderWindow {
	var all []stripeRef
	for i, stripes := range stripeRows {
		for j, rows := range stripes {
			if rows > 0 { // else none is selected
				all = append(all, stripeRef{int32(i), int32(j)})
			}
		}
	}
	g := newGenerator(o.shuffle.Seed, o.epoch, permuteStripes, uint64(group), 0)
	permute(&g, all)
	n := (len(all) + o.shuffle.Window - 1) / o.shuffle.Window
	out := make([]orderWindow, n)
	row := o.firstRow[group]
	segments := o.group(group)
	for i := range out {
		refs := all[len(all)*i/n : len(all)*(i+1)/n]
		slices.SortFunc(refs, func(a, b stripeRef) int {
			if a.segment != b.segment {
				return int(segments[a.segment] - segments[b.segment])
			}
			return int(a.stripe - b.stripe)
		})
		out[i] = orderWindow{group: group, number: i, firstRow: row, stripes: refs}
		for _, r := range refs {
			row += uint64(stripeRows[r.segment][r.stripe])
		}
	}
	return out
}

// A stripeRun is consecutive rows of a stripe of a window: a session, a row or a part of one.
type stripeRun struct {
	stripe int32 // its place in the window
	lo, hi int32
}

// shuffleRuns puts the sessions or rows of a window, given in the order of its stripes, in the order of the epoch.
func shuffleRuns(s *plan.Shuffle, epoch uint64, group, number int, runs []stripeRun) {
	g := newGenerator(s.Seed, epoch, permuteRuns, uint64(group), uint64(number))
	permute(&g, runs)
}

// A generator gives a sequence of numbers that follows from its key: SplitMix64 (Steele, Lea and Flood, 2014).
type generator uint64

// newGenerator returns the generator of a key. Each part is mixed with all before it.
func newGenerator(key ...uint64) generator {
	var g generator
	for _, k := range key {
		g = generator(uint64(g) ^ k)
		g = generator(g.next())
	}
	return g
}

func (g *generator) next() uint64 {
	*g += 0x9e3779b97f4a7c15
	z := uint64(*g)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n). Its deviation from uniform is below n/2^64.
func (g *generator) below(n int) int {
	hi, _ := bits.Mul64(g.next(), uint64(n))
	return int(hi)
}

// permute is the shuffle of Fisher and Yates, from the last entry down.
func permute[T any](g *generator, list []T) {
	for i := len(list) - 1; i > 0; i-- {
		j := g.below(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}
