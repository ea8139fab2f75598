package reader

import (
	"fmt"
	"math"
	"sort"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
)

// A segment is one segment put against a plan: the feature files that it reads, checked against each other, so that
// whatever follows may trust their offsets. Nothing but its dictionaries changes.
type segment struct {
	id     string
	starts []uint64 // row of the plan's own order at which each stripe starts, and the end
	first  []uint64 // row of the segment at which each stripe starts, and the end
	// selected are the rows of the segment that the plan reads; nil: all. Those without any are in no unit.
	selected *roaring.Bitmap
	// files are what is read: those of the layout's features that the segment has, then the inverses of their groups.
	files []file
	// items are the units of decoding in a stripe. An item's inverse, when it has one, is decoded before its features.
	items []item
	// featureFile is the place in files of each feature that the layout reads, or -1: null in every row, or a partition key.
	featureFile []int32
	// blends are the items that have parts.
	blends []int32
	// owners and shared say whose bytes the files have: see setOwners.
	owners []int32
	shared [][]int32
	// weighted are the rows with the layout's weight; nil: the plan has no weights.
	weighted *roaring.Bitmap
	// dictionaries are those of files, nil when none has one.
	dictionaries *dictionaries
	partition    storage.Partition
	sharing      atomic.Pointer[sharing] // found when first asked for
}

// A file is one feature file of a segment.
type file struct {
	entry   *storage.FeatureEntry
	feature string // its name for messages
	want    vector.Type
	// stripes are those that it is needed in; nil: all.
	stripes vector.Bitmap
	gaps    bool // there is something between its stripes
	// transforms come after want; nil: none.
	transforms *transform.Program
}

// An item is a feature without a group, or a group with all its features that are read, or a feature that the segment does
// not have and whose transforms fill null.
type item struct {
	inverse  int32   // in files, or -1
	features []int32 // places in Layout.features
	// parts are where the rows come from when that is more than one place: see blend.go. They have the inverses then.
	parts []itemPart
	// grouped: all parts with files are of groups, and so are the features, which then share an inverse.
	grouped bool
}

// An itemPart is some rows of an item's features; the parts of an item have different ones, and together all.
type itemPart struct {
	rows    *roaring.Bitmap // of the segment
	stripes vector.Bitmap   // those that have some of them
	inverse int32           // in files, or -1
	files   []int32         // of each feature, in files; -1: null
}

// cumulate returns the rows of a segment at which its stripes start, and its end.
func cumulate(d storage.SegmentDescriptor, stripeRows []uint32) ([]uint64, error) {
	starts := make([]uint64, 1, len(stripeRows)+1)
	sum := uint64(0)
	for i, r := range stripeRows {
		if r == 0 || r > math.MaxInt32 {
			return nil, &format.CorruptError{
				Object: d.Index, Stripe: i, Offset: -1, Reason: fmt.Sprintf("the stripe has %d rows", r),
			}
		}
		sum += uint64(r)
		starts = append(starts, sum)
	}
	if sum != d.Rows {
		return nil, &format.CorruptError{
			Object: d.Index, Stripe: -1, Offset: -1,
			Reason: fmt.Sprintf("the stripes have %d rows, the segment %d", sum, d.Rows),
		}
	}
	return starts, nil
}

// addFile appends a feature file after checking that it lies in its object, its stripes in it one after the other, and
// that it has the segment's stripes and a type that widens to want.
func (g *segment) addFile(d storage.SegmentDescriptor, e *storage.FeatureEntry, name string, want vector.Type) error {
	bad := func(stripe int, why string, args ...any) error {
		return &format.CorruptError{
			Object: d.Index, Feature: name, Stripe: stripe, Offset: -1, Reason: fmt.Sprintf(why, args...),
		}
	}
	if e.Meta == nil {
		return bad(-1, "no directory")
	}
	if e.Length > e.ObjectSize || e.Offset > e.ObjectSize-e.Length {
		return bad(-1, "bytes %d+%d lie past the end, %d, of %s", e.Offset, e.Length, e.ObjectSize, e.Object)
	}
	m := e.Meta
	if len(m.Stripes) != len(g.starts)-1 {
		return bad(-1, "%d stripes, the segment has %d", len(m.Stripes), len(g.starts)-1)
	}
	at, gaps := uint64(0), false
	if start, length := m.Dictionary.Range(); length > 0 {
		if length > e.Length || start > e.Length-length {
			return bad(-1, "the dictionary's bytes %d+%d do not lie in %d", start, length, e.Length)
		}
		at = start + length
	}
	for i := range m.Stripes {
		s := &m.Stripes[i]
		if int(s.Rows) != g.storedRows(i) {
			return bad(i, "%d rows, the segment has %d", s.Rows, g.storedRows(i))
		}
		if s.Offset < at || s.Length > e.Length || s.Offset > e.Length-s.Length {
			return bad(i, "bytes %d+%d do not lie between %d and %d", s.Offset, s.Length, at, e.Length)
		}
		gaps = gaps || i > 0 && s.Offset > at
		at = s.Offset + s.Length
	}
	if w, err := vector.Widen(m.Type, want); err != nil || w != want {
		return bad(-1, "type %v does not widen to the schema's %v", m.Type, want)
	}
	g.files = append(g.files, file{entry: e, feature: name, want: want, gaps: gaps})
	return nil
}

// neededIn reports whether the file is needed in stripe i.
func (f *file) neededIn(i int) bool { return f.stripes == nil || f.stripes.Get(i) }

// decodedBytes estimates the memory of stripe i of all that is read.
func (g *segment) decodedBytes(i int) uint64 {
	n := uint64(0)
	for j := range g.files {
		if f := &g.files[j]; f.neededIn(i) {
			n += f.decodedBytes(i)
		}
	}
	return n + g.blendedBytes(i)
}

// gatheredBytes estimates the memory of the inverses of the selected rows of stripe i, which condensing gathers: one for each inverse.
func (g *segment) gatheredBytes(i int) uint64 {
	rows := g.starts[i+1] - g.starts[i]
	if rows == uint64(g.storedRows(i)) {
		return 0
	}
	n := uint64(0)
	for k := range g.items {
		it := &g.items[k]
		some := it.inverse >= 0 || it.parts != nil
		for _, f := range it.features {
			if file := g.featureFile[f]; !some && file >= 0 {
				s := &g.files[file].entry.Meta.Stripes[i]
				some = s.Slots != s.Rows
			}
		}
		if some {
			n += 4 * rows
		}
	}
	return n
}

// stripes returns how many stripes the segment has.
func (g *segment) stripes() int { return len(g.starts) - 1 }

// stripesOf returns the stripes [from, to) that hold the rows [first, end) of the plan's order; first lies in g.
func (g *segment) stripesOf(first, end uint64) (from, to int) {
	n := g.stripes()
	from = sort.Search(n, func(i int) bool { return g.starts[i+1] > first })
	to = sort.Search(n, func(i int) bool { return g.starts[i] >= end })
	return from, to
}

// decodedBytes estimates the memory of a decoded stripe of a feature file.
func (f *file) decodedBytes(i int) uint64 {
	s := &f.entry.Meta.Stripes[i]
	t := f.want
	var n uint64
	if t.IsList() {
		n = s.Elements*uint64(t.ValueBytes()) + 4*uint64(s.Slots)
		if f.entry.Meta.Type != t {
			n += s.Elements * uint64(f.entry.Meta.Type.ValueBytes())
		}
	} else {
		n = uint64(s.Slots) * uint64(t.Width()) * uint64(t.ValueBytes())
	}
	if f.transforms != nil {
		n += f.transforms.ExtraBytes(s.Elements, uint64(s.Slots))
	}
	n += uint64(s.Slots) / 8
	if s.Slots != s.Rows || t.Kind == vector.Inverse {
		n += 4 * uint64(s.Rows)
	}
	return n
}
