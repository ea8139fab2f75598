package reader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/reader/plan"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A decodeTask is items [lo, hi) of a stripe whose unit is read.
type decodeTask struct {
	stripe *stripe
	lo, hi int
}

// groupSelections are memory for the rows of a group's stripe that are decoded alone.
var groupSelections = sync.Pool{New: func() any { return new(format.Selection) }}

// decodeStripes decodes stripes whose units are read, on at most so many goroutines.
func (x *executor) decodeStripes(ctx context.Context, stripes []*stripe, workers int) error {
	var tasks []decodeTask
	for _, s := range stripes {
		if workers == 1 {
			tasks = append(tasks, decodeTask{s, 0, len(s.segment.items)})
			continue
		}
		for i := range s.segment.items {
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
	if s.sparse {
		group = groupSelections.Get().(*format.Selection)
		defer groupSelections.Put(group)
	}
	var rows, slots uint64
	for i = t.lo; i < t.hi; i++ {
		it := &s.segment.items[i]
		var n uint64
		if n, err = x.decodeItem(d, group, s, it); err != nil {
			break
		}
		if n > 0 {
			slots += n
			rows += uint64(len(it.features) * s.decodedRows())
		}
	}
	x.stats.decodedRows.Add(rows)
	x.stats.decodedSlots.Add(slots)
	x.stats.decode.Add(int64(time.Since(start)))
	return i, err
}

// decodeItem decodes the features of an item, transforms and condenses them, and returns how many slots they have. group is scratch memory, of
// stripes that are sparse.
func (x *executor) decodeItem(d *format.StripeDecoder, group *format.Selection, s *stripe, it *item) (slots uint64, err error) {
	g := s.segment
	gathers := s.condensed && !s.sparse
	var gather condenser
	if it.parts != nil {
		slots, err := x.decodeBlended(d, s, it, s.rowsAlone())
		if err != nil || !gathers {
			return slots, err
		}
		for _, f := range it.features {
			if c := s.columns[f]; c != nil {
				gather.condense(x, s, c)
			}
		}
		return slots, nil
	}
	var inverse *vector.Column
	switch {
	case it.inverse >= 0 && s.sparse:
		f := &g.files[it.inverse]
		src, at := s.unit.bytes(it.inverse, s.index)
		if err := d.SelectRows(group, f.entry.Meta, s.index, src, s.picked); err != nil {
			return 0, f.locate(err, at)
		}
	case it.inverse >= 0:
		inv := x.inverse()
		s.keepInverse(inv)
		if err := x.decodeFile(d, s, it.inverse, inv, nil, nil, nil); err != nil {
			return 0, err
		}
		inverse = inv.column
	}
	for _, f := range it.features {
		c := x.column(f)
		s.columns[f] = c
		t := x.layout.transformers[f]
		if plan.IsWeight(x.layout.features[f]) {
			var rows []int32
			if s.condensed {
				rows = s.picked
			}
			c.weigh(g.weighted, x.layout.weight, g.first[s.index], s.columnRows(), rows)
			continue
		}
		if g.featureFile[f] < 0 {
			if err := c.missing(t, x.zeros.get(s.columnRows())); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.layout.features[f].Name, err)
			}
			continue
		}
		if err := x.decodeFile(d, s, g.featureFile[f], c, s.rowsAlone(), inverse, group); err != nil {
			return 0, err
		}
		if x.sessions && f == x.layout.sessionKey {
			s.findSessions(c.column)
		}
		slots += uint64(c.column.Slots)
		if t != nil {
			if err := c.transform(t); err != nil {
				return 0, fmt.Errorf("feature %q: %w", x.layout.features[f].Name, err)
			}
		}
		if gathers {
			gather.condense(x, s, c)
		}
	}
	return slots, nil
}

// decodeFile decodes the stripe of one feature file, or rows of it, and widens it to the type that is read. inverse, or group for rows, is that
// of its group.
func (x *executor) decodeFile(d *format.StripeDecoder, s *stripe, fileIndex int32, c *decoded, rows []int32,
	inverse *vector.Column, group *format.Selection) error {
	f := &s.segment.files[fileIndex]
	src, at := s.unit.bytes(fileIndex, s.index)
	c.stored.Type = f.entry.Meta.Type
	d.Use(s.segment.dictionaries.of(fileIndex))
	var err error
	want := len(rows)
	if rows != nil {
		err = d.DecodeRows(&c.stored, f.entry.Meta, s.index, src, rows, group)
	} else {
		want = s.segment.storedRows(s.index)
		err = d.DecodeStripe(&c.stored, f.entry.Meta, s.index, src, inverse)
	}
	if err != nil {
		return f.locate(err, at)
	}
	if c.stored.Rows != want {
		return &format.CorruptError{
			Object: f.entry.Object, Feature: f.feature, Stripe: s.index, Offset: int64(at),
			Reason: fmt.Sprintf("%d rows, the segment has %d", c.stored.Rows, want),
		}
	}
	c.widen(f.want)
	return nil
}

// locate adds what a decoder does not know to its error: the object, the feature's name and the offset in the object.
func (f *file) locate(err error, at uint64) error {
	var c *format.CorruptError
	if errors.As(err, &c) && c.Offset < 0 {
		d := *c
		d.Offset = int64(at - f.entry.Offset)
		err = &d
	}
	return format.Locate(err, f.entry.Object, f.feature, int64(f.entry.Offset))
}
