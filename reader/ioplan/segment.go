package ioplan

import (
	"errors"
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// A Segment is a segment with the feature files that a plan reads of it. The files are checked against each other, so
// that later code can trust their offsets. Only Dictionaries and Sharing change.
type Segment struct {
	ID     string
	Starts []uint64 // row of the plan's own order at which each stripe starts, and the end
	First  []uint64 // row of the segment at which each stripe starts, and the end
	// Selected are the rows of the segment that the plan reads; nil: all. Stripes without such rows are in no I/O task.
	Selected *roaring.Bitmap
	// Files are the files of the layout's features that the segment has, then the inverses of their groups.
	Files []File
	// Items are the units of decoding in a stripe. An item's inverse, if it has one, is decoded before its features.
	Items []Item
	// FeatureFile is the position in Files of each feature that the layout reads; -1: null in every row, or a partition
	// key.
	FeatureFile []int32
	// Merged are the items that have parts.
	Merged []int32
	// Owners and Shared are the features of each file: see SetOwners.
	Owners []int32
	Shared [][]int32
	// Weighted are the rows with the layout's weight; nil: the plan has no weights.
	Weighted *roaring.Bitmap
	// Dictionaries are those of Files; nil: no file has one.
	Dictionaries *Dictionaries
	Partition    catalog.Partition
	Sharing      atomic.Pointer[Sharing] // computed when first needed
}

// A File is one feature file of a segment.
type File struct {
	Entry   *segment.Entry
	Feature string // its name, for errors
	Want    vector.Type
	// Stripes are those in which it is needed; nil: all.
	Stripes vector.Bitmap
	gaps    bool // its stripes are not contiguous
	// Transforms are applied to the column of type Want; nil: none.
	Transforms *transform.Program
}

// An Item is a feature in no group, or all features of a group that are read, or a feature that the segment does not
// have and whose transforms fill null.
type Item struct {
	Inverse  int32   // in files, or -1
	Features []int32 // positions in Layout.features
	// Parts are the sources of the rows if there are several (an overlay merge, see package execution). The parts then
	// have the inverses.
	Parts []ItemPart
	// Grouped: all parts with files are in groups, so that the features share an inverse after merging.
	Grouped bool
}

// An ItemPart is some rows of an item's features. The parts of an item are disjoint and together have all rows.
type ItemPart struct {
	Rows    *roaring.Bitmap // of the segment
	Stripes vector.Bitmap   // those that have some of them
	Inverse int32           // in files, or -1
	Files   []int32         // of each feature, in files; -1: null
}

// Cumulate returns the rows of a segment at which its stripes start, and its end.
func Cumulate(d catalog.SegmentDescriptor, stripeRows []uint32) ([]uint64, error) {
	starts := make([]uint64, 1, len(stripeRows)+1)
	sum := uint64(0)
	for i, r := range stripeRows {
		if r == 0 || r > format.MaxStripeRows {
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

// AddFile appends a feature file. It returns ErrCorrupt unless the file is within its object, its stripes follow each
// other in the file, they have the segment's rows, and its type widens to want.
func (g *Segment) AddFile(d catalog.SegmentDescriptor, e *segment.Entry, name string, want vector.Type) error {
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
	if len(m.Stripes) != len(g.Starts)-1 {
		return bad(-1, "%d stripes, the segment has %d", len(m.Stripes), len(g.Starts)-1)
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
		if int(s.Rows) != g.StoredRows(i) {
			return bad(i, "%d rows, the segment has %d", s.Rows, g.StoredRows(i))
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
	g.Files = append(g.Files, File{Entry: e, Feature: name, Want: want, gaps: gaps})
	return nil
}

// NeededIn reports whether the file is needed in stripe i.
func (f *File) NeededIn(i int) bool { return f.Stripes == nil || f.Stripes.Get(i) }

// DecodedBytes estimates the memory of decoded stripe i, in all files.
func (g *Segment) DecodedBytes(i int) uint64 {
	n := uint64(0)
	for j := range g.Files {
		if f := &g.Files[j]; f.NeededIn(i) {
			n += f.decodedBytes(i)
		}
	}
	return n + g.mergedBytes(i)
}

// GatheredBytes estimates the memory of gathering the selected rows of stripe i: an inverse of these rows for each
// inverse.
func (g *Segment) GatheredBytes(i int) uint64 {
	rows := g.Starts[i+1] - g.Starts[i]
	if rows == uint64(g.StoredRows(i)) {
		return 0
	}
	n := uint64(0)
	for k := range g.Items {
		it := &g.Items[k]
		some := it.Inverse >= 0 || it.Parts != nil
		for _, f := range it.Features {
			if file := g.FeatureFile[f]; !some && file >= 0 {
				s := &g.Files[file].Entry.Meta.Stripes[i]
				some = s.Slots != s.Rows
			}
		}
		if some {
			n += 4 * rows
		}
	}
	return n
}

// Stripes returns how many stripes the segment has.
func (g *Segment) Stripes() int { return len(g.Starts) - 1 }

// StripesOf returns the stripes [from, to) that hold the rows [first, end) of the plan's order; first lies in g.
func (g *Segment) StripesOf(first, end uint64) (from, to int) {
	n := g.Stripes()
	from = sort.Search(n, func(i int) bool { return g.Starts[i+1] > first })
	to = sort.Search(n, func(i int) bool { return g.Starts[i] >= end })
	return from, to
}

// decodedBytes estimates the memory of a decoded stripe of a feature file.
func (f *File) decodedBytes(i int) uint64 {
	s := &f.Entry.Meta.Stripes[i]
	t := f.Want
	var n uint64
	if t.IsList() {
		n = s.Elements*uint64(t.ValueBytes()) + 4*uint64(s.Slots)
		if f.Entry.Meta.Type != t {
			n += s.Elements * uint64(f.Entry.Meta.Type.ValueBytes())
		}
	} else {
		n = uint64(s.Slots) * uint64(t.Width()) * uint64(t.ValueBytes())
	}
	if f.Transforms != nil {
		n += f.Transforms.ExtraBytes(s.Elements, uint64(s.Slots))
	}
	n += uint64(s.Slots) / 8
	if s.Slots != s.Rows || t.Kind == vector.Inverse {
		n += 4 * uint64(s.Rows)
	}
	return n
}

// Shares reports whether so many rows of stripe i, decoded alone, would take more memory than the whole stripe: if rows
// share values, as repeats and partial duplicates do.
func (g *Segment) Shares(i, rows int) bool {
	whole, alone := 0.0, 0.0
	for j := range g.Files {
		w, a := g.Files[j].sharing(i, rows)
		whole, alone = whole+w, alone+a
	}
	return alone > whole
}

// Shares is Segment.Shares for the features of a part.
func (p *ItemPart) Shares(g *Segment, i, rows int) bool {
	whole, alone := 0.0, 0.0
	for _, j := range p.Files {
		if j >= 0 {
			w, a := g.Files[j].sharing(i, rows)
			whole, alone = whole+w, alone+a
		}
	}
	return alone > whole
}

// sharing estimates the memory of stripe i decoded whole, and of so many rows that are decoded alone.
func (f *File) sharing(i, rows int) (whole, alone float64) {
	if !f.NeededIn(i) {
		return 0, 0
	}
	s, t := &f.Entry.Meta.Stripes[i], f.Want
	values := float64(t.Width() * t.ValueBytes())
	if t.IsList() {
		values = float64(s.Stats.Elements)/float64(s.Rows)*float64(t.ValueBytes()) + 4
	}
	return float64(f.decodedBytes(i)), float64(rows) * values
}

// ReadBytes estimates what stripes [from, to) take, stored and decoded, with the segment's dictionaries.
func (g *Segment) ReadBytes(from, to int) uint64 {
	var n uint64
	for j := range g.Files {
		for i := from; i < to; i++ {
			if g.Files[j].NeededIn(i) {
				n += g.Files[j].Entry.Meta.Stripes[i].Length
			}
		}
		_, length := g.Files[j].Entry.Meta.Dictionary.Range()
		n += length
	}
	for i := from; i < to; i++ {
		n += g.DecodedBytes(i) + g.GatheredBytes(i)
	}
	if g.Dictionaries != nil {
		n += uint64(g.Dictionaries.Bytes)
	}
	return n
}

// HasInverse reports whether an item may have an inverse in any stripe. It returns true for merged items.
func (g *Segment) HasInverse(it *Item) bool {
	if it.Parts != nil {
		return true
	}
	file := it.Inverse
	if file < 0 {
		file = g.FeatureFile[it.Features[0]]
	}
	stripes := g.Files[file].Entry.Meta.Stripes
	for i := range stripes {
		if stripes[i].Slots != stripes[i].Rows {
			return true
		}
		for _, x := range stripes[i].Streams {
			switch x.Kind {
			case format.InverseRuns, format.InverseChanges, format.InverseCodes:
				return true
			}
		}
	}
	return false
}

// Locate adds the object, the feature's name and the offset in the object to a decoder's error.
func (f *File) Locate(err error, at uint64) error {
	var c *format.CorruptError
	if errors.As(err, &c) && c.Offset < 0 {
		d := *c
		d.Offset = int64(at - f.Entry.Offset)
		err = &d
	}
	return format.Locate(err, f.Entry.Object, f.Feature, int64(f.Entry.Offset))
}

// A Sharing says which features of a scan share inverses in a segment. Segments with the same sharing have the same
// *Sharing. It is immutable.
type Sharing struct {
	ID uint64 // unique in the process
	// Numbers is for each of groupings.features the number of its inverse: see package batch.
	Numbers []int32
}
