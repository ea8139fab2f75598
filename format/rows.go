package format

import (
	"fmt"
	"math/bits"

	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// A Selection is a list of rows of a stripe, with their slots. The features of a group share one. The zero Selection is
// ready for SelectRows; its memory is reused.
//
//	inverse of the stripe   0 0 1 2 2 2 3
//	rows                      ^   ^ ^   ^       slots 0 2 3   inverse 0 1 1 2
type Selection struct {
	stripeRows, stripeSlots int
	rows                    int
	slots                   []int32 // slots of the rows, in order, without repeating the slot of the row before
	inverse                 []int32 // by row: position in slots
}

// add appends a row of that slot.
func (x *Selection) add(slot int32) {
	if k := len(x.slots); k == 0 || x.slots[k-1] != slot {
		x.slots = append(x.slots, slot)
	}
	x.inverse = append(x.inverse, int32(len(x.slots)-1))
}

// SelectRows sets x to rows of stripe i of a group's inverse file. rows ascend. m, i, src and errors are as in
// DecodeStripe.
func (d *StripeDecoder) SelectRows(x *Selection, m *FileMeta, i int, src []byte, rows []int32) error {
	defer clear(d.chunks[:])
	s, err := d.begin(m, i, src)
	if err != nil {
		return err
	}
	return d.selectRows(x, s, rows)
}

// DecodeRows is DecodeStripe for some rows of stripe i: row j of dst is row rows[j] of the stripe. rows ascend. It
// decodes only what these rows need, as far as the codecs allow. For a feature of a group, group is the result of
// SelectRows with the group's stripe and the same rows; otherwise it is ignored. Unlike after DecodeStripe, dst borrows
// nothing, has no Lengths, and has only slots of its rows. Wrong bytes with a right checksum are found only if these
// rows need them.
func (d *StripeDecoder) DecodeRows(dst *vector.Column, m *FileMeta, i int, src []byte, rows []int32,
	group *Selection) error {
	return d.end(dst, m, d.decodeRows(dst, m, i, src, rows, group))
}

// begin checks stripe i of m and its checksums, and sets d.chunks.
func (d *StripeDecoder) begin(m *FileMeta, i int, src []byte) (*StripeMeta, error) {
	s := &m.Stripes[i]
	d.stripe = i
	if reason := m.check(s, d.limits); reason != "" {
		return nil, &CorruptError{Stripe: i, Offset: -1, Reason: reason}
	}
	return s, splitStripe(&d.chunks, &d.offsets, m, i, src)
}

func (d *StripeDecoder) decodeRows(dst *vector.Column, m *FileMeta, i int, src []byte, rows []int32,
	group *Selection) error {
	s, err := d.begin(m, i, src)
	if err != nil {
		return err
	}
	x := group
	if m.Group == 0 {
		x = &d.selection
		if err := d.selectRows(x, s, rows); err != nil {
			return err
		}
	} else if err := d.checkGroup(x, s, rows); err != nil {
		return err
	}
	if d.spans == nil {
		d.spans = []encoding.Span{}
	}
	empty(dst, m.Type, x.rows, len(x.slots))
	d.dropInverse(dst)
	d.dropLengths(dst)
	if len(x.slots) != x.rows {
		dst.Monotone = true
		d.makeInverse(dst)
		copy(dst.Inverse, x.inverse)
	}
	if err := d.selectPresent(dst, s, x.slots); err != nil {
		return err
	}
	if m.Type.IsList() {
		n, err := d.rangesOf(dst, s)
		if err != nil {
			return err
		}
		return d.decodeElements(dst, m, s, n, d.spans, d.compact)
	}
	width := int32(dst.Type.Width())
	d.spans = d.spans[:0]
	for _, k := range d.positions {
		d.addSpan(k*width, (k+1)*width)
	}
	return d.decodeFixed(dst, m, s, len(d.positions)*int(width), d.spans)
}

func (d *StripeDecoder) checkGroup(x *Selection, s *StripeMeta, rows []int32) error {
	if x == nil {
		return fmt.Errorf("stripe %d: the feature is in a dedup group: call SelectRows on the group's stripe first "+
			"and pass the Selection", d.stripe)
	}
	if x.stripeRows != int(s.Rows) || x.stripeSlots != int(s.Slots) || x.rows != len(rows) {
		return &CorruptError{Stripe: d.stripe, Offset: int64(s.Offset),
			Reason: fmt.Sprintf("%d rows of %d slots, but the group has %d rows of %d slots",
				s.Rows, s.Slots, x.stripeRows, x.stripeSlots)}
	}
	return nil
}

// selectRows is SelectRows after begin.
func (d *StripeDecoder) selectRows(x *Selection, s *StripeMeta, rows []int32) error {
	x.stripeRows, x.stripeSlots, x.rows = int(s.Rows), int(s.Slots), len(rows)
	x.slots, x.inverse = x.slots[:0], x.inverse[:0]
	for j, r := range rows {
		if r < 0 || r >= int32(s.Rows) || j > 0 && r <= rows[j-1] {
			return fmt.Errorf("stripe %d: row %d at position %d: want ascending rows below %d", d.stripe, r, j, s.Rows)
		}
	}
	runs, changes, codes := d.chunks[InverseRuns], d.chunks[InverseChanges], d.chunks[InverseCodes]
	n := int(s.Runs)
	switch {
	case runs == nil && changes == nil && codes == nil:
		for _, r := range rows {
			if s.Slots != s.Rows {
				r = 0
			}
			x.add(r)
		}
		return nil
	case codes == nil:
		n = int(s.Slots)
	case runs == nil && changes == nil:
		n = int(s.Rows)
	}
	// Find the run of each row.
	d.positions = vector.Resize(d.positions, len(rows))
	switch {
	case runs != nil:
		if err := d.runsOf(rows, n, int(s.Rows)); err != nil {
			return d.fail(InverseRuns, err)
		}
	case changes != nil:
		if err := d.changesOf(rows, n, int(s.Rows)); err != nil {
			return d.fail(InverseChanges, err)
		}
	default:
		copy(d.positions, rows)
	}
	if codes == nil {
		for _, run := range d.positions {
			x.add(run)
		}
		return nil
	}
	d.codes = vector.Resize(d.codes, n)
	if err := d.decodeSlots(d.codes, codes, int(s.Slots)); err != nil {
		return err
	}
	for _, run := range d.positions {
		x.add(d.codes[run])
	}
	return nil
}

// runsOf sets d.positions to the run of each of rows, from the lengths of n runs of all rows.
func (d *StripeDecoder) runsOf(rows []int32, n, all int) error {
	d.runs = vector.Resize(d.runs, n)
	if err := d.codec.Int32s(d.runs, d.chunks[InverseRuns]); err != nil {
		return err
	}
	end, j := 0, 0
	for i, length := range d.runs {
		if length <= 0 || int(length) > all-end {
			return fmt.Errorf("run %d of %d rows at row %d of %d", i, length, end, all)
		}
		end += int(length)
		for ; j < len(rows) && int(rows[j]) < end; j++ {
			d.positions[j] = int32(i)
		}
	}
	if end != all {
		return fmt.Errorf("runs hold %d rows of %d", end, all)
	}
	return nil
}

// changesOf is runsOf for changes, which must have n runs.
func (d *StripeDecoder) changesOf(rows []int32, n, all int) error {
	d.changes = vector.Resize(d.changes, vector.BitmapWords(all))
	if err := d.codec.Bits(d.changes, all, d.chunks[InverseChanges]); err != nil {
		return err
	}
	if d.changes.Get(0) {
		return fmt.Errorf("row 0 changes")
	}
	j, before := 0, 0
	for i, word := range d.changes {
		for ; j < len(rows) && int(rows[j])>>6 == i; j++ {
			upTo := word << (63 - uint(rows[j])&63) // the bits of the word up to the row's
			d.positions[j] = int32(before + bits.OnesCount64(upTo))
		}
		before += bits.OnesCount64(word)
	}
	if before+1 != n {
		return fmt.Errorf("changes make %d runs, want %d", before+1, n)
	}
	return nil
}

// selectPresent sets dst.Present for the slots, nil if all are present, and d.positions to the position of each present
// one among the present slots of the stripe.
func (d *StripeDecoder) selectPresent(dst *vector.Column, s *StripeMeta, slots []int32) error {
	if cap(dst.Present) > cap(d.sparePresent) {
		d.sparePresent = dst.Present
	}
	dst.Present = nil
	d.positions = append(d.positions[:0], slots...)
	if s.Present == s.Slots {
		return nil
	}
	present := vector.Resize(d.sparePresent, vector.BitmapWords(len(slots)))
	d.sparePresent = nil
	clear(present)
	if s.Present == 0 {
		dst.Present, d.positions = present, d.positions[:0]
		return nil
	}
	d.presence = vector.Resize(d.presence, vector.BitmapWords(int(s.Slots)))
	if err := d.presenceBits(d.presence, s); err != nil {
		return err
	}
	d.ranks = vector.Resize(d.ranks, len(d.presence))
	n := int32(0)
	for i, word := range d.presence {
		d.ranks[i] = n
		n += int32(bits.OnesCount64(word))
	}
	k := 0
	for j, slot := range slots {
		word, bit := d.presence[slot>>6], uint(slot)&63
		if word>>bit&1 == 0 {
			continue
		}
		present.Set(j)
		d.positions[k] = d.ranks[slot>>6] + int32(bits.OnesCount64(word&(1<<bit-1)))
		k++
	}
	d.positions = d.positions[:k]
	if k == len(slots) {
		d.sparePresent = present
		return nil
	}
	dst.Present = present
	return nil
}

// addSpan appends values [from, to) to the spans to decode.
func (d *StripeDecoder) addSpan(from, to int32) {
	if k := len(d.spans) - 1; k >= 0 && d.spans[k].To == from {
		d.spans[k].To = to
		return
	}
	if from < to {
		d.spans = append(d.spans, encoding.Span{From: from, To: to})
	}
}

// rangesOf sets dst.Offsets, and d.spans to the lists of the present slots, and returns how many values these have. It
// also sets d.compact to the offsets of the strings of the values stream.
func (d *StripeDecoder) rangesOf(dst *vector.Column, s *StripeMeta) (int, error) {
	d.spans = d.spans[:0]
	dst.Offsets = vector.Resize(dst.Offsets, dst.Slots+1)
	dst.Offsets[0] = 0
	d.compact = append(d.compact[:0], 0)
	if s.Present == 0 {
		clear(dst.Offsets)
		return 0, nil
	}
	partial := d.chunks[Starts] != nil
	if partial {
		n := len(d.positions)
		d.runs, d.codes = vector.Resize(d.runs, n), vector.Resize(d.codes, n)
		for _, k := range d.positions {
			d.addSpan(k, k+1)
		}
		if err := d.decodeSlices(d.codes, d.runs, s, d.spans); err != nil {
			return 0, err
		}
		d.spans = d.spans[:0]
	} else {
		d.compact = vector.Resize(d.compact, int(s.Present)+1)
		if err := d.decodeEnds(d.compact, s); err != nil {
			return 0, err
		}
	}
	sum, k := int64(0), 0
	for j := range dst.Slots {
		if dst.Present == nil || dst.Present.Get(j) {
			var from, to int32
			if partial {
				from = d.runs[k]
				to = from + d.codes[k]
			} else {
				from, to = d.compact[d.positions[k]], d.compact[d.positions[k]+1]
			}
			k++
			sum += int64(to - from)
			d.addSpan(from, to)
		}
		if most := min(vector.MaxElements, int64(d.limits.StripeBytes)/int64(dst.Type.ValueBytes())); sum > most {
			return 0, fmt.Errorf("stripe %d: the lists of %d rows have more than %d values: ask for fewer rows",
				d.stripe, dst.Rows, most)
		}
		dst.Offsets[j+1] = int32(sum)
	}
	if partial {
		d.compact = append(d.compact, int32(s.Elements))
	}
	return int(sum), nil
}
