package reader

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/memory"
)

// Dictionaries are those of a segment's files. The unit planned first leads: it fetches them with its stripes and decodes
// them. Units whose bytes are there before wait for it in line, and hold no goroutine.
//
//	unit 0 (leads)   fetch ──────────> decode dictionaries ──> stripes
//	unit 1           fetch ───> in line ···················──> stripes
//
// Their memory is the budget's from the leading unit to the last of the segment's units, or to the last before the segment
// is looked up anew.
type dictionaries struct {
	files []format.Dictionary // one a file of the segment; empty where it has none
	bytes int64               // of memory, decoded
	led   bool                // a unit leads; this and left are the planner's own
	left  int                 // stripes to come; 0 until the first are looked at
	users atomic.Int32        // units under way, and one for those to come
	taken atomic.Int64        // from the budget

	mu      sync.Mutex
	ready   bool    // guarded by mu
	err     error   // why they are not there; guarded by mu
	waiting []*unit // guarded by mu
}

// newDictionaries returns the dictionaries of files to be, or nil when none has one.
func newDictionaries(files []file) *dictionaries {
	if len(files) == 0 {
		return nil
	}
	d := &dictionaries{}
	for i := range files {
		d.bytes += int64(files[i].entry.Meta.Dictionary.DecodedBytes())
	}
	if d.bytes == 0 {
		return nil
	}
	d.files = make([]format.Dictionary, len(files))
	d.users.Store(1)
	return d
}

// enter counts a unit that is under way.
func (d *dictionaries) enter() {
	if d != nil {
		d.users.Add(1)
	}
}

// expect says that so many stripes of the segment are to come.
func (d *dictionaries) expect(stripes int) {
	if d != nil {
		d.left = stripes
	}
}

// emitted says that so many stripes are in units that were counted.
func (d *dictionaries) emitted(stripes int, b *memory.Budget) {
	if d == nil {
		return
	}
	if d.left -= stripes; d.left == 0 {
		d.leave(b)
	}
}

// drop says that no more stripes come, though some were expected.
func (d *dictionaries) drop(b *memory.Budget) {
	if d != nil && d.left > 0 {
		d.emitted(d.left, b)
	}
}

// leave says that a unit is done, or that no more come, and gives the memory back after the last.
func (d *dictionaries) leave(b *memory.Budget) {
	if d != nil && d.users.Add(-1) == 0 {
		d.files = nil
		b.Give(d.taken.Swap(0))
	}
}

// of returns the dictionary of a file, nil where it has none.
func (d *dictionaries) of(fileIndex int32) *format.Dictionary {
	if d == nil {
		return nil
	}
	return &d.files[fileIndex]
}

// wait puts u in line, or returns false when the dictionaries are there or never will be.
func (d *dictionaries) wait(u *unit) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return false
	}
	d.waiting = append(d.waiting, u)
	return true
}

// finish says that the dictionaries are there, or why they are not, and returns the units in line.
func (d *dictionaries) finish(err error) []*unit {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready, d.err = true, err
	line := d.waiting
	d.waiting = nil
	return line
}

// failed returns why the dictionaries are not there.
func (d *dictionaries) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// decodeDictionaries decodes the dictionaries that u, whose bytes are there, leads.
func (u *unit) decodeDictionaries(d *format.StripeDecoder) error {
	g := u.segment
	for i := len(g.files); i < len(u.needs); i++ {
		n := &u.needs[i]
		f := &g.files[n.file]
		r := &u.ranges[n.rng]
		if err := d.DecodeDictionary(&g.dictionaries.files[n.file], f.entry.Meta, r.buf[n.from-r.from:n.to-r.from]); err != nil {
			return f.locate(err, n.from)
		}
	}
	return nil
}

// arrived takes a unit whose bytes are there to the workers, through the line for its segment's dictionaries.
func (r *run) arrived(u *unit) {
	d := u.segment.dictionaries
	switch {
	case d == nil:
		r.dispatch(u)
		return
	case !u.leads:
		if !d.wait(u) {
			u.fail(0, d.failed())
			r.dispatch(u)
		}
		return
	}
	err := u.err
	if err == nil {
		decoder := r.s.decoder()
		if err = u.decodeDictionaries(decoder); err != nil {
			u.fail(0, err)
		}
		r.s.decoders.put(decoder)
	}
	line := d.finish(err)
	r.dispatch(u)
	for _, w := range line {
		w.fail(0, err)
		r.dispatch(w)
	}
}
