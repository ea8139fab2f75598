package format

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// appendInverse appends the streams of c.Inverse: none if each row has its own slot or all rows share one. c has rows.
func (w *Writer) appendInverse(c *vector.Column) {
	if c.Inverse == nil || c.Slots == 1 || isIdentity(c) {
		return
	}
	monotone := w.findRuns(c.Inverse, c.Slots)
	if len(w.runs) != c.Rows {
		w.appendRuns(c.Rows)
		if !monotone {
			w.stripe.Runs = uint32(len(w.runs))
		}
	}
	if monotone {
		return
	}
	next := int32(0)
	for i, s := range w.codes {
		w.codes[i] = next - s
		next = max(next, s+1)
	}
	w.buf = w.chooser.AppendInt32s(w.buf, int(InverseCodes), w.codes)
	w.endStream(InverseCodes)
}

func isIdentity(c *vector.Column) bool {
	if c.Slots != c.Rows {
		return false
	}
	for row, s := range c.Inverse {
		if int(s) != row {
			return false
		}
	}
	return true
}

// findRuns sets w.runs, w.codes (the slot of each run) and w.changes, and reports whether the inverse is monotone.
func (w *Writer) findRuns(inverse []int32, slots int) (monotone bool) {
	w.runs, w.codes = w.runs[:0], w.codes[:0]
	w.changes = w.changes[:0].Grow(len(inverse))
	monotone = inverse[0] == 0
	start := 0
	for row := 1; row < len(inverse); row++ {
		if inverse[row] == inverse[row-1] {
			continue
		}
		monotone = monotone && inverse[row] == inverse[row-1]+1
		w.runs = append(w.runs, int32(row-start))
		w.codes = append(w.codes, inverse[start])
		w.changes.Set(row)
		start = row
	}
	w.runs = append(w.runs, int32(len(inverse)-start))
	w.codes = append(w.codes, inverse[start])
	return monotone && int(inverse[start]) == slots-1
}

// appendRuns appends the runs as lengths or as changes, whichever is smaller.
func (w *Writer) appendRuns(rows int) {
	start := len(w.buf)
	w.buf = w.chooser.AppendInt32s(w.buf, int(InverseRuns), w.runs)
	w.alt = w.chooser.AppendBits(w.alt[:0], int(InverseChanges), w.changes, rows)
	if len(w.alt) < len(w.buf)-start {
		w.buf = append(w.buf[:start], w.alt...)
		w.endStream(InverseChanges)
		return
	}
	w.endStream(InverseRuns)
}

// decodeInverse decodes the inverse of stripe s, which passed check, into dst.
func (d *StripeDecoder) decodeInverse(dst *vector.Column, s *StripeMeta) error {
	runs, changes, codes := d.chunks[InverseRuns], d.chunks[InverseChanges], d.chunks[InverseCodes]
	if runs == nil && changes == nil && codes == nil {
		if s.Slots == s.Rows {
			d.dropInverse(dst)
			return nil
		}
		d.makeInverse(dst)
		clear(dst.Inverse)
		dst.Monotone = true
		return nil
	}
	d.makeInverse(dst)
	dst.Monotone = codes == nil
	n := int(s.Runs)
	switch {
	case codes == nil:
		n = int(s.Slots)
	case runs == nil && changes == nil:
		n = int(s.Rows)
	}
	var slots []int32 // of each run; nil: the run's number is its slot
	if codes != nil {
		if runs == nil && changes == nil {
			return d.decodeSlots(dst.Inverse, codes, int(s.Slots))
		}
		d.codes = vector.Resize(d.codes, n)
		slots = d.codes
		if err := d.decodeSlots(slots, codes, int(s.Slots)); err != nil {
			return err
		}
	}
	if runs != nil {
		d.runs = vector.Resize(d.runs, n)
		if err := d.codec.Int32s(d.runs, runs); err != nil {
			return d.fail(InverseRuns, err)
		}
		if err := fillRuns(dst.Inverse, d.runs, slots); err != nil {
			return d.fail(InverseRuns, err)
		}
		return nil
	}
	d.changes = vector.Resize(d.changes, vector.BitmapWords(dst.Rows))
	if err := d.codec.Bits(d.changes, dst.Rows, changes); err != nil {
		return d.fail(InverseChanges, err)
	}
	if err := fillChanges(dst.Inverse, d.changes, n); err != nil {
		return d.fail(InverseChanges, err)
	}
	if slots != nil {
		for row, run := range dst.Inverse {
			dst.Inverse[row] = slots[run]
		}
	}
	return nil
}

// decodeSlots decodes the codes of runs to slots. A code is n-slot, where n is the number of slots used so far.
func (d *StripeDecoder) decodeSlots(dst []int32, codes []byte, slots int) error {
	if err := d.codec.Int32s(dst, codes); err != nil {
		return d.fail(InverseCodes, err)
	}
	next := int64(0)
	for i, c := range dst {
		slot := next - int64(c)
		if slot < 0 || slot >= int64(slots) {
			return d.fail(InverseCodes, fmt.Errorf("run %d has slot %d of %d", i, slot, slots))
		}
		dst[i] = int32(slot)
		next = max(next, slot+1)
	}
	return nil
}

// fillRunsFallback sets each row of inverse to slots[run] or, without slots, to run, where run is the run of the row
// and runs are the lengths of runs. It starts with run first, at row. Hot: fillRuns uses AVX2 if there is.
func fillRunsFallback(inverse, runs, slots []int32, first, row int) error {
	for i, n := range runs[first:] {
		i += first
		if n <= 0 || int(n) > len(inverse)-row {
			return fmt.Errorf("run %d of %d rows at row %d of %d", i, n, row, len(inverse))
		}
		slot := int32(i)
		if slots != nil {
			slot = slots[i]
		}
		part := inverse[row : row+int(n)]
		for j := range part {
			part[j] = slot
		}
		row += int(n)
	}
	if row != len(inverse) {
		return fmt.Errorf("runs hold %d rows of %d", row, len(inverse))
	}
	return nil
}

// fillChanges is fillRuns for changes, which must have n runs.
func fillChanges(inverse []int32, changes vector.Bitmap, n int) error {
	if r := len(inverse) & 63; r != 0 {
		changes[len(changes)-1] &= 1<<r - 1
	}
	if changes.Get(0) {
		return fmt.Errorf("row 0 changes")
	}
	if got := changes.Count() + 1; got != n {
		return fmt.Errorf("changes make %d runs, want %d", got, n)
	}
	fillChangeBits(inverse, changes)
	return nil
}

// fillChangeBitsFallback sets each row of inverse to run plus the number of changes up to and including the row. Hot:
// fillChangeBits uses AVX2 if there is.
func fillChangeBitsFallback(inverse []int32, changes vector.Bitmap, run int32) {
	for i := 0; i < len(inverse); i += 64 {
		word := changes[i>>6]
		part := inverse[i:min(i+64, len(inverse))]
		if word == 0 {
			for j := range part {
				part[j] = run
			}
			continue
		}
		for j := range part {
			run += int32(word >> j & 1)
			part[j] = run
		}
	}
}
