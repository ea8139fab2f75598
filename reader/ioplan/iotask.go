package ioplan

import (
	"cmp"
	"math"
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
	// Apart: the memory to decode stripes is taken for one after the other, so that a task can be larger, and its
	// requests fewer. Task is of stored bytes alone, and a task has more of them where that costs less: see choose.
	Apart  bool
	Share  int64 // memory that all tasks have together, where they are apart
	Memory int64 // all memory; ranges with more bytes are read only if their objects are as long
}

// wider is how many times the bytes that the task of FetchSizes.Task reads a larger one may need instead: the first
// batch waits for them.
const wider = 2

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
	Bytes    []byte // nil until its first request; guarded by the task's Mu until then
	Checked  bool   // its object was asked for its size; guarded by the task's Mu
	Err      error  // of that: the range is not read; guarded by the task's Mu
}

// A Request is a part of a range that is read by one call.
type Request struct {
	Range    int32
	From, To uint64
}

// Plan sets u to an I/O task of g that starts with stripe from: as many stripes before limit as fit sizes, at least
// one. The first I/O task of a segment leads. It reuses u's memory.
func (u *IOTask) Plan(g *Segment, from, limit int, sizes FetchSizes) {
	u.Segment, u.From, u.Sizes = g, from, sizes
	u.Leads = false
	gap := u.choose(limit)
	if d := g.Dictionaries; d != nil && !d.led { // no choice makes dictionaries smaller
		u.Leads, d.led = true, true
		u.Coalesce(gap)
		for j := range g.Files {
			_, length := g.Files[j].Entry.Meta.Dictionary.Range()
			u.Needed += length
		}
	}
}

// choose sets the stripes, ranges and requests of u, without dictionaries, and returns the gap.
//
// Where fetches are apart there is a choice. In a segment of many features, what is read in a gap is often the next
// stripes of the same features, which the next task would read again: a task of more stripes costs less for each. But
// its ranges must fit the memory, and smaller gaps are more requests. Of such tasks it takes the one that costs least
// for each stripe.
func (u *IOTask) choose(limit int) int64 {
	s := &u.Sizes
	u.stripes(limit, s.Task)
	u.Coalesce(s.Gap)
	if !s.Apart || u.crowding() == 1 && (u.Unneeded == 0 || u.To == limit) {
		return s.Gap
	}
	to, gap, least := 0, int64(0), math.Inf(1)
	tried, most := 0, wider*int64(u.Stored)
	for _, size := range [...]int64{s.Task, min(s.Share/2, most), min(s.Share, most), min(s.Memory, most)} {
		if u.stripes(limit, size); u.To <= tried {
			continue
		}
		tried = u.To
		for at := s.Gap; ; at /= 4 {
			u.Coalesce(at)
			if u.cost() >= least {
				break // with smaller gaps there are rarely fewer requests
			}
			if c := u.cost() * u.crowding(); c < least {
				to, gap, least = u.To, at, c
			}
			if u.crowding() == 1 || u.Unneeded == 0 || at <= 0 {
				break
			}
		}
	}
	if to == 0 { // not even the stripes of a task fit the memory: one of them is large
		to, gap = u.From+1, 0
	}
	u.stripes(to, math.MaxInt64)
	u.Coalesce(gap)
	return gap
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

// crowding returns how much more u costs because of the memory that it takes. A task that leaves no room for another of
// its size is fetched alone: the network is idle until its stripes are decoded. One that takes more than the memory of
// tasks takes it from the stripes.
func (u *IOTask) crowding() float64 {
	switch s, stored := &u.Sizes, int64(u.Stored); {
	case stored <= s.Share/2:
		return 1
	case stored <= s.Share:
		return 1.25
	case stored <= s.Memory:
		return 2
	}
	return math.Inf(1)
}

// Coalesce turns the needs of u's stripes into ranges and requests. Ranges with at most maxGap bytes between them are
// joined.
func (u *IOTask) Coalesce(maxGap int64) {
	u.Needs, u.order = u.Needs[:0], u.order[:0]
	u.Ranges, u.Requests = u.Ranges[:0], u.Requests[:0]
	u.Stored, u.Unneeded = 0, 0
	files := u.Segment.Files
	gap := uint64(max(maxGap, 0))
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
