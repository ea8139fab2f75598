package batch

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/plan"
)

// The inverse of a feature in a segment, as a number. Features with the same number share an inverse in every stripe.
const (
	// inverseNone: none in any stripe, each row is its own slot.
	inverseNone = 0
	// inverseMissing: the segment has no such feature, all rows are null.
	inverseMissing = 1
	// inverseItem and higher: that of an item of the segment; the item may have no inverse in some stripes.
	inverseItem = 2
)

var sharings atomic.Uint64 // the last id given

// A grouping lists the groups of features that share an inverse in each of several segments. It is immutable.
//
// A group is a list of positions in the plan, ascending. The groups are in the order of their first features. Features
// without an inverse in any of the segments, and features that are expanded, are in no group.
type grouping [][]int32

// groupings caches the groupings of sets of segments. A batch needs one look-up. A segment whose features are grouped
// in a new way costs time linear in the number of features. Safe for concurrent use.
type groupings struct {
	features []int32 // ascending, without partition keys, weights and features of matrices
	expanded []bool  // by index in features: the plan expands it, so it is in no group

	mu       sync.Mutex
	sharings map[string]*ioplan.Sharing // by numbers; guarded by mu
	known    map[string]grouping        // by the sharings' ids; guarded by mu
}

// maxGroupings limits the maps of groupings: when one is full, it is cleared.
const maxGroupings = 256

func newGroupings(l *batchLayout) *groupings {
	s := &groupings{sharings: map[string]*ioplan.Sharing{}, known: map[string]grouping{}}
	positions := l.exact
	if l.plan.Output == plan.OutputTensors {
		positions = slices.Concat(l.sparse, l.weighted, l.floats)
	}
	for _, f := range positions {
		if x := l.plan.Features[f]; !plan.IsPartitionKey(x) && !plan.IsWeight(x) {
			s.features = append(s.features, f)
		}
	}
	slices.Sort(s.features)
	s.expanded = make([]bool, len(s.features))
	for i, f := range s.features {
		s.expanded[i] = l.plan.Expands(f)
	}
	return s
}

// sharingOf returns the sharing of a segment.
func (s *groupings) sharingOf(g *ioplan.Segment) *ioplan.Sharing {
	if x := g.Sharing.Load(); x != nil {
		return x
	}
	numbers := make([]int32, len(s.features))
	byItem := make([]int32, len(g.Items))
	itemOf := make([]int32, len(g.FeatureFile))
	for i := range g.Items {
		for _, f := range g.Items[i].Features {
			itemOf[f] = int32(i)
		}
	}
	next := int32(inverseItem)
	for i, f := range s.features {
		if g.FeatureFile[f] < 0 {
			numbers[i] = inverseMissing
			continue
		}
		item := itemOf[f]
		if byItem[item] == 0 {
			if byItem[item] = -1; g.HasInverse(&g.Items[item]) {
				byItem[item] = next
				next++
			}
		}
		numbers[i] = max(byItem[item], inverseNone)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(appendNumbers(nil, numbers))
	x := s.sharings[key]
	if x == nil {
		if len(s.sharings) >= maxGroupings {
			clear(s.sharings)
		}
		x = &ioplan.Sharing{ID: sharings.Add(1), Numbers: numbers}
		s.sharings[key] = x
	}
	g.Sharing.Store(x)
	return x
}

func appendNumbers(b []byte, numbers []int32) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// of returns the grouping of segments with these sharings, which are distinct and sorted by ID. key is scratch, which
// it returns.
func (s *groupings) of(segments []*ioplan.Sharing, key []byte) (grouping, []byte) {
	key = key[:0]
	for _, x := range segments {
		key = binary.LittleEndian.AppendUint64(key, x.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.known[string(key)]
	if !ok {
		if len(s.known) >= maxGroupings {
			clear(s.known)
		}
		g = s.group(segments)
		s.known[string(key)] = g
	}
	return g, key
}

// group groups the features by their numbers in each of the segments.
func (s *groupings) group(segments []*ioplan.Sharing) grouping {
	// Groups are refined segment by segment: two features of a group stay in one group if they have the same number.
	groups := make([]int32, len(s.features))
	inverse := make([]bool, len(s.features)) // in any of the segments
	for _, x := range segments {
		refined := map[[2]int32]int32{}
		for i, n := range x.Numbers {
			pair := [2]int32{groups[i], n}
			g, ok := refined[pair]
			if !ok {
				g = int32(len(refined))
				refined[pair] = g
			}
			groups[i] = g
			inverse[i] = inverse[i] || n != inverseNone
		}
	}
	var out grouping
	positions := map[int32]int{} // in out
	for i, f := range s.features {
		if !inverse[i] || s.expanded[i] {
			continue
		}
		at, ok := positions[groups[i]]
		if !ok {
			at = len(out)
			positions[groups[i]] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], f)
	}
	return out
}
