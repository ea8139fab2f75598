package ioplan

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/memory"
)

// Dictionaries are those of a segment's files. The I/O task planned first leads: it fetches them with its stripes and
// decodes them. I/O tasks whose bytes are there before wait for it in line, and hold no goroutine.
//
//	task 0 (leads)   fetch ──────────> decode dictionaries ──> stripes
//	task 1           fetch ───> in line ···················──> stripes
//
// Their memory is the budget's from the leading I/O task to the last of the segment's I/O tasks, or to the last before
// the segment is looked up anew.
type Dictionaries struct {
	files []format.Dictionary // one per file of the segment; empty where it has none
	Bytes int64               // of memory, decoded
	led   bool                // an I/O task leads; this and left are the planner's own
	left  int                 // stripes to come; 0 until the first are looked at
	users atomic.Int32        // I/O tasks under way, and one for those to come
	Taken atomic.Int64        // from the budget

	mu      sync.Mutex
	ready   bool      // guarded by mu
	err     error     // why they are not there; guarded by mu
	waiting []*IOTask // guarded by mu
}

// NewDictionaries returns the dictionaries of files to be, or nil when none has one.
func NewDictionaries(files []File) *Dictionaries {
	if len(files) == 0 {
		return nil
	}
	d := &Dictionaries{}
	for i := range files {
		d.Bytes += int64(files[i].Entry.Meta.Dictionary.DecodedBytes())
	}
	if d.Bytes == 0 {
		return nil
	}
	d.files = make([]format.Dictionary, len(files))
	d.users.Store(1)
	return d
}

// Enter counts an I/O task that is under way.
func (d *Dictionaries) Enter() {
	if d != nil {
		d.users.Add(1)
	}
}

// Expect says that so many stripes of the segment are to come.
func (d *Dictionaries) Expect(stripes int) {
	if d != nil {
		d.left = stripes
	}
}

// Emitted says that so many stripes are in I/O tasks that were counted.
func (d *Dictionaries) Emitted(stripes int, b *memory.Budget) {
	if d == nil {
		return
	}
	if d.left -= stripes; d.left == 0 {
		d.Leave(b)
	}
}

// Drop says that no more stripes come, though some were expected.
func (d *Dictionaries) Drop(b *memory.Budget) {
	if d != nil && d.left > 0 {
		d.Emitted(d.left, b)
	}
}

// Leave says that an I/O task is done, or that no more come, and gives the memory back after the last.
func (d *Dictionaries) Leave(b *memory.Budget) {
	if d != nil && d.users.Add(-1) == 0 {
		d.files = nil
		b.Give(d.Taken.Swap(0))
	}
}

// Of returns the dictionary of a file, nil where it has none.
func (d *Dictionaries) Of(fileIndex int32) *format.Dictionary {
	if d == nil {
		return nil
	}
	return &d.files[fileIndex]
}

// Wait puts u in line, or returns false when the dictionaries are there or never will be.
func (d *Dictionaries) Wait(u *IOTask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return false
	}
	d.waiting = append(d.waiting, u)
	return true
}

// Finish says that the dictionaries are there, or why they are not, and returns the I/O tasks in line.
func (d *Dictionaries) Finish(err error) []*IOTask {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready, d.err = true, err
	line := d.waiting
	d.waiting = nil
	return line
}

// Failed returns why the dictionaries are not there.
func (d *Dictionaries) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// DecodeDictionaries decodes the dictionaries that u, whose bytes are there, leads.
func (u *IOTask) DecodeDictionaries(d *format.StripeDecoder) error {
	g := u.Segment
	for i := len(g.Files); i < len(u.Needs); i++ {
		n := &u.Needs[i]
		f := &g.Files[n.File]
		r := &u.Ranges[n.Range]
		if err := d.DecodeDictionary(&g.Dictionaries.files[n.File], f.Entry.Meta,
			r.Bytes[n.from-r.From:n.to-r.From]); err != nil {
			return f.Locate(err, n.from)
		}
	}
	return nil
}
