package format

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/format/vector"
)

// Limits of the stripes that a Writer holds back until it decides on the dictionary.
const (
	maxWaitingValues   = 1 << 19 // 4 bytes each
	maxWaitingDistinct = 1 << 17
	maxWaitingBytes    = 1 << 20 // of the other streams
)

// A dictionaryBuilder finds the values that several stripes of a file have, so that they are stored once:
//
//	stripe 0    a b a c        codes 0 1 0 2   own c
//	stripe 1    b a d a        codes 1 0 2 0   own d        dictionary a b
//
// The dictionary is chosen from the first stripes. They wait until then, with all streams encoded except their values.
// Later stripes use the dictionary. If no dictionary pays, the Writer drops the builder.
type dictionaryBuilder struct {
	open    bool // the dictionary is not chosen yet, and stripes wait
	table   valueTable
	waiting []waitingStripe
	held    []int32 // values of all waiting stripes, as numbers in the table
	bytes   int     // of their other streams

	shared int // values of the dictionary, which are the first of the table
	// Memory for the stripe being written.
	codes  []int32
	own    []int64 // distinct values that the dictionary lacks
	fresh  []int32 // their numbers in the old table
	counts []int32 // occurrences of each
	order  []int32 // indexes of own in the order in which they are stored
	place  []int32 // by index of own: its code
	vals   []int64
	// Memory of finishDictionary.
	keys    []int64 // of the old table
	placeOf []int32 // by number in the old table: code in the dictionary, or -1
	tallies []tally
	touched []int32
	sorter  frequencySorter
}

// dictionaryBuilders are reused from file to file: each holds several megabytes.
var dictionaryBuilders = sync.Pool{New: func() any { return new(dictionaryBuilder) }}

// newDictionaryBuilder returns a builder in which stripes wait.
func newDictionaryBuilder() *dictionaryBuilder {
	h := dictionaryBuilders.Get().(*dictionaryBuilder)
	h.table.reset()
	h.open, h.waiting, h.held, h.bytes, h.shared = true, nil, h.held[:0], 0, 0
	return h
}

// dropBuilder returns the builder to the pool.
func (w *Writer) dropBuilder() {
	if w.builder != nil {
		dictionaryBuilders.Put(w.builder)
		w.builder = nil
	}
}

// waiting returns how many stripes wait.
func (w *Writer) waiting() int {
	if w.builder == nil {
		return 0
	}
	return len(w.builder.waiting)
}

// A waitingStripe is a stripe without its values.
type waitingStripe struct {
	meta   StripeMeta // Streams is its own
	buf    []byte     // of its streams
	values int        // codes of it
}

// hold keeps the stripe that w.build made, whose values are vals. It finishes the dictionary when enough stripes wait.
func (w *Writer) hold(vals []int64) {
	h := w.builder
	n := len(h.held)
	h.held = slices.Grow(h.held, len(vals))[:n+len(vals)]
	h.table.addAll(h.held[n:], vals)
	s := w.stripe
	s.Streams = slices.Clone(w.streams)
	h.waiting = append(h.waiting, waitingStripe{meta: s, buf: slices.Clone(w.buf), values: len(vals)})
	h.bytes += len(w.buf)
	if len(h.held) >= maxWaitingValues || len(h.table.keys) >= maxWaitingDistinct || h.bytes >= maxWaitingBytes {
		w.finishDictionary()
	}
}

// finishDictionary chooses the dictionary, and writes it and the waiting stripes.
func (w *Writer) finishDictionary() {
	h := w.builder
	if h == nil || !h.open {
		return
	}
	h.open = false
	shared := h.choose(w.chooser.Profile.NsPerByte())
	h.keys = append(h.keys[:0], h.table.keys...)
	keys := h.keys
	if h.shared = len(shared); h.shared > 0 {
		h.table.reset()
		for _, c := range shared {
			h.table.add(keys[c])
		}
		w.buf = w.chooser.AppendInts(w.buf[:0], dictionaryMemory, h.table.keys)
		w.streams, w.context = w.streams[:0], newStreamContext(w.meta.Salt, dictionaryStripe)
		w.endStream(dictionaryKind)
		w.meta.Dictionary = DictionaryMeta{Values: uint32(h.shared), Length: uint64(len(w.buf))}
		w.write(w.buf)
	}
	// The values of waiting stripes are numbers in the old table. placeOf maps them to codes without looking up values.
	h.placeOf = vector.Resize(h.placeOf, len(keys))
	place := h.placeOf
	for i := range place {
		place[i] = -1
	}
	for i, c := range shared {
		place[c] = int32(i)
	}
	codes := h.held
	for i := range h.waiting {
		s := &h.waiting[i]
		w.context = newStreamContext(w.meta.Salt, len(w.meta.Stripes))
		w.stripe, w.streams, w.buf = s.meta, append(w.streams[:0], s.meta.Streams...), append(w.buf[:0], s.buf...)
		if h.shared > 0 {
			w.insertCodes(h.recode(codes[:s.values], keys, place))
		} else {
			h.vals = vector.Resize(h.vals, s.values)
			for k, c := range codes[:s.values] {
				h.vals[k] = keys[c]
			}
			w.insertValues(h.vals)
		}
		codes = codes[s.values:]
		w.writeStripe()
	}
	h.waiting, h.held, h.bytes = nil, h.held[:0], 0
	if h.shared == 0 {
		w.dropBuilder()
	}
}

// recode returns the codes of a stripe's values, given as numbers of keys, in the dictionary and the stripe's own
// values, which it sets. place is placeOf, which recode leaves as it was. Borrowed.
func (h *dictionaryBuilder) recode(codes []int32, keys []int64, place []int32) []int32 {
	out := vector.Resize(h.codes, len(codes))
	h.codes, h.counts, h.own, h.fresh = out, h.counts[:0], h.own[:0], h.fresh[:0]
	for i, c := range codes {
		p := place[c]
		if p < 0 {
			p = int32(h.shared + len(h.own))
			place[c] = p
			h.own = append(h.own, keys[c])
			h.fresh = append(h.fresh, c)
			h.counts = append(h.counts, 0)
		}
		if int(p) >= h.shared {
			h.counts[int(p)-h.shared]++
		}
		out[i] = p
	}
	for _, c := range h.fresh {
		place[c] = -1
	}
	return h.orderOwn()
}

// insertValues adds vals to the streams of the stripe being written: as values or, with a dictionary, as codes and the
// stripe's own values.
func (w *Writer) insertValues(vals []int64) {
	if len(vals) == 0 {
		return
	}
	if h := w.builder; h != nil && h.shared > 0 {
		w.insertCodes(h.code(vals))
		return
	}
	w.insert(func() {
		w.buf = w.chooser.AppendInts(w.buf, int(Values), vals)
		w.endStream(Values)
	})
}

// insertCodes adds the streams of codes and of h.own, in the order h.order.
func (w *Writer) insertCodes(codes []int32) {
	h := w.builder
	if len(codes) == 0 {
		return
	}
	w.insert(func() {
		if len(h.own) == 0 {
			return
		}
		w.stripe.Own = uint32(len(h.own))
		h.vals = h.vals[:0]
		for _, c := range h.order {
			h.vals = append(h.vals, h.own[c])
		}
		w.buf = w.chooser.AppendInts(w.buf, ownMemory, h.vals)
		w.endStream(Values)
	})
	w.buf = w.chooser.AppendInt32s(w.buf, int(Codes), codes)
	w.endStream(Codes)
}

// insert calls add, which appends streams, so that they come before scores and starts.
func (w *Writer) insert(add func()) {
	n, at := len(w.streams), uint64(0)
	for i, s := range w.streams {
		if s.Kind > Values {
			n = i
			break
		}
		at += s.Length
	}
	behind, after := slices.Clone(w.streams[n:]), slices.Clone(w.buf[at:])
	w.streams, w.buf = w.streams[:n], w.buf[:at]
	add()
	w.streams, w.buf = append(w.streams, behind...), append(w.buf, after...)
}

// Numbers of streams for the chooser's memory, besides the StreamKinds.
const (
	ownMemory        = streamKinds + 1
	dictionaryMemory = streamKinds + 2
)

// code returns the codes of vals, and sets h.own and h.order. Borrowed.
func (h *dictionaryBuilder) code(vals []int64) []int32 {
	h.codes, h.counts = h.codes[:0], h.counts[:0]
	for _, v := range vals {
		c := h.table.add(v)
		h.codes = append(h.codes, c)
		if c -= int32(h.shared); c >= 0 {
			if int(c) == len(h.counts) {
				h.counts = append(h.counts, 0)
			}
			h.counts[c]++
		}
	}
	h.own = append(h.own[:0], h.table.keys[h.shared:]...)
	h.table.cut(h.shared)
	return h.orderOwn()
}

// orderOwn sets h.order, and changes the codes of h.own in h.codes accordingly. It returns h.codes. Borrowed.
func (h *dictionaryBuilder) orderOwn() []int32 {
	h.order = h.sorter.byFrequency(h.order[:0], h.own, h.counts)
	if len(h.own) == 0 {
		return h.codes
	}
	h.place = vector.Resize(h.place, len(h.own))
	for i, c := range h.order {
		h.place[c] = int32(h.shared + i)
	}
	for i, c := range h.codes {
		if c -= int32(h.shared); c >= 0 {
			h.codes[i] = h.place[c]
		}
	}
	return h.codes
}

// Constants of choose.
const (
	sharedMargin  = 0.95    // the cost with a dictionary must be at most this share of the cost without
	sharedBytes   = 512     // bytes that a dictionary must save
	nsOfLookUp    = 1.0     // to look up a value in a dictionary of more than nearEntries
	nearEntries   = 1 << 13 // entries that fit the L2 cache
	nsOfEntry     = 1.0     // to decode an entry
	bitsOverEntry = 2.0     // of an encoded entry, beyond the log2 of the mean gap between entries
)

// A tally counts a value in the waiting stripes.
type tally struct {
	total int32 // occurrences
	here  int32 // occurrences in the current stripe
	in    int32 // number of stripes that have it
	last  int32 // the last of them
}

// log2 is math.Log2 of a count; 0 for 0.
func log2(n int) float64 {
	if n < len(logarithms) {
		return logarithms[n]
	}
	return math.Log2(float64(n))
}

// logarithms is a table for log2.
var logarithms = func() (l [256]float64) {
	for i := 1; i < len(l); i++ {
		l[i] = math.Log2(float64(i))
	}
	return l
}()

// choose returns the values of the dictionary, as numbers in the table, in the order of the dictionary: those that
// several stripes have. It returns none if a dictionary does not lower the cost, with nsPerByte per stored byte.
func (h *dictionaryBuilder) choose(nsPerByte float64) []int32 {
	keys := h.table.keys
	if len(h.waiting) < 2 || len(keys) == 0 {
		return nil
	}
	h.tallies = vector.Resize(h.tallies, len(keys))
	clear(h.tallies)
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, k := range keys {
		low, high = min(low, uint64(k)), max(high, uint64(k))
	}
	width := float64(bits.Len64(high - low))
	entries := func(n int) float64 {
		if n == 0 {
			return 0
		}
		return float64(n) * (max(width-math.Log2(float64(n)), 0) + bitsOverEntry)
	}
	alone, decoded := 0.0, 0 // bits and entries without a dictionary
	codes, touched := h.held, h.touched
	for i := range h.waiting {
		n := h.waiting[i].values
		touched = touched[:0]
		for _, c := range codes[:n] {
			t := &h.tallies[c]
			if t.here++; t.here == 1 {
				touched = append(touched, c)
			}
		}
		bits := float64(n) * log2(n)
		for _, c := range touched {
			t := &h.tallies[c]
			bits -= float64(t.here) * log2(int(t.here))
			t.total += t.here
			t.in++
			t.last = int32(i)
			t.here = 0
		}
		own := bits + entries(len(touched))
		alone += min(own, float64(n)*width)
		if own < float64(n)*width {
			decoded += len(touched)
		}
		codes = codes[n:]
	}
	h.touched = touched
	shared := h.place[:0]
	own := make([]int, len(h.waiting))
	occurrences, ownOccurrences := 0.0, 0.0
	together := 0.0
	for c := range h.tallies {
		t := &h.tallies[c]
		n := float64(t.total)
		occurrences += n
		if t.in > 1 {
			shared = append(shared, int32(c))
			together -= n * log2(int(t.total))
		} else {
			own[t.last]++
			ownOccurrences += n
		}
	}
	h.place = shared
	if len(shared) == 0 {
		return nil
	}
	together += occurrences * math.Log2(occurrences)
	together += entries(len(shared))
	for _, k := range own {
		together += entries(k)
		if k > 0 {
			together += ownOccurrences / float64(len(own)) * math.Log2(float64(k))
		}
	}
	if ownOccurrences > 0 {
		together -= ownOccurrences * math.Log2(ownOccurrences)
	}
	before := alone/8*nsPerByte + nsOfEntry*float64(decoded)
	after := (together/8+sharedBytes)*nsPerByte + nsOfEntry*float64(len(keys))
	if len(shared) > nearEntries {
		after += nsOfLookUp * occurrences
	}
	if after > sharedMargin*before {
		return nil
	}
	h.own, h.counts = vector.Resize(h.own, len(shared)), vector.Resize(h.counts, len(shared))
	for i, c := range shared {
		h.own[i], h.counts[i] = keys[c], h.tallies[c].total
	}
	order := h.sorter.byFrequency(h.order[:0], h.own, h.counts)
	h.order = nil // borrowed by the caller
	for i, o := range order {
		order[i] = shared[o]
	}
	return order
}
