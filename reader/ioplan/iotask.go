package ioplan

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// An IOTask is fetched together: consecutive stripes of one segment, in all feature files that are read.
//
//	            stripe from .. to-1
//	file 0      [======================]  need: a range of an object, and one of its dictionary if it leads
//	file 1      [=====================]
//	...
//	sorted by object and offset, ranges with small gaps joined:
//	            [===][===]..[=====]        range: one buffer
//	             request   request         of at most RequestBytes each
//
// Its buffers come from a pool when it is fetched, and return to it when its last stripe is decoded.
type IOTask struct {
	Segment  *Segment
	From, To int // stripes

	Leads    bool   // it fetches the dictionaries
	Needs    []Need // one for each file of the segment, one for each dictionary, then those that are next
	dictEnd  int    // of the dictionaries in Needs
	order    []int32
	Ranges   []Range
	Requests []Request

	Needed   uint64   // bytes of the stripes and dictionaries
	Stored   uint64   // bytes of the ranges
	Unneeded uint64   // bytes of Stored that no file needs
	Decoded  []int64  // estimated memory of each decoded stripe
	Asked    []uint64 // selected rows of each stripe

	Sizes FetchSizes // by which it was planned
	gap   int64      // of its ranges: Sizes.Gap, or less

	// While it is read:
	Stripes   []*Stripe
	Taken     int64        // bytes taken from the budget for Stored
	Unread    atomic.Int32 // requests that are not done
	Undecoded atomic.Int32 // stripes that are not decoded

	Mu       sync.Mutex
	Admitted int   // its first stripes that have the memory to be decoded; guarded by Mu
	Arrived  bool  // its bytes and dictionaries are in memory; guarded by Mu
	Err      error // of the first request in order that failed; guarded by Mu
	errAt    int   // which one; guarded by Mu
}

// FetchSizes are limits of I/O tasks, in bytes.
type FetchSizes struct {
	Gap     int64 // ranges of an object with at most so many bytes between them are joined; below 0: only adjacent ones
	Request int64 // a longer range is read by several requests
	Task    int64 // memory that an I/O task may take, stored and decoded
	// Apart: Task is of stored bytes alone. Memory to decode them is taken for one stripe after the other, so that a
	// task can be larger, and its requests fewer. What its ranges have may be more than Task, at most Ranges.
	Apart  bool
	Ranges int64
}

// widest is how many times the bytes that a task of FetchSizes.Task reads a larger one may read instead.
const widest = 2

// A Need is the bytes of an I/O task's stripes in one feature file, or of its dictionary. Where stripes that are not
// needed lie between, more than a gap, it ends there, and next has those that follow.
type Need struct {
	File     int32  // of the segment
	from, to uint64 // in the object
	Bytes    uint64 // needed bytes: stripes in between may not be needed
	Range    int32  // its range; -1: nothing is needed
	next     int32  // of the same file, in Needs; 0: none
	rest     int    // the first stripe of next
}

// A Range is consecutive bytes of an object that are read into one buffer.
type Range struct {
	Object   string
	From, To uint64
	needed   uint64 // sum of the Bytes of its needs
	Bytes    []byte
}

// A Request is a part of a range that is read by one call.
type Request struct {
	Range    int32
	From, To uint64
}

// Plan sets u to the I/O task of g that starts with stripe from: as many stripes before limit as fit sizes.Task, at
// least one. The first I/O task of a segment leads. It reuses u's memory.
//
// Where fetches are apart it is more stripes if that costs less for each: what is read in a gap is often the next
// stripes of the same features, which the next task would read again.
func (u *IOTask) Plan(g *Segment, from, limit int, sizes FetchSizes) {
	u.Segment, u.From, u.Sizes = g, from, sizes
	if d := g.Dictionaries; d != nil && !d.led {
		u.Leads, d.led = true, true
	} else {
		u.Leads = false
	}
	u.choose(limit)
	if u.Leads {
		for j := range g.Files {
			_, length := g.Files[j].Entry.Meta.Dictionary.Range()
			u.Needed += length
		}
	}
}

// choose sets the stripes, ranges and requests of u.
func (u *IOTask) choose(limit int) {
	sizes := &u.Sizes
	u.stripes(limit, sizes.Task)
	u.coalesceWithin()
	if !sizes.Apart || u.Unneeded == 0 || u.To == limit {
		return
	}
	to, stored, cost := u.To, u.Stored, u.cost()
	u.stripes(limit, sizes.Ranges)
	if u.To == to {
		return
	}
	u.coalesceWithin()
	if u.Stored > widest*stored || u.cost() >= cost {
		u.stripes(to, sizes.Ranges)
		u.coalesceWithin()
	}
}

// stripes sets the stripes of u: as many from the first on, before limit, as fit so many bytes, at least one.
func (u *IOTask) stripes(limit int, most int64) {
	g := u.Segment
	u.To, u.Needed = u.From, 0
	u.Decoded, u.Asked = u.Decoded[:0], u.Asked[:0]
	var size uint64
	for i := u.From; i < limit; i++ {
		var stored, decoded uint64
		for j := range g.Files {
			if f := &g.Files[j]; f.NeededIn(i) {
				stored += f.Entry.Meta.Stripes[i].Length
				decoded += f.decodedBytes(i)
			}
		}
		decoded += g.mergedBytes(i) + g.GatheredBytes(i)
		if size += stored; !u.Sizes.Apart {
			size += decoded
		}
		if i > u.From && size > uint64(most) {
			break
		}
		u.Needed += stored
		u.Decoded = append(u.Decoded, int64(decoded))
		u.Asked = append(u.Asked, g.Starts[i+1]-g.Starts[i])
		u.To++
	}
}

// cost returns what a stripe of u costs in bytes: those that are read, and a gap for each request, since as many cost
// what a request does.
func (u *IOTask) cost() float64 {
	return float64(u.Stored+uint64(len(u.Requests))*uint64(max(u.Sizes.Gap, 0))) / float64(u.To-u.From)
}

// coalesceWithin coalesces the needs of u's stripes, with as long gaps as leave the ranges within u.Sizes.Ranges.
func (u *IOTask) coalesceWithin() {
	u.gap = u.Sizes.Gap
	u.Coalesce(u.gap)
	for u.Sizes.Apart && u.gap > 0 && u.Unneeded > 0 && u.Stored > uint64(u.Sizes.Ranges) {
		u.gap /= 4
		u.Coalesce(u.gap)
	}
}

// Coalesce turns the needs of u's stripes into ranges and requests. Ranges with at most gap bytes between them are
// joined.
func (u *IOTask) Coalesce(within int64) {
	u.Needs, u.order = u.Needs[:0], u.order[:0]
	u.Ranges, u.Requests = u.Ranges[:0], u.Requests[:0]
	u.Stored, u.Unneeded = 0, 0
	files := u.Segment.Files
	gap := uint64(max(within, 0))
	for j := range files {
		u.Needs = append(u.Needs, files[j].need(int32(j), u.From, u.To, gap))
	}
	for j := range files {
		e := files[j].Entry
		if at, length := e.Meta.Dictionary.Range(); u.Leads && length > 0 {
			u.Needs = append(u.Needs, Need{File: int32(j), from: e.Offset + at, to: e.Offset + at + length,
				Bytes: length})
		}
	}
	u.dictEnd = len(u.Needs)
	for j := range files {
		for at := j; u.Needs[at].rest < u.To; {
			n := files[j].need(int32(j), u.Needs[at].rest, u.To, gap)
			u.Needs[at].next = int32(len(u.Needs))
			at = len(u.Needs)
			u.Needs = append(u.Needs, n)
		}
	}
	for j := range u.Needs {
		if u.Needs[j].Range >= 0 {
			u.order = append(u.order, int32(j))
		}
	}
	slices.SortFunc(u.order, func(a, b int32) int {
		return cmp.Or(
			cmp.Compare(files[u.Needs[a].File].Entry.Object, files[u.Needs[b].File].Entry.Object),
			cmp.Compare(u.Needs[a].from, u.Needs[b].from),
			cmp.Compare(a, b),
		)
	})
	for _, j := range u.order {
		n := &u.Needs[j]
		object := files[n.File].Entry.Object
		if k := len(u.Ranges) - 1; k >= 0 {
			r := &u.Ranges[k]
			if r.Object == object && (n.from <= r.To || n.from-r.To <= gap) {
				r.To = max(r.To, n.to)
				r.needed += n.Bytes
				n.Range = int32(k)
				continue
			}
		}
		n.Range = int32(len(u.Ranges))
		u.Ranges = append(u.Ranges, Range{Object: object, From: n.from, To: n.to, needed: n.Bytes})
	}
	for k := range u.Ranges {
		r := &u.Ranges[k]
		u.Stored += r.To - r.From
		// Computed for each range: bytes that two files of one range need must not hide gaps in another range.
		if size := r.To - r.From; size > r.needed {
			u.Unneeded += size - r.needed
		}
		for at := r.From; at < r.To; {
			end := min(r.To, at+uint64(u.Sizes.Request))
			u.Requests = append(u.Requests, Request{Range: int32(k), From: at, To: end})
			at = end
		}
	}
}

// need returns the bytes of f, number j of its segment, that stripes [from, to) need: up to a gap that is too long. Its
// rest is the next stripe that is needed after that.
func (f *File) need(j int32, from, to int, gap uint64) Need {
	for from < to && !f.NeededIn(from) {
		from++
	}
	if from == to {
		return Need{File: j, Range: -1, rest: to}
	}
	e := f.Entry
	first := &e.Meta.Stripes[from]
	n := Need{File: j, from: e.Offset + first.Offset, to: e.Offset + first.Offset + first.Length, Bytes: first.Length,
		rest: to}
	if f.Stripes == nil && !f.gaps {
		last := &e.Meta.Stripes[to-1]
		n.to = e.Offset + last.Offset + last.Length
		n.Bytes = n.to - n.from
		return n
	}
	for i := from + 1; i < to; i++ {
		if !f.NeededIn(i) {
			continue
		}
		s := &e.Meta.Stripes[i]
		if e.Offset+s.Offset-n.to > gap {
			n.rest = i
			break
		}
		n.to = e.Offset + s.Offset + s.Length
		n.Bytes += s.Length
	}
	return n
}

// Bytes returns the stored bytes of stripe i of a file of u's segment, and their offset in the object. Borrowed until
// the I/O task's buffers return to the pool.
func (u *IOTask) Bytes(fileIndex int32, i int) ([]byte, uint64) {
	e := u.Segment.Files[fileIndex].Entry
	from, length := e.Offset+e.Meta.Stripes[i].Offset, e.Meta.Stripes[i].Length
	n := &u.Needs[fileIndex]
	for from+length > n.to {
		n = &u.Needs[n.next]
	}
	r := &u.Ranges[n.Range]
	return r.Bytes[from-r.From:][:length], from
}

// Fail records the error of a request. Of several errors it keeps that of the first request. nil is ignored.
func (u *IOTask) Fail(index int, err error) {
	if err == nil {
		return
	}
	u.Mu.Lock()
	defer u.Mu.Unlock()
	if u.Err == nil || index < u.errAt {
		u.Err, u.errAt = err, index
	}
}
