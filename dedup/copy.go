package dedup

import "github.com/dsistore/dsistore/format/vector"

// slotPresence returns dst, whose memory is reused, set to the presence of the rows reps, and whether any is null.
func slotPresence(dst, present vector.Bitmap, reps []int32) (_ vector.Bitmap, nulls bool) {
	dst = dst[:0].Grow(len(reps))
	for slot, row := range reps {
		if present.Get(int(row)) {
			dst.Set(slot)
		} else {
			nulls = true
		}
	}
	return dst, nulls
}

// copyValues sets the values of out, and its scores, to the spans of c's, end to end.
func copyValues(out, c *vector.Column, spans []span) {
	switch c.Type.Physical() {
	case vector.Int64Values:
		out.Ints = copySpans(out.Ints, c.Ints, spans)
	case vector.Float32Values:
		out.Floats = copySpans(out.Floats, c.Floats, spans)
	case vector.Float64Values:
		out.Doubles = copySpans(out.Doubles, c.Doubles, spans)
	case vector.ByteValues:
		out.Data = copySpans(out.Data, c.Data, spans)
	}
	switch {
	case c.Type.Kind != vector.Weighted:
	case c.Type.Score == vector.Float64:
		out.ScoreDoubles = copySpans(out.ScoreDoubles, c.ScoreDoubles, spans)
	default:
		out.ScoreFloats = copySpans(out.ScoreFloats, c.ScoreFloats, spans)
	}
}

func copySpans[T any](dst, src []T, spans []span) []T {
	dst = dst[:0]
	for _, s := range spans {
		if s.hi == s.lo+1 {
			dst = append(dst, src[s.lo])
			continue
		}
		dst = append(dst, src[s.lo:s.hi]...)
	}
	return dst
}

// spansOf appends the spans of the values of rows reps of c, and returns how many values these are.
func spansOf(spans []span, c *vector.Column, reps []int32) ([]span, int) {
	n := 0
	for _, row := range reps {
		lo, hi := c.SlotRange(int(row))
		if lo == hi {
			continue
		}
		n += hi - lo
		if k := len(spans); k > 0 && int(spans[k-1].hi) == lo {
			spans[k-1].hi = int32(hi)
			continue
		}
		spans = append(spans, span{int32(lo), int32(hi)})
	}
	return spans, n
}
