package reader

import (
	"math/bits"
	"sync"

	"github.com/dsistore/dsistore/reader/load"
)

// A meter counts what is fetched of each feature that a layout reads: stripes, rows and bytes, a unit at a time. Bytes are those that the unit
// has counted anyway, dealt out:
//
//	range       [== a ==]......[= b =][==== group ====]    of one object, read as one
//	needed       a       gap    b      the group's inverse: to each of its features that is read an equal part
//	unneeded            the gap, to all in the range, in proportion to the bytes needed
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

type featureMeter struct{ stripes, rows, needed, unneeded uint64 }

// A fileMeter is the bytes of one file of a unit.
type fileMeter struct{ needed, unneeded uint64 }

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
func (m *meter) count(u *load.IOTask) {
	if m.size == 0 {
		return
	}
	g := u.Segment
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.features == nil { // a reader that waits costs nothing
		m.features = make([]featureMeter, m.size)
	}
	m.ranges = resized(m.ranges, len(u.Ranges))
	m.files = resized(m.files, len(g.Files))
	for j := range u.Needs {
		if n := &u.Needs[j]; n.Range >= 0 {
			m.ranges[n.Range].total += n.Bytes
		}
	}
	for k := range u.Ranges {
		r := &m.ranges[k]
		if size := u.Ranges[k].To - u.Ranges[k].From; size > r.total {
			r.amount = size - r.total
		}
	}
	for j := range u.Needs {
		if n := &u.Needs[j]; n.Range >= 0 {
			f := &m.files[n.File]
			f.needed += n.Bytes
			f.unneeded += m.ranges[n.Range].take(n.Bytes)
		}
	}
	for j := range m.files {
		f := m.files[j]
		if at := g.Owners[j]; at >= 0 {
			m.features[at].needed += f.needed
			m.features[at].unneeded += f.unneeded
			continue
		}
		among := g.Shared[^g.Owners[j]]
		needed, unneeded := share{amount: f.needed, total: uint64(len(among))}, share{amount: f.unneeded, total: uint64(len(among))}
		for _, at := range among {
			m.features[at].needed += needed.take(1)
			m.features[at].unneeded += unneeded.take(1)
		}
	}
	var rows uint64
	for _, n := range u.Asked {
		rows += n
	}
	for i := range g.Items {
		it := &g.Items[i]
		for k, at := range it.Features {
			f := &m.features[at]
			switch {
			case it.Parts != nil:
				countParts(f, u, it, k)
			case g.FeatureFile[at] >= 0:
				f.stripes += uint64(u.To - u.From)
				f.rows += rows
			}
		}
	}
}

// countParts counts the stripes of the k-th feature of an item whose rows come from several places.
func countParts(f *featureMeter, u *load.IOTask, it *load.Item, k int) {
	g := u.Segment
	for i := u.From; i < u.To; i++ {
		some := false
		for p := range it.Parts {
			if file := it.Parts[p].Files[k]; file >= 0 && g.Files[file].NeededIn(i) {
				f.stripes++
				some = true
			}
		}
		if some {
			f.rows += u.Asked[i-u.From]
		}
	}
}
