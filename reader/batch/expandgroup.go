package batch

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
)

// Expand sets dst to the KJT of lists, which is t's Sparse, Weighted or Floats: one list per feature and row, in order.
// It only copies each row's list. dst's memory is reused if it is large enough and dst held the same kind before. dst
// owns its slices, except Features.
func (t *Tensors) Expand(dst, lists *Jagged) error {
	features := len(lists.Features)
	dst.Features, dst.Groups, dst.First, dst.Starts = lists.Features, nil, nil, nil
	if features == 0 {
		*dst = Jagged{Offsets: append(dst.Offsets[:0], 0), Lengths: dst.Lengths[:0]}
		return nil
	}
	rows := 0
	for k := range features {
		inverse := t.InverseOf(lists, k)
		from, to := lists.Lists(k)
		if rows = len(inverse); inverse == nil {
			rows = to - from
		}
		if k == 0 {
			dst.Lengths = vector.Resize(dst.Lengths, features*rows)
			dst.Offsets = vector.Resize(dst.Offsets, features*rows+1)
		}
		expanded := dst.Lengths[k*rows : (k+1)*rows]
		if inverse == nil {
			copy(expanded, lists.Lengths[from:to])
			continue
		}
		for b, s := range inverse {
			expanded[b] = lists.Lengths[from+int(s)]
		}
	}
	dst.Offsets[0] = 0
	copy(dst.Offsets[1:], dst.Lengths)
	if _, ok := expand.Accumulate(dst.Offsets[1:], 0); !ok {
		return fmt.Errorf("expanded lists: %d rows of %d features have more than %d values", rows, features,
			vector.MaxElements)
	}
	dst.Values = expandValues(t, dst, lists, dst.Values, lists.Values)
	dst.FloatValues = expandValues(t, dst, lists, dst.FloatValues, lists.FloatValues)
	dst.Weights = expandValues(t, dst, lists, dst.Weights, lists.Weights)
	t.expandPresence(dst, lists, rows)
	return nil
}

// InverseOf returns the inverse of the k-th feature of lists; nil: it has a list for each row. Borrowed until Release.
func (t *Tensors) InverseOf(lists *Jagged, k int) []int32 {
	if lists.Groups == nil || int(lists.Groups[k]) >= len(t.Groups) {
		return nil
	}
	return t.Groups[lists.Groups[k]].Inverse
}

// expandValues copies the list of every row.
func expandValues[T any](t *Tensors, dst, lists *Jagged, out, values []T) []T {
	if values == nil {
		return nil
	}
	out = vector.Resize(out, int(dst.Offsets[len(dst.Offsets)-1]))
	starts := lists.Starts
	if starts == nil {
		starts = lists.Offsets
	}
	at := 0
	for k := range lists.Features {
		first, end := lists.Lists(k)
		inverse := t.InverseOf(lists, k)
		rows := end - first
		if inverse != nil {
			rows = len(inverse)
		}
		for b := range rows {
			i := first + b
			if inverse != nil {
				i = first + int(inverse[b])
			}
			at += copy(out[at:], values[starts[i]:starts[i]+lists.Lengths[i]])
		}
	}
	return out
}

func (t *Tensors) expandPresence(dst, lists *Jagged, rows int) {
	if lists.Present == nil {
		dst.Present = nil
		return
	}
	words := vector.BitmapWords(rows)
	dst.Present = vector.Resize(dst.Present, len(lists.Features)*words)
	clear(dst.Present)
	for k := range lists.Features {
		from, to := lists.Lists(k)
		c := vector.Column{Rows: rows, Slots: to - from, Inverse: t.InverseOf(lists, k), Present: lists.PresentOf(k)}
		expand.PutPresence(dst.PresentOf(k), 0, &c, 0, rows)
	}
}
