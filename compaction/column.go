package compaction

import (
	"context"
	"fmt"
	"sort"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/segment"
)

// A column is the writer.RewriteColumn of a feature of an input. The value of a row comes from the first source that
// covers the row. A column holds one decoded stripe of each source.
type column struct {
	ctx     context.Context // of the one Run that the column is read for
	fetch   *fetcher
	typ     vector.Type
	starts  []int           // first row of each stripe, and the number of rows
	sources []sourceColumn  // the highest first
	within  *roaring.Bitmap // eachStripe skips stripes without a row of it; nil: skips none
}

// A sourceColumn is a source and its stripe that was decoded last.
type sourceColumn struct {
	source
	stripe     int // -1: none
	memory     *stripeMemory
	dictionary *format.Dictionary // decoded; nil: not yet, or the feature has none
	widened    *vector.Column     // the stripe, converted to the column's type
}

// A stripeMemory is the pooled memory for decoding a stripe.
type stripeMemory struct {
	decoder *format.StripeDecoder
	raw     []byte
	column  vector.Column
	inverse vector.Column
}

var stripeMemories = sync.Pool{New: func() any {
	return &stripeMemory{decoder: format.NewStripeDecoder(format.Limits{})}
}}

// newColumn returns a column of a feature of type t. starts is startsOf the input's stripes.
func newColumn(ctx context.Context, fetch *fetcher, t vector.Type, starts []int, sources []source) *column {
	c := &column{ctx: ctx, fetch: fetch, typ: t, starts: starts}
	for _, s := range sources {
		c.sources = append(c.sources, sourceColumn{source: s, stripe: -1})
	}
	return c
}

// startsOf returns the first row of each stripe, and the number of all rows. stripes are rows per stripe.
func startsOf(stripes []uint32) []int {
	out := make([]int, 1, len(stripes)+1)
	for i, n := range stripes {
		out = append(out, out[i]+int(n))
	}
	return out
}

func (c *column) Close() {
	for i := range c.sources {
		s := &c.sources[i]
		if s.memory != nil {
			stripeMemories.Put(s.memory)
		}
		s.memory, s.widened, s.dictionary, s.stripe = nil, nil, nil, -1
	}
}

// MayHave reports, from the stripes' statistics, whether a row of [lo, hi) may be not null.
func (c *column) MayHave(lo, hi int) bool {
	for i := range c.sources {
		e := c.sources[i].entry
		if e == nil {
			continue
		}
		for k := c.stripeOf(lo); k < len(e.Meta.Stripes) && c.starts[k] < hi; k++ {
			if e.Meta.Stripes[k].Stats.NullRows < uint64(e.Meta.Stripes[k].Rows) {
				return true
			}
		}
	}
	return false
}

// stripeOf returns the stripe of a row.
func (c *column) stripeOf(row int) int {
	return sort.Search(len(c.starts)-1, func(i int) bool { return c.starts[i+1] > row })
}

// Append appends rows [lo, hi) to dst.
func (c *column) Append(dst *vector.Column, lo, hi int) error { return c.append(dst, 0, lo, hi) }

// append is Append without the sources before first.
func (c *column) append(dst *vector.Column, first, lo, hi int) error {
	if first == len(c.sources) {
		dst.AppendNulls(hi - lo)
		return nil
	}
	s := &c.sources[first]
	if s.covered == nil {
		return c.appendStripes(dst, s, lo, hi)
	}
	for lo < hi {
		covers := s.covered.Contains(uint32(lo))
		to := lo + 1
		for to < hi && s.covered.Contains(uint32(to)) == covers {
			to++
		}
		var err error
		if covers {
			err = c.appendStripes(dst, s, lo, to)
		} else {
			err = c.append(dst, first+1, lo, to)
		}
		if err != nil {
			return err
		}
		lo = to
	}
	return nil
}

// appendStripes appends rows of one source.
func (c *column) appendStripes(dst *vector.Column, s *sourceColumn, lo, hi int) error {
	if s.entry == nil {
		dst.AppendNulls(hi - lo)
		return nil
	}
	for lo < hi {
		k := c.stripeOf(lo)
		if k != s.stripe {
			if err := c.load(s, k); err != nil {
				return format.Locate(err, s.entry.Object, s.entry.Meta.Name, int64(s.entry.Offset))
			}
		}
		to := min(hi, c.starts[k+1])
		if n := int64(dst.Elements()) + expandedElements(s.widened, lo-c.starts[k],
			to-c.starts[k]); n > vector.MaxElements {
			return fmt.Errorf("feature %q: %d rows hold more than %d values: use smaller stripes", s.entry.Meta.Name,
				to-lo, vector.MaxElements)
		}
		dst.AppendRows(s.widened, lo-c.starts[k], to-c.starts[k])
		lo = to
	}
	return nil
}

// expandedElements returns how many values rows [lo, hi) of c have.
func expandedElements(c *vector.Column, lo, hi int) (n int64) {
	if !c.Type.IsList() {
		return int64(hi-lo) * int64(c.Type.Width())
	}
	for r := lo; r < hi; r++ {
		from, to := c.RowRange(r)
		n += int64(to - from)
	}
	return n
}

// load decodes stripe k of a source.
func (c *column) load(s *sourceColumn, k int) error {
	if s.memory == nil {
		s.memory = stripeMemories.Get().(*stripeMemory)
	}
	m := s.memory
	s.stripe = -1
	var inverse *vector.Column
	m.decoder.Use(nil)
	if s.entry.Meta.Group != 0 {
		if s.group == nil {
			return &format.CorruptError{Stripe: -1, Offset: -1,
				Reason: fmt.Sprintf("its dedup group %016x is not in the segment", s.entry.Meta.Group)}
		}
		if err := c.decode(m, &m.inverse, s.group, k, nil); err != nil {
			return err
		}
		inverse = &m.inverse
	}
	if at, length := s.entry.Meta.Dictionary.Range(); length > 0 && s.dictionary == nil {
		raw, err := c.fetch.get(c.ctx, m.raw[:0], s.entry.Object, s.entry.ObjectSize, s.entry.Offset+at, length)
		if err != nil {
			return err
		}
		m.raw, s.dictionary = raw, new(format.Dictionary)
		if err := m.decoder.DecodeDictionary(s.dictionary, s.entry.Meta, raw); err != nil {
			return err
		}
	}
	m.decoder.Use(s.dictionary)
	err := c.decode(m, &m.column, s.entry, k, inverse)
	m.decoder.Use(nil)
	if err != nil {
		return err
	}
	if s.widened, err = vector.Convert(&m.column, c.typ); err != nil {
		return &format.CorruptError{Stripe: -1, Offset: -1, Reason: err.Error()}
	}
	s.stripe = k
	return nil
}

// decode decodes stripe k of a feature file.
func (c *column) decode(m *stripeMemory, dst *vector.Column, e *segment.Entry, k int,
	inverse *vector.Column) (err error) {
	st := &e.Meta.Stripes[k]
	if m.raw, err = c.fetch.get(c.ctx, m.raw[:0], e.Object, e.ObjectSize, e.Offset+st.Offset, st.Length); err != nil {
		return err
	}
	dst.Type = e.Meta.Type
	return m.decoder.DecodeStripe(dst, e.Meta, k, m.raw, inverse)
}

// eachStripe calls visit with each decoded stripe of a column of one source that has rows of within, and its first row.
// The stripe is borrowed for the call.
func (c *column) eachStripe(visit func(first int, stripe *vector.Column) error) error {
	s := &c.sources[0]
	if s.entry == nil {
		return nil
	}
	for k := range s.entry.Meta.Stripes {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if c.within != nil && !c.within.IntersectsWithInterval(uint64(c.starts[k]), uint64(c.starts[k+1])) {
			continue
		}
		if err := c.load(s, k); err != nil {
			return format.Locate(err, s.entry.Object, s.entry.Meta.Name, int64(s.entry.Offset))
		}
		if err := visit(c.starts[k], s.widened); err != nil {
			return err
		}
	}
	return nil
}

// present reports whether a slot is not null.
func present(c *vector.Column, slot int) bool { return c.Present == nil || c.Present.Get(slot) }
