package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// When more rows of a segment are covered, its layer is written anew: with the values that it had, and the new ones.
//
//	row       0  1  2  3  4  5
//	layer     a  -  -  b  c  -        kept: covered, whatever comes
//	given     x  y  -  -  z  -
//	anew      a  y  -  b  c  -

// An oldLayer is a layer whose values go into a new one.
type oldLayer struct {
	store  *storage.Store
	rows   vector.Bitmap // that it covers, of those that are not deleted
	starts []int         // rows at which stripes start, and the end
	files  []oldFile     // of the overlay's features
}

// An oldFile is a feature of a layer; the zero value is null in every row.
type oldFile struct{ entry, group *segment.Entry }

// openOldLayer opens the layer over s.
func openOldLayer(ctx context.Context, store *storage.Store, s *baseSegment, l *catalog.OverlaySegment,
	features []catalog.Feature) (*oldLayer, error) {
	covered, err := store.Bitmaps().Read(ctx, l.Covered)
	if err != nil {
		return nil, err
	}
	k := &oldLayer{store: store, rows: bitmapOf(covered, int(s.Rows)), starts: []int{0},
		files: make([]oldFile, len(features))}
	for i := range s.dead {
		k.rows[i] &^= s.dead[i]
	}
	g, err := store.Segments().Open(ctx, l.Data)
	if err != nil {
		return nil, err
	}
	for i, n := range g.StripeRows() {
		k.starts = append(k.starts, k.starts[i]+int(n))
	}
	if end := k.starts[len(k.starts)-1]; end != int(s.Rows) {
		return nil, &format.CorruptError{Object: l.Data.Index, Stripe: -1, Offset: -1,
			Reason: fmt.Sprintf("%d rows, the segment has %d", end, s.Rows)}
	}
	find := func(id catalog.FeatureID) (*segment.Entry, error) {
		found, err := g.Lookup(ctx, id)
		if err != nil || found[0] == nil {
			return nil, err
		}
		if e := found[0]; len(e.Meta.Stripes) != len(k.starts)-1 {
			return nil, &format.CorruptError{
				Object: l.Data.Index, Feature: e.Meta.Name, Stripe: -1, Offset: -1,
				Reason: fmt.Sprintf("%d stripes, the layer has %d", len(e.Meta.Stripes), len(k.starts)-1),
			}
		}
		return found[0], nil
	}
	for i, f := range features {
		x := &k.files[i]
		if x.entry, err = find(f.ID); err == nil && x.entry != nil && x.entry.Meta.Group != 0 {
			if x.group, err = find(catalog.FeatureID(x.entry.Meta.Group)); err == nil && x.group == nil {
				err = &format.CorruptError{
					Object: l.Data.Index, Feature: f.Name, Stripe: -1, Offset: -1,
					Reason: fmt.Sprintf("its dedup group %016x is not in the layer", x.entry.Meta.Group),
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// An oldColumn is one feature of a layer, as a column of the type that is written. It holds one decoded stripe, and is
// used from one goroutine.
type oldColumn struct {
	*oldLayer
	oldFile
	typ        vector.Type
	decoder    *format.StripeDecoder
	dictionary *format.Dictionary
	raw        []byte
	stripe     int // that is decoded; -1: none
	inverse    vector.Column
	stored     vector.Column
	widened    *vector.Column
}

func (k *oldLayer) column(f int, t vector.Type) *oldColumn {
	return &oldColumn{oldLayer: k, oldFile: k.files[f], typ: t, decoder: format.NewStripeDecoder(format.Limits{}),
		stripe: -1}
}

// append appends a row of the segment. Rows are asked for in order.
func (c *oldColumn) append(ctx context.Context, dst *vector.Column, row int) error {
	if c.entry == nil {
		dst.AppendNulls(1)
		return nil
	}
	if c.stripe < 0 || row >= c.starts[c.stripe+1] {
		k := max(c.stripe, 0)
		for row >= c.starts[k+1] {
			k++
		}
		if err := c.load(ctx, k); err != nil {
			return format.Locate(err, c.entry.Object, c.entry.Meta.Name, int64(c.entry.Offset))
		}
	}
	dst.AppendRow(c.widened, row-c.starts[c.stripe])
	return nil
}

// load decodes a stripe.
func (c *oldColumn) load(ctx context.Context, k int) error {
	var inverse *vector.Column
	if c.group != nil {
		c.decoder.Use(nil)
		c.inverse.Type = c.group.Meta.Type
		if err := c.read(ctx, c.group, c.group.Meta.Stripes[k].Offset, c.group.Meta.Stripes[k].Length); err != nil {
			return err
		}
		if err := c.decoder.DecodeStripe(&c.inverse, c.group.Meta, k, c.raw, nil); err != nil {
			return err
		}
		inverse = &c.inverse
	}
	m := c.entry.Meta
	if at, length := m.Dictionary.Range(); length > 0 && c.dictionary == nil {
		if err := c.read(ctx, c.entry, at, length); err != nil {
			return err
		}
		d := new(format.Dictionary)
		if err := c.decoder.DecodeDictionary(d, m, c.raw); err != nil {
			return err
		}
		c.dictionary = d
	}
	if err := c.read(ctx, c.entry, m.Stripes[k].Offset, m.Stripes[k].Length); err != nil {
		return err
	}
	c.decoder.Use(c.dictionary)
	c.stored.Type = m.Type
	if err := c.decoder.DecodeStripe(&c.stored, m, k, c.raw, inverse); err != nil {
		return err
	}
	want := c.starts[k+1] - c.starts[k]
	if c.stored.Rows != want {
		return &format.CorruptError{Stripe: k, Offset: -1, Reason: fmt.Sprintf("%d rows, the segment has %d",
			c.stored.Rows, want)}
	}
	var err error
	if c.widened, err = vector.Convert(&c.stored, c.typ); err != nil {
		return &format.CorruptError{Stripe: -1, Offset: -1, Reason: err.Error()}
	}
	c.stripe = k
	return nil
}

// read sets raw to bytes of a feature file.
func (c *oldColumn) read(ctx context.Context, e *segment.Entry, at, length uint64) error {
	short := func() error {
		return &format.CorruptError{Object: e.Object, Stripe: -1, Offset: int64(e.Offset + at),
			Reason: "the object ends before its segment says"}
	}
	if at > e.Length || length > e.Length-at {
		return short()
	}
	blobs := c.store.Blobs()
	if length > object.LargeRead {
		switch err := object.CheckEnd(ctx, blobs, e.Object, e.Offset+at+length); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return short()
		case err != nil:
			return fmt.Errorf("size of %s: %w", e.Object, err)
		}
	}
	if uint64(cap(c.raw)) < length {
		c.raw = make([]byte, length)
	}
	c.raw = c.raw[:length]
	switch err := blobs.ReadAt(ctx, e.Object, c.raw, int64(e.Offset+at)); {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return short()
	case err != nil:
		return fmt.Errorf("read of %s at %d: %w", e.Object, e.Offset+at, err)
	}
	return nil
}

// under returns values in rows that k does not cover, and k's in those that it does. more: some rows are new.
func (k *oldLayer) under(ctx context.Context, s *baseSegment, features []catalog.Feature,
	vals values) (out values, more bool) {
	rows := int(s.Rows)
	out.covered = make(vector.Bitmap, vector.BitmapWords(rows))
	if vals.covered != nil {
		copy(out.covered, vals.covered)
	} else {
		out.covered.SetRange(0, rows)
	}
	for i, w := range out.covered {
		if s.dead != nil {
			w &^= s.dead[i]
		}
		more = more || w&^k.rows[i] != 0
		out.covered[i] = w | k.rows[i]
	}
	out.count = uint64(out.covered.Count())
	out.open = func(f int) (appender, error) {
		read, err := vals.open(f)
		if err != nil {
			return nil, err
		}
		old, row := k.column(f, features[f].Type), 0
		unread := vector.NewColumn(features[f].Type) // what is given of rows that are covered already
		return func(dst *vector.Column, n int) error {
			for ; n > 0; row++ {
				given := (s.dead == nil || !s.dead.Get(row)) && (vals.covered == nil || vals.covered.Get(row))
				switch {
				case k.rows.Get(row):
					if err := old.append(ctx, dst, row); err != nil {
						return err
					}
					n--
					if given {
						unread.Reset()
						if err := read(unread, 1); err != nil {
							return err
						}
					}
				case given:
					if err := read(dst, 1); err != nil {
						return err
					}
					n--
				}
			}
			return nil
		}, nil
	}
	return out, more
}
