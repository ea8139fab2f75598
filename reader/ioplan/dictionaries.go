package ioplan

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/memory"
)

// Dictionaries are the dictionaries of a segment's files. The I/O task that is planned first leads: it fetches them
// with its stripes and decodes them. Other I/O tasks whose bytes arrive earlier wait in a queue, without a goroutine.
//
//	task 0 (leads)   fetch ──────────> decode dictionaries ──> stripes
//	task 1           fetch ───> in line ···················──> stripes
//
// Their memory is taken from the budget by the leading I/O task, and returned after the last I/O task of the segment,
// or the last one before the segment is loaded again.
type Dictionaries struct {
	files []format.Dictionary // one for each file of the segment; empty if it has none
	Bytes int64               // of memory, decoded
	led   bool                // an I/O task leads; used only by the planner, as left
	left  int                 // stripes still to be planned; 0 before Expect
	users atomic.Int32        // active I/O tasks, and one while left > 0
	Taken atomic.Int64        // bytes taken from the budget

	mu      sync.Mutex
	ready   bool      // guarded by mu
	err     error     // of reading or decoding them; guarded by mu
	waiting []*IOTask // guarded by mu
}

// NewDictionaries returns the Dictionaries of files, not yet decoded, or nil if no file has one.
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

// Enter counts an active I/O task.
func (d *Dictionaries) Enter() {
	if d != nil {
		d.users.Add(1)
	}
}

// Expect sets how many stripes of the segment will be planned.
func (d *Dictionaries) Expect(stripes int) {
	if d != nil {
		d.left = stripes
	}
}

// Emitted says that so many of the expected stripes are in I/O tasks, which Enter has counted.
func (d *Dictionaries) Emitted(stripes int, b *memory.Budget) {
	if d == nil {
		return
	}
	if d.left -= stripes; d.left == 0 {
		d.Leave(b)
	}
}

// Drop says that no more of the expected stripes will be planned.
func (d *Dictionaries) Drop(b *memory.Budget) {
	if d != nil && d.left > 0 {
		d.Emitted(d.left, b)
	}
}

// Leave says that an I/O task is done, or that all stripes are planned. The last call frees the dictionaries and
// returns their memory to the budget.
func (d *Dictionaries) Leave(b *memory.Budget) {
	if d != nil && d.users.Add(-1) == 0 {
		d.files = nil
		b.Give(d.Taken.Swap(0))
	}
}

// Of returns the dictionary of a file; nil: the segment has no dictionaries.
func (d *Dictionaries) Of(fileIndex int32) *format.Dictionary {
	if d == nil {
		return nil
	}
	return &d.files[fileIndex]
}

// Wait adds u to the queue. It returns false if the dictionaries are decoded, or failed.
func (d *Dictionaries) Wait(u *IOTask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return false
	}
	d.waiting = append(d.waiting, u)
	return true
}

// Finish says that the dictionaries are decoded, or failed with err, and returns the I/O tasks of the queue.
func (d *Dictionaries) Finish(err error) []*IOTask {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready, d.err = true, err
	line := d.waiting
	d.waiting = nil
	return line
}

// Failed returns the error of Finish.
func (d *Dictionaries) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// DecodeDictionaries decodes the dictionaries of u, which leads and whose bytes have been read.
func (u *IOTask) DecodeDictionaries(d *format.StripeDecoder) error {
	g := u.Segment
	for i := len(g.Files); i < u.dictEnd; i++ {
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
