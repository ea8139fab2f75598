package usage

import (
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Feature is one that a reader may read, with its name when the reader was opened. One of id 0 is none: nothing is
// counted of it.
type Feature struct {
	ID   catalog.FeatureID
	Name string
}

// A Source is a reader as a Session sees it. Its methods are called by one goroutine at a time, which may be any, until
// Session.End has returned. They must not call the Writer.
type Source interface {
	// Features are what it counts, the same each time. Borrowed for as long as the Writer lives: nobody writes to it.
	Features() []Feature
	// Counters returns what was done since the last call that returned true, without Readers; false: nothing was.
	Counters() (Counters, bool)
	// Uses adds what was read of the features since the last call.
	Uses(to *Uses)
}

// Uses add up what is read of the features of a Source, each at its position in Source.Features.
type Uses struct {
	list []use
	now  int64
}

// A use is what was read of one feature.
type use struct {
	stripes, rows, needed, unneeded uint64
	last                            int64 // second of the last read, plus 1; 0: there was none
}

// Add adds what was read of the i-th feature. What is nothing is no read.
func (u *Uses) Add(i int, stripes, rows, bytesNeeded, bytesUnneeded uint64) {
	if stripes|bytesNeeded|bytesUnneeded == 0 {
		return
	}
	x := &u.list[i]
	x.stripes += stripes
	x.rows += rows
	x.needed += bytesNeeded
	x.unneeded += bytesUnneeded
	x.last = max(x.last, u.now+1)
}
