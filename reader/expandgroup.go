package reader

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// Expand makes dst the KJT of j's lists: list (f, b) of dst is list (f, inverse[b]) of j, for each entry b of inverse. It is
// one copy a row and nothing else. With the Inverse of a Group and a Jagged of that group, dst has its rows; a nil inverse
// leaves the lists as they are, laid out one after the other. dst's memory is used again where it is large enough and dst
// held the same kind; what it held is lost. dst owns its slices, except Features, and shares none with j.
func (j *Jagged) Expand(dst *Jagged, inverse []int32) error {
	features := len(j.Features)
	dst.Features, dst.Starts = j.Features, nil
	if features == 0 {
		*dst = Jagged{Offsets: append(dst.Offsets[:0], 0), Lengths: dst.Lengths[:0]}
		return nil
	}
	slots := len(j.Lengths) / features
	rows := len(inverse)
	if inverse == nil {
		rows = slots
	}
	dst.Lengths = room(dst.Lengths, features*rows)
	dst.Offsets = room(dst.Offsets, features*rows+1)
	dst.Offsets[0] = 0
	n := 0
	for f := range features {
		from, to := j.Lengths[f*slots:(f+1)*slots], dst.Lengths[f*rows:(f+1)*rows]
		if inverse == nil {
			copy(to, from)
		} else {
			for b, s := range inverse {
				to[b] = from[s]
			}
		}
		offsets := dst.Offsets[1+f*rows : 1+(f+1)*rows]
		copy(offsets, to)
		var ok bool
		if n, ok = accumulate(offsets, n); !ok {
			return fmt.Errorf("expanded lists: %d rows of %d features have more than %d values", rows, features, vector.MaxElements)
		}
	}
	dst.Values = expandValues(dst.Values, j.Values, j, dst, slots, rows, inverse)
	dst.FloatValues = expandValues(dst.FloatValues, j.FloatValues, j, dst, slots, rows, inverse)
	dst.Weights = expandValues(dst.Weights, j.Weights, j, dst, slots, rows, inverse)
	j.expandPresence(dst, slots, rows, inverse)
	return nil
}

// expandValues copies the list of every row.
func expandValues[T any](out, values []T, j, dst *Jagged, slots, rows int, inverse []int32) []T {
	if values == nil {
		return nil
	}
	out = room(out, int(dst.Offsets[len(dst.Offsets)-1]))
	starts := j.Starts
	if starts == nil {
		starts = j.Offsets
	}
	at := 0
	for f := range j.Features {
		for b := range rows {
			k := f*slots + b
			if inverse != nil {
				k = f*slots + int(inverse[b])
			}
			start := starts[k]
			at += copy(out[at:], values[start:start+j.Lengths[k]])
		}
	}
	return out
}

func (j *Jagged) expandPresence(dst *Jagged, slots, rows int, inverse []int32) {
	if j.Present == nil {
		dst.Present = nil
		return
	}
	words := vector.BitmapWords(rows)
	dst.Present = room(dst.Present, len(j.Features)*words)
	clear(dst.Present)
	for f := range j.Features {
		c := vector.Column{Rows: rows, Slots: slots, Inverse: inverse, Present: j.PresentOf(f)}
		putPresence(dst.PresentOf(f), 0, &c, 0, rows)
	}
}
