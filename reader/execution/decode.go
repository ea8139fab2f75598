package execution

import (
	"context"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
)

// A DecodeTask is items [Lo, Hi) of a stripe whose I/O task has been read.
type DecodeTask struct {
	Stripe *ioplan.Stripe
	Lo, Hi int
}

// DecodeStripes decodes stripes whose I/O tasks have been read, on at most workers goroutines.
func (x *Executor) DecodeStripes(ctx context.Context, stripes []*ioplan.Stripe, workers int) error {
	var tasks []DecodeTask
	for _, s := range stripes {
		items, per := len(s.Segment.Items), 1
		if workers == 1 {
			per = max(items, 1)
		}
		for lo := 0; lo < items; lo += per {
			tasks = append(tasks, DecodeTask{s, lo, lo + per})
		}
	}
	return Parallel(len(tasks), workers, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := x.Decode(tasks[i])
		return err
	})
}

// Decode decodes the items of a task. It stops at the first error: i is the item, err its error.
func (x *Executor) Decode(t DecodeTask) (i int, err error) {
	defer metering.Since(time.Now(), &x.Stats.Decode)
	w := x.scratches.Get()
	defer x.scratches.Put(w)
	s := t.Stripe
	var rows, slots uint64
	for i = t.Lo; i < t.Hi; i++ {
		it := &s.Segment.Items[i]
		var n uint64
		if n, err = x.decodeItem(w, s, it); err != nil {
			break
		}
		if n > 0 {
			slots += n
			rows += uint64(len(it.Features) * s.DecodedRows())
		}
	}
	x.Stats.DecodedRows.Add(rows)
	x.Stats.DecodedSlots.Add(slots)
	return i, err
}

// decodeItem decodes the features of an item, transforms and gathers them, and returns how many slots they have.
func (x *Executor) decodeItem(w *scratch, s *ioplan.Stripe, it *ioplan.Item) (slots uint64, err error) {
	g := s.Segment
	gathers := s.Gathered && !s.RowSelected
	var gather gatherer
	if it.Parts != nil {
		slots, err := x.decodeMerged(w, s, it, s.RowsAlone())
		if err != nil || !gathers {
			return slots, err
		}
		for _, f := range it.Features {
			if c := s.Columns[f]; c != nil {
				gather.gather(x, s, c)
			}
		}
		return slots, nil
	}
	var inverse *vector.Column
	switch {
	case it.Inverse >= 0 && s.RowSelected:
		f := &g.Files[it.Inverse]
		src, at := s.Task.Bytes(it.Inverse, s.Index)
		if err := w.decoder.SelectRows(&w.group, f.Entry.Meta, s.Index, src, s.Selected); err != nil {
			return 0, f.Locate(err, at)
		}
	case it.Inverse >= 0:
		inv := x.inverse()
		s.KeepInverse(inv)
		if err := x.decodeFile(w.decoder, s, it.Inverse, inv, nil, nil, nil); err != nil {
			return 0, err
		}
		inverse = inv.Column
	}
	for _, f := range it.Features {
		c := x.column(f)
		s.Columns[f] = c
		t := x.src.Transforms[f]
		if plan.IsWeight(x.src.Features[f]) {
			var rows []int32
			if s.Gathered {
				rows = s.Selected
			}
			c.Weigh(g.Weighted, x.src.Weight, g.First[s.Index], s.ColumnRows(), rows)
			continue
		}
		if g.FeatureFile[f] < 0 {
			if err := c.Missing(t, x.zeros.Get(s.ColumnRows())); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.src.Features[f].Name, err)
			}
			continue
		}
		if err := x.decodeFile(w.decoder, s, g.FeatureFile[f], c, s.RowsAlone(), inverse, &w.group); err != nil {
			return 0, err
		}
		if x.Sessions && f == x.src.SessionKey {
			s.FindSessions(c.Column)
		}
		slots += uint64(c.Column.Slots)
		if t != nil {
			if err := c.Transform(t); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.src.Features[f].Name, err)
			}
		}
		if gathers {
			gather.gather(x, s, c)
		}
	}
	return slots, nil
}

// decodeFile decodes a stripe of a feature file, or some rows of it (nil: all), and widens it to the type that is read.
// For a feature of a group, inverse is the group's inverse or, with rows, group is its selection.
func (x *Executor) decodeFile(d *format.StripeDecoder, s *ioplan.Stripe, fileIndex int32, c *ioplan.Decoded,
	rows []int32, inverse *vector.Column, group *format.Selection) error {
	f := &s.Segment.Files[fileIndex]
	src, at := s.Task.Bytes(fileIndex, s.Index)
	c.Stored.Type = f.Entry.Meta.Type
	d.Use(s.Segment.Dictionaries.Of(fileIndex))
	var err error
	want := len(rows)
	if rows != nil {
		err = d.DecodeRows(&c.Stored, f.Entry.Meta, s.Index, src, rows, group)
	} else {
		want = s.Segment.StoredRows(s.Index)
		err = d.DecodeStripe(&c.Stored, f.Entry.Meta, s.Index, src, inverse)
	}
	if err != nil {
		return f.Locate(err, at)
	}
	if c.Stored.Rows != want {
		return &format.CorruptError{
			Object: f.Entry.Object, Feature: f.Feature, Stripe: s.Index, Offset: int64(at),
			Reason: fmt.Sprintf("%d rows, the segment has %d", c.Stored.Rows, want),
		}
	}
	c.Widen(f.Want)
	return nil
}
