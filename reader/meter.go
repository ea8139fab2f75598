package reader

import (
	"math/bits"
	"sync"
)

// A meter counts what is fetched of each feature that a layout reads: stripes, rows and bytes, a unit at a time. Bytes are those that the unit
// has counted anyway, dealt out:
//
//	range       [== a ==]......[= b =][==== group ====]    of one object, read as one
//	needed       a       gap    b      the group's inverse: to each of its features that is read an equal part
//	over-read           the gap, to all in the range, in proportion to the bytes needed
//
// It costs a step a file and unit, and allocates nothing once it has seen a unit of each size. One that nobody asks for what it counts counts
// nothing. Safe for concurrent use.
type meter struct {
	size int // features; 0: it does not count

	mu       sync.Mutex // guards what follows
	features []featureMeter
	files    []fileMeter // scratch
	ranges   []share     // scratch
}

type featureMeter struct{ stripes, rows, needed, overRead uint64 }

// A fileMeter is the bytes of one file of a unit.
type fileMeter struct{ needed, overRead uint64 }

// A share deals an amount out to parts in proportion, so that they add up to it.
type share struct {
	amount, total uint64 // total is that of all parts
	dealt, seen   uint64
}

// take returns the share of the next part.
func (s *share) take(part uint64) uint64 {
	s.seen += part
	upTo := s.amount
	if s.seen < s.total {
		hi, lo := bits.Mul64(s.amount, s.seen)
		upTo, _ = bits.Div64(hi, lo, s.total) // hi < total, since seen is
	}
	out := upTo - s.dealt
	s.dealt = upTo
	return out
}

// resized returns n zeros, in the memory of s where they fit.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// begin makes the meter count so many features. It is called before anything is read.
func (m *meter) begin(features int) { m.size = features }

// count counts a unit that is read.
func (m *meter) count(u *unit) {
	if m.size == 0 {
		return
	}
	g := u.segment
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.features == nil { // a reader that waits costs nothing
		m.features = make([]featureMeter, m.size)
	}
	m.ranges = resized(m.ranges, len(u.ranges))
	m.files = resized(m.files, len(g.files))
	for j := range u.needs {
		if n := &u.needs[j]; n.rng >= 0 {
			m.ranges[n.rng].total += n.bytes
		}
	}
	for k := range u.ranges {
		r := &m.ranges[k]
		if size := u.ranges[k].to - u.ranges[k].from; size > r.total {
			r.amount = size - r.total
		}
	}
	for j := range u.needs {
		if n := &u.needs[j]; n.rng >= 0 {
			f := &m.files[n.file]
			f.needed += n.bytes
			f.overRead += m.ranges[n.rng].take(n.bytes)
		}
	}
	for j := range m.files {
		f := m.files[j]
		if at := g.owners[j]; at >= 0 {
			m.features[at].needed += f.needed
			m.features[at].overRead += f.overRead
			continue
		}
		among := g.shared[^g.owners[j]]
		needed, overRead := share{amount: f.needed, total: uint64(len(among))}, share{amount: f.overRead, total: uint64(len(among))}
		for _, at := range among {
			m.features[at].needed += needed.take(1)
			m.features[at].overRead += overRead.take(1)
		}
	}
	var rows uint64
	for _, n := range u.asked {
		rows += n
	}
	for i := range g.items {
		it := &g.items[i]
		for k, at := range it.features {
			f := &m.features[at]
			switch {
			case it.parts != nil:
				g.countParts(f, u, it, k)
			case g.featureFile[at] >= 0:
				f.stripes += uint64(u.to - u.from)
				f.rows += rows
			}
		}
	}
}

// countParts counts the stripes of the k-th feature of an item whose rows come from several places.
func (g *segment) countParts(f *featureMeter, u *unit, it *item, k int) {
	for i := u.from; i < u.to; i++ {
		some := false
		for p := range it.parts {
			if file := it.parts[p].files[k]; file >= 0 && g.files[file].neededIn(i) {
				f.stripes++
				some = true
			}
		}
		if some {
			f.rows += u.asked[i-u.from]
		}
	}
}

// setOwners says of each file of the segment, once they and the items are there, whose bytes it has: the place of a feature, or, where it is
// the inverse of several, ^i for shared[i].
func (g *segment) setOwners() {
	g.owners = make([]int32, len(g.files))
	inverse := func(file int32, features []int32) {
		switch {
		case file < 0:
		case g.owners[file] < 0: // of another item too
			at := ^g.owners[file]
			g.shared[at] = append(g.shared[at][:len(g.shared[at]):len(g.shared[at])], features...)
		default:
			g.shared = append(g.shared, features)
			g.owners[file] = ^int32(len(g.shared) - 1)
		}
	}
	for i := range g.items {
		it := &g.items[i]
		inverse(it.inverse, it.features)
		for p := range it.parts {
			inverse(it.parts[p].inverse, it.features)
			for k, file := range it.parts[p].files {
				if file >= 0 {
					g.owners[file] = it.features[k]
				}
			}
		}
		if it.parts == nil {
			for _, at := range it.features {
				if file := g.featureFile[at]; file >= 0 {
					g.owners[file] = at
				}
			}
		}
	}
}
