package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// A KeySource is keys: of files, or given.
type KeySource struct {
	// Paths are files in any format that ingest reads, of which the column with the feature's name is read, or the only
	// one; and text with a key a line (package internal/keytext). "-" is Stdin.
	Paths []string
	// Format is one of source.Options.Format, or lines: text whose whole lines are keys. Default: for names that end in
	// .txt lines, in .csv or .tsv lines or the column of the feature's name, else what ingest finds.
	Format string
	// Given are keys without files, numbers in decimal. Default: Paths.
	Given []string
	// Feature has the keys: integers, strings or bytes. Default: the table's only request key.
	Feature string
	// Memory bounds, in bytes, the keys that are held at once. Default 256 MiB.
	Memory int64
	// Stdin is what "-" reads.
	Stdin io.Reader
}

const (
	defaultKeyMemory = 256 << 20
	// shownMissing is how many of the keys that the table does not have are named.
	shownMissing = 10
)

// A KeyReport says what became of keys. Its JSON keys are stable.
type KeyReport struct {
	Feature string `json:"feature"`
	Keys    uint64 `json:"keys"`
	// Distinct keys, and those of them that no row has that could have been meant.
	Distinct uint64 `json:"distinct"`
	Missing  uint64 `json:"missing"`
	// Examples are some of those.
	Examples []string `json:"missing_examples"`
	Passes   uint64   `json:"passes"` // over the files and the key feature
}

func (k *KeySource) validate() error {
	switch {
	case len(k.Paths) == 0 && k.Given == nil:
		return badQuery("keys: no file")
	case len(k.Paths) > 0 && k.Given != nil:
		return badQuery("keys: files, and given ones: want one of both")
	case k.Memory < 0:
		return badQuery("keys: memory of %d bytes: want 1 or more, or 0 for 256 MiB", k.Memory)
	}
	return nil
}

// String says where the keys come from.
func (k *KeySource) String() string {
	what := strings.Join(k.Paths, ", ")
	if k.Given != nil {
		what = fmt.Sprintf("%d given", len(k.Given))
	}
	if k.Feature != "" {
		what = k.Feature + " of " + what
	}
	return what
}

// feature returns the feature that has the keys.
func (k *KeySource) feature(ctx context.Context, snap *storage.Snapshot) (catalog.Feature, error) {
	name := k.Feature
	if name == "" {
		requests, err := snap.KeysOf(ctx, catalog.RoleRequestKey)
		if err != nil {
			return catalog.Feature{}, err
		}
		switch len(requests) {
		case 0:
			return catalog.Feature{}, badQuery("keys: the table has no request key: say with --key (key= in " +
				"Python) which feature has them")
		case 1:
			name = requests[0]
		default:
			return catalog.Feature{}, badQuery("keys: the table has %d request keys (%s): say with --key (key= in "+
				"Python) which of them is meant", len(requests), strings.Join(requests, ", "))
		}
	}
	found, err := snap.Lookup(ctx, name)
	if err != nil {
		return catalog.Feature{}, err
	}
	if !segment.IsLookupType(found[0].Type) {
		return catalog.Feature{}, badQuery("keys: %s is %v: want integers, strings or bytes", name, found[0].Type)
	}
	return found[0], nil
}

// find returns the rows with one of the keys in the partitions, by segment id, and the layout of all rows that were
// searched.
func (k *KeySource) find(ctx context.Context, v *storage.View, partition string,
	read reader.Options) (map[string]*roaring.Bitmap, *reader.Layout, *KeyReport, error) {
	f, err := k.feature(ctx, v.Snapshot)
	if err != nil {
		return nil, nil, nil, err
	}
	plan, err := reader.NewViewPlan(ctx, v, reader.PlanOptions{
		Features: []string{reader.Literal(f.Name)}, Partition: partition, BatchSize: 1 << 16, Dedup: reader.DedupIKJT,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	whole, err := reader.NewLayoutWith(ctx, v.Snapshot, plan, reader.LayoutOptions{View: v})
	if err != nil {
		return nil, nil, nil, err
	}
	memory := cmp.Or(k.Memory, defaultKeyMemory)
	report := &KeyReport{Feature: f.Name, Examples: []string{}}
	set := newKeySet(f.Type, memory)
	out := map[string]*roaring.Bitmap{}
	for class := uint64(0); class < set.classes; class++ {
		if class > 0 && k.once() {
			return nil, nil, nil, fmt.Errorf("keys: those of standard input or a pipe take more than %d bytes: give "+
				"a file, or more memory", memory)
		}
		set.start(class)
		err := k.Each(ctx, f, func(c *vector.Column, place func(row int) string) error {
			if class == 0 {
				report.Keys += uint64(c.Rows)
			}
			return set.addColumn(c, place)
		})
		if err != nil {
			return nil, nil, nil, err
		}
		report.Passes++
		if set.len() == 0 {
			continue
		}
		within, err := k.within(ctx, v, f, set, whole)
		layout := whole
		if err == nil && within != nil {
			layout, err = reader.NewLayoutWith(ctx, v.Snapshot, plan, reader.LayoutOptions{View: v, Within: within})
		}
		if err == nil {
			err = scanKeys(ctx, layout, read, set, out)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		report.Distinct += uint64(set.len())
		set.missing(func(key int) {
			report.Missing++
			if len(report.Examples) < shownMissing {
				report.Examples = append(report.Examples, set.show(key, f.Type))
			}
		})
	}
	return out, whole, report, nil
}

// within returns the rows that may have one of the keys, by segment, from the segments' key tables; nil: any row
// may, as no segment has such a table.
func (k *KeySource) within(ctx context.Context, v *storage.View, f catalog.Feature, set *keySet,
	layout *reader.Layout) (map[string]*roaring.Bitmap, error) {
	for _, o := range v.Overlays {
		if slices.ContainsFunc(o.Features, func(x catalog.Feature) bool { return x.ID == f.ID }) {
			return nil, nil // it has other keys than the segments
		}
	}
	var segments []catalog.SegmentDescriptor
	for _, s := range layout.Matched() {
		segments = append(segments, s.Segment)
	}
	rows, err := v.Snapshot.KeyRows(ctx, f, set.hashes(), segments)
	if err != nil {
		return nil, err
	}
	var out map[string]*roaring.Bitmap
	for i, d := range segments {
		if rows[i] != nil {
			if out == nil {
				out = map[string]*roaring.Bitmap{}
			}
			out[d.ID] = rows[i]
		}
	}
	return out, nil
}

// keyOf returns the key in a slot of a column. Borrowed.
func (s *keySet) keyOf(c *vector.Column, slot int) key {
	lo, hi := c.SlotRange(slot)
	if s.bytes {
		return key{text: c.Data[lo:hi]}
	}
	return key{int: c.Ints[lo]}
}

// addColumn adds the keys of a plain column. A null is an error that names its place.
func (s *keySet) addColumn(c *vector.Column, place func(row int) string) error {
	for row := range c.Rows {
		if c.IsNull(row) {
			return fmt.Errorf("keys: %s: the key is null: no row can be named by it", place(row))
		}
		if !s.add(s.keyOf(c, row)) {
			return fmt.Errorf("keys: memory of %d bytes is too little", s.memory)
		}
	}
	return nil
}

// scanKeys adds to out the rows of a layout, of the key feature alone and in its own order, whose key is in the set. A
// key that rows of a stripe share is looked up once.
func scanKeys(ctx context.Context, layout *reader.Layout, read reader.Options, set *keySet,
	out map[string]*roaring.Bitmap) error {
	s, err := layout.Open(read)
	if err != nil {
		return err
	}
	defer s.Close()
	at := positions{segments: layout.Matched(), out: out, at: -1}
	var hits []bool // by slot
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			at.flush()
			return nil
		}
		if err != nil {
			return err
		}
		c := b.Columns[0]
		hits = hits[:0]
		for slot := range c.Slots {
			hits = append(hits, (c.Present == nil || c.Present.Get(slot)) && set.hit(set.keyOf(c, slot)))
		}
		for row := range b.Rows {
			if hits[c.Slot(row)] {
				at.add(b.FirstRow + uint64(row))
			}
		}
		b.Release()
	}
}

// positions turns positions in a layout's order, which ascend, into rows of segments.
type positions struct {
	segments   []reader.SegmentRows
	out        map[string]*roaring.Bitmap
	at         int      // the segment that the newest position is in; -1: there is none
	first, end uint64   // its positions
	rows       []uint32 // of the segment, by position; nil: they are the positions
	pending    []uint32
}

func (p *positions) add(position uint64) {
	for position >= p.end {
		p.flush()
		p.at++
		r := p.segments[p.at]
		p.first, p.end, p.rows = p.end, p.end+r.Count(), nil
		if r.Rows != nil && position < p.end {
			p.rows = r.Rows.ToArray()
		}
	}
	row := uint32(position - p.first)
	if p.rows != nil {
		row = p.rows[row]
	}
	p.pending = append(p.pending, row)
}

// flush adds the rows of the segment that p is at.
func (p *positions) flush() {
	if len(p.pending) == 0 {
		return
	}
	id := p.segments[p.at].Segment.ID
	if p.out[id] == nil {
		p.out[id] = roaring.New()
	}
	p.out[id].AddMany(p.pending)
	p.pending = p.pending[:0]
}
