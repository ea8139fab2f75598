package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// segmentsAtOnce is how many indexes are read at once.
const segmentsAtOnce = 4

// statusOverlay is the status of features that only overlays have, which are not merged.
const statusOverlay = "overlay"

// A feature is what the directories say of one, added up.
type feature struct {
	catalog.Feature
	status string // "", deprecated, dropped, or overlay

	segments, rows, nulls, elements, raw, stored uint64
	slots, storedElements, partial, found        uint64
	layers                                       uint64 // bytes of its files in layers of overlays
	chain                                        chain
	inverse                                      uint64 // bytes of its own inverses
	distinct                                     distinct

	last  int // index of the last segment that has it
	group catalog.FeatureID
	first firstStripe // of that segment; only where encodings are asked for
}

// A firstStripe is where the first stripe with values is, to look at its encodings.
type firstStripe struct {
	object string
	offset uint64
	// streams are nil where there is none.
	streams []format.StreamMeta
}

// A distinct bounds how many different values files have.
type distinct struct {
	least    uint64
	sum      uint64 // of what the files have at most
	unknown  bool   // sum leaves a file out, which does not say how many it has
	bounded  bool
	min, max int64 // of integers
}

// A group is features that share one inverse.
type group struct {
	name         string
	members      []catalog.FeatureID // of the last segment
	last         int
	segments     uint64
	bytes, saved uint64
}

// A segmentFacts is what a report needs of one segment, besides its features.
type segmentFacts struct {
	d            catalog.SegmentDescriptor
	deleted      uint64
	objects      []segment.Object
	droppedBytes uint64 // of features that no reader sees
	frames       uint64 // bytes of headers, directories, indexes
	stripes      uint64
}

// A collector adds up directories. Safe for concurrent use while segments are read.
type collector struct {
	mu       sync.Mutex // guards what follows
	byID     map[catalog.FeatureID]*feature
	order    []*feature
	groups   map[catalog.FeatureID]*group
	segments []segmentFacts
	total    chain
	raw      uint64
	layout   []place // of the largest segment, in no order
	gap      uint64  // the largest between files that readers fetch with one request

	encodings func(catalog.FeatureID) bool // whose encodings are asked for; nil: none
	largest   int
	schema    map[catalog.FeatureID]bool // features that readers see
}

// A place is where a feature file is.
type place struct {
	feature        catalog.FeatureID
	group          catalog.FeatureID
	object         string
	offset, length uint64
}

// newCollector returns a collector of the features of a schema.
func newCollector(features []catalog.Feature) *collector {
	c := &collector{byID: map[catalog.FeatureID]*feature{}, groups: map[catalog.FeatureID]*group{},
		schema: map[catalog.FeatureID]bool{}}
	for _, f := range features {
		status := ""
		if f.Status != catalog.FeatureActive {
			status = f.Status.String()
		}
		c.schema[f.ID] = f.Status != catalog.FeatureDropped
		c.feature(f, status)
	}
	return c
}

// feature returns the entry of a feature, a new one where there is none. The caller has the lock, or the collector
// alone.
func (c *collector) feature(f catalog.Feature, status string) *feature {
	if known := c.byID[f.ID]; known != nil {
		return known
	}
	out := &feature{Feature: f, status: status, last: -1}
	c.byID[f.ID] = out
	c.order = append(c.order, out)
	return out
}

// read goes through the indexes of all segments.
func (c *collector) read(ctx context.Context, s *storage.Store, segments []catalog.SegmentDescriptor,
	deleted []bitmap.Ref) error {
	c.gap = uint64(object.Gap(s.Blobs()))
	c.segments = make([]segmentFacts, len(segments))
	for i, d := range segments {
		c.segments[i] = segmentFacts{d: d, deleted: deleted[i].Count}
		if d.Bytes > segments[c.largest].Bytes {
			c.largest = i
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(segmentsAtOnce)
	for i := range segments {
		g.Go(func() error { return c.segment(ctx, s, i) })
	}
	return g.Wait()
}

// segment goes through one index.
func (c *collector) segment(ctx context.Context, s *storage.Store, at int) error {
	d := c.segments[at].d
	g, err := s.Segments().Open(ctx, d)
	if err != nil {
		return err
	}
	objects, err := g.Objects(ctx)
	if err != nil {
		return err
	}
	w := walk{c: c, at: at, groups: map[catalog.FeatureID]*members{}}
	if err := g.Each(ctx, w.entry); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, x := range w.groups {
		if !x.known {
			return &format.CorruptError{Object: d.Index, Feature: x.members[0].f.Name, Stripe: -1, Offset: -1,
				Reason: fmt.Sprintf("its group's inverse %016x is not in the segment", uint64(id))}
		}
		for _, m := range x.members {
			w.divide(x, m)
		}
		c.group(id, x, at)
	}
	// What is in no feature file: the index, the key table, and the packs' own bytes.
	w.total.frames -= int64(d.Bytes - w.files)
	c.total.add(w.total)
	c.raw += w.raw
	f := &c.segments[at]
	f.objects, f.droppedBytes = objects, w.droppedBytes
	f.frames, f.stripes = uint64(max(-w.total.frames, 0)), uint64(len(g.StripeRows()))
	return nil
}

// A walk goes through the entries of a segment.
type walk struct {
	c      *collector
	at     int
	groups map[catalog.FeatureID]*members

	total        chain
	raw, files   uint64
	droppedBytes uint64 // of features that no reader sees
}

// A members is a group of the segment.
type members struct {
	known   bool // the inverse was met
	name    string
	repeats []repeat
	bytes   uint64 // of its streams
	members []member
}

// A member is a feature of a group, and the bytes that its values repeat in each stripe.
type member struct {
	f        *feature
	repeated []int64
}

func (w *walk) membersOf(id catalog.FeatureID) *members {
	x := w.groups[id]
	if x == nil {
		x = new(members)
		w.groups[id] = x
	}
	return x
}

// entry takes an entry. It keeps nothing of it but, in a feature of a group, a number per stripe: the inverse may come
// later.
func (w *walk) entry(e *segment.Entry) error {
	m, id := e.Meta, catalog.FeatureID(e.Meta.Feature)
	chain := chainOf(m, e.Length)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.raw += chain.raw
	w.files += e.Length
	if w.at == w.c.largest {
		w.c.layout = append(w.c.layout, place{id, catalog.FeatureID(m.Group), e.Object, e.Offset, e.Length})
	}
	if isInverse(m) {
		w.inverse(id, m, chain)
		return nil
	}
	f := w.c.byID[id]
	if f == nil { // dropped, and its name taken by another
		f = w.c.feature(catalog.Feature{ID: id, Name: m.Name, Type: m.Type, Status: catalog.FeatureDropped},
			catalog.FeatureDropped.String())
	}
	if !w.c.schema[id] {
		w.droppedBytes += e.Length
	}
	f.add(m, e.Length)
	f.chain.add(chain.chain)
	f.inverse += uint64(-chain.inverses)
	w.total.add(chain.chain)
	if w.at > f.last {
		f.last, f.group = w.at, catalog.FeatureID(m.Group)
		if w.c.encodings != nil && w.c.encodings(id) {
			f.first = firstStripeOf(e)
		}
	}
	if m.Group != 0 {
		x := w.membersOf(catalog.FeatureID(m.Group))
		x.members = append(x.members, member{f, chain.repeated})
	}
	return nil
}

// inverse takes the inverse of a group.
func (w *walk) inverse(id catalog.FeatureID, m *format.FileMeta, chain fileChain) {
	x := w.membersOf(id)
	x.known, x.name, x.bytes = true, segment.GroupName(m), uint64(-chain.inverses)
	for i := range m.Stripes {
		x.repeats = append(x.repeats, repeatOf(&m.Stripes[i]))
	}
	// What is of the inverse is added when it is known how many share it.
	chain.inverses = 0
	w.total.add(chain.chain)
}

// divide says which of a feature's repeated values the group's runs save, and which its slots.
func (w *walk) divide(x *members, m member) {
	var c chain
	for i, bytes := range m.repeated {
		c.divide(x.repeats[i], bytes)
	}
	m.f.chain.add(c)
	w.total.add(c)
}

// group adds a group of a segment. The caller has the lock.
func (c *collector) group(id catalog.FeatureID, x *members, at int) {
	g := c.groups[id]
	if g == nil {
		g = &group{last: -1}
		c.groups[id] = g
	}
	others := uint64(max(len(x.members), 1) - 1)
	g.segments++
	g.bytes += x.bytes
	g.saved += others * x.bytes
	c.total.inverses -= int64((others + 1) * x.bytes)
	c.total.groups += int64(others * x.bytes)
	if at > g.last {
		g.last, g.name, g.members = at, x.name, g.members[:0]
		for _, m := range x.members {
			g.members = append(g.members, m.f.ID)
		}
	}
}

// add adds a feature file.
func (f *feature) add(m *format.FileMeta, length uint64) {
	f.segments++
	f.rows += m.Rows
	f.nulls += m.Stats.NullRows
	f.elements += m.Stats.Elements
	f.raw += m.Stats.RawBytes
	f.stored += length
	f.partial += m.Found.Partial
	f.found += m.Found.SavedBytes
	for i := range m.Stripes {
		f.slots += uint64(m.Stripes[i].Slots)
		f.storedElements += m.Stripes[i].Elements
	}
	f.distinct.add(m)
}

// add widens the bounds by those of a file.
func (d *distinct) add(m *format.FileMeta) {
	if m.Stats.HasMinMax && m.Type.Elem.IsInteger() {
		lo, hi := m.Stats.MinInt, m.Stats.MaxInt
		switch {
		case !d.bounded:
			d.bounded, d.min, d.max = true, lo, hi
		case m.Type.Elem == vector.Uint64:
			d.min, d.max = int64(min(uint64(d.min), uint64(lo))), int64(max(uint64(d.max), uint64(hi)))
		default:
			d.min, d.max = min(d.min, lo), max(d.max, hi)
		}
	}
	dictionary, own, most := uint64(m.Dictionary.Values), uint64(0), uint64(0)
	for i := range m.Stripes {
		s := &m.Stripes[i]
		switch {
		case s.Elements == 0:
		case slices.ContainsFunc(s.Streams, func(f format.StreamMeta) bool { return f.Kind == format.Codes }):
			own, most = own+uint64(s.Own), max(most, uint64(s.Own))
		default:
			d.unknown = true
		}
	}
	d.least = max(d.least, dictionary+most)
	d.sum += dictionary + own
}

// bounds returns what is known, nil where that is nothing.
func (d *distinct) bounds(t vector.Type, elements uint64) *Distinct {
	out := Distinct{AtLeast: d.least}
	most, known := uint64(math.MaxUint64), false
	if !d.unknown && elements > 0 {
		most, known = d.sum, true
	}
	if d.bounded && t.Elem.IsInteger() {
		// Bounds of dense features are exact, those of lists are rounded outward.
		if n := uint64(d.max) - uint64(d.min); n < math.MaxUint64 {
			most, known = min(most, n+1), true
		}
		if t.Kind == vector.Dense {
			out.AtLeast = max(out.AtLeast, 1)
			if d.max != d.min {
				out.AtLeast = max(out.AtLeast, 2)
			}
		}
	}
	most = min(most, elements) // a wide range holds no more than there are values
	if known && most < 1<<40 { // more says nothing
		out.AtMost = &most
	}
	if out.AtLeast == 0 && out.AtMost == nil {
		return nil
	}
	return &out
}

// firstStripeOf returns where the first stripe with streams is.
func firstStripeOf(e *segment.Entry) firstStripe {
	for i := range e.Meta.Stripes {
		if s := &e.Meta.Stripes[i]; len(s.Streams) > 0 {
			return firstStripe{e.Object, e.Offset + s.Offset, s.Streams}
		}
	}
	return firstStripe{}
}

// groupName returns the name of the group that a feature is in, in the last segment that has it.
func (c *collector) groupName(f *feature) string {
	if g := c.groups[f.group]; g != nil {
		return g.name
	}
	return ""
}

// sorted puts features in name order, those of the schema before dropped ones of the same name.
func (c *collector) sorted() {
	slices.SortStableFunc(c.order, func(a, b *feature) int {
		if n := strings.Compare(a.Name, b.Name); n != 0 {
			return n
		}
		return strings.Compare(a.status, b.status)
	})
}
