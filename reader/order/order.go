package order

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/dsistore/dsistore/reader/plan"
)

// An Epoch is the order of rows in one epoch of a shuffled plan. It is a pure function of the rows of the plan's
// segments, the shuffle and the epoch. Each level is computed when it is needed:
//
//	segments   permuted, and cut into groups of max(64, BufferStripes)  opens no segment
//	  group    the stripes of its segments permuted, cut into buffers  opens the indexes of its segments
//	    buffer its stripes' sessions, or rows, permuted                 decodes its stripes
//	      batch  rows [j*B, (j+1)*B) of what that makes
//
// Groups, and the buffers of a group, are contiguous in the order of the epoch. So the batch of a row is found by
// searching the cumulative rows of groups, then of the buffers of one group, then by skipping runs of one buffer.
//
// Each permutation uses a random generator of its own, keyed by the seed, the epoch, what is permuted and its number.
// So it does not depend on other permutations. The numbers below are part of OrderVersion and never change meaning.
type Epoch struct {
	shuffle plan.Shuffle
	epoch   uint64

	segments []int32  // positions in the layout, permuted; those without rows left out
	firstRow []uint64 // in the epoch's order, of each group, and the total at the end
}

// GroupSegments is the number of segments of a group, unless BufferStripes is larger, so that a group always has enough
// stripes for a buffer. With default options 64 segments have 64 million rows.
const GroupSegments = 64

// What is permuted, in the keys of generators.
const (
	permuteSegments uint64 = 1
	permuteStripes  uint64 = 2
	permuteRuns     uint64 = 3
)

// New returns the order of an epoch. firstRow is the first row of each segment in the plan's own order, then the total.
func New(firstRow []uint64, s plan.Shuffle, epoch uint64) *Epoch {
	o := &Epoch{shuffle: s, epoch: epoch, firstRow: []uint64{0}}
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

func (o *Epoch) groupSize() int { return max(GroupSegments, o.shuffle.BufferStripes) }

// Groups returns how many groups there are.
func (o *Epoch) Groups() int { return len(o.firstRow) - 1 }

// GroupAt returns the group that holds a row of the epoch's order, which must be less than the total.
func (o *Epoch) GroupAt(row uint64) int {
	return sort.Search(o.Groups(), func(i int) bool { return o.firstRow[i+1] > row })
}

// Group returns the segments of a group. Borrowed: do not write.
func (o *Epoch) Group(i int) []int32 {
	size := o.groupSize()
	return o.segments[i*size : min((i+1)*size, len(o.segments))]
}

// A StripeRef is one stripe of a group.
type StripeRef struct {
	Segment int32 // its position in the group
	Stripe  int32
}

// A Buffer is a shuffle buffer: stripes whose sessions or rows are interleaved, in the order in which they are read.
type Buffer struct {
	Group, Number int
	FirstRow      uint64 // in the epoch's order
	Stripes       []StripeRef
}

// Buffers returns the shuffle buffers of a group. stripeRows are the selected rows of each stripe of its segments. The
// buffers have about equally many stripes. The stripes of a buffer are in the order of the table, so that neighbours
// are read together; ShuffleRuns permutes their sessions or rows anyway.
func (o *Epoch) Buffers(group int, stripeRows [][]uint32) []Buffer {
	var all []StripeRef
	for i, stripes := range stripeRows {
		for j, rows := range stripes {
			if rows > 0 { // else none is selected
				all = append(all, StripeRef{int32(i), int32(j)})
			}
		}
	}
	g := newGenerator(o.shuffle.Seed, o.epoch, permuteStripes, uint64(group), 0)
	permute(&g, all)
	n := (len(all) + o.shuffle.BufferStripes - 1) / o.shuffle.BufferStripes
	out := make([]Buffer, n)
	row := o.firstRow[group]
	segments := o.Group(group)
	for i := range out {
		refs := all[len(all)*i/n : len(all)*(i+1)/n]
		slices.SortFunc(refs, func(a, b StripeRef) int {
			if a.Segment != b.Segment {
				return int(segments[a.Segment] - segments[b.Segment])
			}
			return int(a.Stripe - b.Stripe)
		})
		out[i] = Buffer{Group: group, Number: i, FirstRow: row, Stripes: refs}
		for _, r := range refs {
			row += uint64(stripeRows[r.Segment][r.Stripe])
		}
	}
	return out
}

// A Run is consecutive rows of a stripe of a buffer: a session or a part of one, or a row.
type Run struct {
	Stripe int32 // its position in the buffer
	Lo, Hi int32
}

// ShuffleRuns permutes the sessions or rows of a buffer. runs are in the order of the buffer's stripes, and afterwards
// in the order of the epoch.
func ShuffleRuns(s *plan.Shuffle, epoch uint64, group, number int, runs []Run) {
	g := newGenerator(s.Seed, epoch, permuteRuns, uint64(group), uint64(number))
	permute(&g, runs)
}

// A generator is a random number generator seeded by a key: SplitMix64 (Steele, Lea and Flood, 2014).
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

// next returns the next random number.
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
