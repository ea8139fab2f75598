package metering

import (
	"math/bits"
	"sync"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
)

// A Meter counts what is fetched of each feature: stripes, rows and bytes. It divides the bytes of each I/O task among
// features:
//
//	range       [== a ==]......[= b =][==== group ====]    of one object, read as one
//	needed       a       gap    b      a group's inverse is divided equally among its features that are read
//	unneeded            a gap is divided among all files of the range, in proportion to their needed bytes
//
// It takes constant time for each file of a task, and allocates nothing in a steady state. Without Begin it counts
// nothing. Safe for concurrent use.
type Meter struct {
	size int // features; 0: it does not count

	mu       sync.Mutex     // guards what follows
	Features []FeatureReads // nil: nothing was read
}

// meterScratch is the memory of a count.
type meterScratch struct {
	files  []fileBytes
	ranges []share
}

// scratches are shared by all readers of the process, so that idle readers hold none.
var scratches memory.FreeList[meterScratch]

// FeatureReads counts what was read of one feature: stripes, rows, needed and unneeded bytes.
type FeatureReads struct{ Stripes, Rows, Needed, Unneeded uint64 }

// fileBytes are the bytes of one file of an I/O task.
type fileBytes struct{ needed, unneeded uint64 }

// A share divides an amount among parts in proportion to their sizes, in whole numbers whose sum is the amount.
type share struct {
	amount, total uint64 // total is the sum of the sizes
	dealt, seen   uint64 // amount and sizes of the parts so far
}

// take returns the share of the next part, which has that size.
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

// Begin makes the Meter count so many features. It is called before anything is read.
func (m *Meter) Begin(features int) { m.size = features }

// Take calls each with the reads of every feature since the last Take. r is borrowed for the call.
func (m *Meter) Take(each func(feature int, r *FeatureReads)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.Features {
		each(i, &m.Features[i])
	}
	clear(m.Features)
}

// count counts an I/O task that is read.
func (m *Meter) count(u *ioplan.IOTask) {
	if m.size == 0 {
		return
	}
	g := u.Segment
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Features == nil { // allocated late, so that a reader that reads nothing costs nothing
		m.Features = make([]FeatureReads, m.size)
	}
	x := scratches.Get()
	defer scratches.Put(x)
	x.ranges, x.files = vector.Resize(x.ranges, len(u.Ranges)), vector.Resize(x.files, len(g.Files))
	clear(x.ranges)
	clear(x.files)
	for j := range u.Needs {
		if n := &u.Needs[j]; n.Range >= 0 {
			x.ranges[n.Range].total += n.Bytes
		}
	}
	for k := range u.Ranges {
		r := &x.ranges[k]
		if size := u.Ranges[k].To - u.Ranges[k].From; size > r.total {
			r.amount = size - r.total
		}
	}
	for j := range u.Needs {
		if n := &u.Needs[j]; n.Range >= 0 {
			f := &x.files[n.File]
			f.needed += n.Bytes
			f.unneeded += x.ranges[n.Range].take(n.Bytes)
		}
	}
	for j := range x.files {
		f := x.files[j]
		if at := g.Owners[j]; at >= 0 {
			m.Features[at].Needed += f.needed
			m.Features[at].Unneeded += f.unneeded
			continue
		}
		among := g.Shared[^g.Owners[j]]
		parts := uint64(len(among))
		needed, unneeded := share{amount: f.needed, total: parts}, share{amount: f.unneeded, total: parts}
		for _, at := range among {
			m.Features[at].Needed += needed.take(1)
			m.Features[at].Unneeded += unneeded.take(1)
		}
	}
	var rows uint64
	for _, n := range u.Asked {
		rows += n
	}
	for i := range g.Items {
		it := &g.Items[i]
		for k, at := range it.Features {
			f := &m.Features[at]
			switch {
			case it.Parts != nil:
				countParts(f, u, it, k)
			case g.FeatureFile[at] >= 0:
				f.Stripes += uint64(u.To - u.From)
				f.Rows += rows
			}
		}
	}
}

// countParts counts the stripes of the k-th feature of an item whose rows come from several sources.
func countParts(f *FeatureReads, u *ioplan.IOTask, it *ioplan.Item, k int) {
	g := u.Segment
	for i := u.From; i < u.To; i++ {
		some := false
		for p := range it.Parts {
			if file := it.Parts[p].Files[k]; file >= 0 && g.Files[file].NeededIn(i) {
				f.Stripes++
				some = true
			}
		}
		if some {
			f.Rows += u.Asked[i-u.From]
		}
	}
}
