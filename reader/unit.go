package reader

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// A unit is what is fetched together: consecutive stripes of one segment, all feature files of the projection.
//
//	            stripe from .. to-1
//	file 0      [======================]  need: one range of one object, and one of its dictionary if the unit leads
//	file 1      [=====================]
//	...
//	sorted by object and offset, ranges with small gaps joined:
//	            [===][===]..[=====]        range: one buffer
//	             request   request         of at most RequestBytes each
//
// Its buffers come from a pool when it is fetched and go back when its last stripe is decoded.
type unit struct {
	segment  *segment
	from, to int // stripes

	leads    bool   // fetches the dictionaries
	needs    []need // one a file of the segment, then those of the dictionaries
	order    []int32
	ranges   []fetchRange
	requests []request

	needed   uint64   // bytes of the stripes and dictionaries
	stored   uint64   // bytes of the ranges
	overRead uint64   // of stored, bytes that no file needs
	decoded  []int64  // estimate of each stripe, decoded
	asked    []uint64 // rows of each stripe that are asked for

	// While it is read:
	stripes   []*stripe
	taken     int64        // from the budget, for stored
	unread    atomic.Int32 // requests not yet done
	undecoded atomic.Int32 // tasks not yet done

	mu    sync.Mutex
	err   error // of the first request in order that went wrong; guarded by mu
	errAt int   // which one; guarded by mu
}

// A need is the bytes of a unit's stripes in one feature file, or of its dictionary.
type need struct {
	file     int32  // of the segment
	from, to uint64 // in the object
	bytes    uint64 // of them that are needed: stripes between may not be
	rng      int32  // the range that it is in; -1: nothing is needed
}

// A fetchRange is consecutive bytes of an object that are read into one buffer.
type fetchRange struct {
	object   string
	from, to uint64
	needed   uint64 // bytes, those that two files need twice
	buf      []byte
}

// A request is a part of a range that is read by one call.
type request struct {
	rng      int32
	from, to uint64
}

// plan makes u the unit of g that starts with stripe from: as many stripes before limit as fit the options' unit size,
// at least one. The first unit that is planned of a segment leads. It reuses u's memory.
func (u *unit) plan(g *segment, from, limit int, opts *Options) {
	u.segment, u.from, u.to = g, from, from
	u.decoded, u.asked = u.decoded[:0], u.asked[:0]
	u.needed, u.stored, u.overRead = 0, 0, 0
	var size uint64
	for i := from; i < limit; i++ {
		var stored, decoded uint64
		for j := range g.files {
			if f := &g.files[j]; f.neededIn(i) {
				stored += f.entry.Meta.Stripes[i].Length
				decoded += f.decodedBytes(i)
			}
		}
		decoded += g.blendedBytes(i) + g.gatheredBytes(i)
		size += stored + decoded
		if i > from && size > uint64(opts.unitBytes()) {
			break
		}
		u.needed += stored
		u.decoded = append(u.decoded, int64(decoded))
		u.asked = append(u.asked, g.starts[i+1]-g.starts[i])
		u.to++
	}
	if d := g.dictionaries; d != nil && !d.led {
		u.leads, d.led = true, true
	} else {
		u.leads = false
	}
	u.coalesce(opts)
}

// coalesce turns the needs of u's stripes into ranges and requests.
func (u *unit) coalesce(opts *Options) {
	u.needs, u.order = u.needs[:0], u.order[:0]
	u.ranges, u.requests = u.ranges[:0], u.requests[:0]
	files := u.segment.files
	gap := uint64(max(opts.GapBytes, 0))
	for j := range files {
		e := files[j].entry
		from, to := files[j].neededOf(u.from, u.to)
		if from == to {
			u.needs = append(u.needs, need{file: int32(j), rng: -1})
			continue
		}
		first, last := &e.Meta.Stripes[from], &e.Meta.Stripes[to-1]
		n := need{file: int32(j), from: e.Offset + first.Offset, to: e.Offset + last.Offset + last.Length}
		n.bytes = n.to - n.from
		if files[j].stripes != nil || files[j].gaps {
			n.bytes = files[j].neededBytes(from, to)
		}
		u.needs = append(u.needs, n)
	}
	for j := range files {
		e := files[j].entry
		if at, length := e.Meta.Dictionary.Range(); u.leads && length > 0 {
			u.needs = append(u.needs, need{file: int32(j), from: e.Offset + at, to: e.Offset + at + length, bytes: length})
			u.needed += length
		}
	}
	for j := range u.needs {
		if u.needs[j].rng >= 0 {
			u.order = append(u.order, int32(j))
		}
	}
	slices.SortFunc(u.order, func(a, b int32) int {
		return cmp.Or(
			cmp.Compare(files[u.needs[a].file].entry.Object, files[u.needs[b].file].entry.Object),
			cmp.Compare(u.needs[a].from, u.needs[b].from),
			cmp.Compare(a, b),
		)
	})
	for _, j := range u.order {
		n := &u.needs[j]
		object := files[n.file].entry.Object
		if k := len(u.ranges) - 1; k >= 0 {
			r := &u.ranges[k]
			if r.object == object && (n.from <= r.to || n.from-r.to <= gap) {
				r.to = max(r.to, n.to)
				r.needed += n.bytes
				n.rng = int32(k)
				continue
			}
		}
		n.rng = int32(len(u.ranges))
		u.ranges = append(u.ranges, fetchRange{object: object, from: n.from, to: n.to, needed: n.bytes})
	}
	for k := range u.ranges {
		r := &u.ranges[k]
		u.stored += r.to - r.from
		// Range by range: what two files need of one is no less of a gap in another.
		if size := r.to - r.from; size > r.needed {
			u.overRead += size - r.needed
		}
		for at := r.from; at < r.to; {
			end := min(r.to, at+uint64(opts.RequestBytes))
			u.requests = append(u.requests, request{rng: int32(k), from: at, to: end})
			at = end
		}
	}
}

// neededOf returns the stripes from the first to the last of [from, to) that f is needed in.
func (f *file) neededOf(from, to int) (first, end int) {
	for from < to && !f.neededIn(from) {
		from++
	}
	for from < to && !f.neededIn(to-1) {
		to--
	}
	return from, to
}

// neededBytes adds up the stripes of [from, to) that f is needed in.
func (f *file) neededBytes(from, to int) uint64 {
	var n uint64
	for i := from; i < to; i++ {
		if f.neededIn(i) {
			n += f.entry.Meta.Stripes[i].Length
		}
	}
	return n
}

// bytes returns the stored bytes of stripe i of a file of u's segment, and where they start in the object. Borrowed
// until the unit's buffers go back.
func (u *unit) bytes(fileIndex int32, i int) ([]byte, uint64) {
	e := u.segment.files[fileIndex].entry
	r := &u.ranges[u.needs[fileIndex].rng]
	from := e.Offset + e.Meta.Stripes[i].Offset
	return r.buf[from-r.from:][:e.Meta.Stripes[i].Length], from
}
