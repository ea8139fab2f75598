package reader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/plan"
)

// A decodeTask is items [lo, hi) of a stripe whose unit is read.
type decodeTask struct {
	stripe *load.Stripe
	lo, hi int
}

// groupSelections are memory for the rows of a group's stripe that are decoded alone.
var groupSelections = sync.Pool{New: func() any { return new(format.Selection) }}

// decodeStripes decodes stripes whose units are read, on at most so many goroutines.
func (x *executor) decodeStripes(ctx context.Context, stripes []*load.Stripe, workers int) error {
	var tasks []decodeTask
	for _, s := range stripes {
		if workers == 1 {
			tasks = append(tasks, decodeTask{s, 0, len(s.Segment.Items)})
			continue
		}
		for i := range s.Segment.Items {
			tasks = append(tasks, decodeTask{s, i, i + 1})
		}
	}
	errs := make([]error, len(tasks))
	var next atomic.Int64
	work := func() {
		d := x.decoder()
		defer x.decoders.put(d)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(tasks) {
				return
			}
			if _, errs[i] = x.decode(d, tasks[i]); errs[i] != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for range min(workers, len(tasks)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if err := firstError(errs); err != nil {
		return err
	}
	return ctx.Err()
}

// decode decodes the items of a task up to the first that it cannot decode: err is the error of item i.
func (x *executor) decode(d *format.StripeDecoder, t decodeTask) (i int, err error) {
	start := time.Now()
	s := t.stripe
	var group *format.Selection
	if s.Sparse {
		group = groupSelections.Get().(*format.Selection)
		defer groupSelections.Put(group)
	}
	var rows, slots uint64
	for i = t.lo; i < t.hi; i++ {
		it := &s.Segment.Items[i]
		var n uint64
		if n, err = x.decodeItem(d, group, s, it); err != nil {
			break
		}
		if n > 0 {
			slots += n
			rows += uint64(len(it.Features) * s.DecodedRows())
		}
	}
	x.stats.decodedRows.Add(rows)
	x.stats.decodedSlots.Add(slots)
	x.stats.decode.Add(int64(time.Since(start)))
	return i, err
}

// decodeItem decodes the features of an item, transforms and gathers them, and returns how many slots they have. group is scratch memory, of
// stripes that are sparse.
func (x *executor) decodeItem(d *format.StripeDecoder, group *format.Selection, s *load.Stripe, it *load.Item) (slots uint64, err error) {
	g := s.Segment
	gathers := s.Gathered && !s.Sparse
	var gather gatherer
	if it.Parts != nil {
		slots, err := x.decodeBlended(d, s, it, s.RowsAlone())
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
	case it.Inverse >= 0 && s.Sparse:
		f := &g.Files[it.Inverse]
		src, at := s.Task.Bytes(it.Inverse, s.Index)
		if err := d.SelectRows(group, f.Entry.Meta, s.Index, src, s.Picked); err != nil {
			return 0, f.Locate(err, at)
		}
	case it.Inverse >= 0:
		inv := x.inverse()
		s.KeepInverse(inv)
		if err := x.decodeFile(d, s, it.Inverse, inv, nil, nil, nil); err != nil {
			return 0, err
		}
		inverse = inv.Column
	}
	for _, f := range it.Features {
		c := x.column(f)
		s.Columns[f] = c
		t := x.layout.transformers[f]
		if plan.IsWeight(x.layout.features[f]) {
			var rows []int32
			if s.Gathered {
				rows = s.Picked
			}
			c.Weigh(g.Weighted, x.layout.weight, g.First[s.Index], s.ColumnRows(), rows)
			continue
		}
		if g.FeatureFile[f] < 0 {
			if err := c.Missing(t, x.zeros.Get(s.ColumnRows())); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.layout.features[f].Name, err)
			}
			continue
		}
		if err := x.decodeFile(d, s, g.FeatureFile[f], c, s.RowsAlone(), inverse, group); err != nil {
			return 0, err
		}
		if x.sessions && f == x.layout.sessionKey {
			s.FindSessions(c.Column)
		}
		slots += uint64(c.Column.Slots)
		if t != nil {
			if err := c.Transform(t); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.layout.features[f].Name, err)
			}
		}
		if gathers {
			gather.gather(x, s, c)
		}
	}
	return slots, nil
}

// decodeFile decodes the stripe of one feature file, or rows of it, and widens it to the type that is read. inverse, or group for rows, is that
// of its group.
func (x *executor) decodeFile(d *format.StripeDecoder, s *load.Stripe, fileIndex int32, c *load.Decoded, rows []int32,
	inverse *vector.Column, group *format.Selection) error {
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
