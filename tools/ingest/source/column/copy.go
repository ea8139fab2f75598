package column

import "github.com/dsistore/dsistore/format/vector"

// VariableList returns a fixed list as a list, and a list as it is.
func VariableList(a *Array) *Array {
	if a.Type.Shape != FixedList {
		return a
	}
	out := *a
	out.Type = &Type{Name: a.Type.Name, Shape: List, Children: a.Type.Children}
	out.Offsets = make([]int32, a.Len+1)
	for i := range out.Offsets {
		out.Offsets[i] = int32(i * a.Type.Dim)
	}
	return &out
}

// CompactLists returns a, an array with offsets, such that null entries have an empty range: a itself when they do.
func CompactLists(a *Array) *Array {
	if a.Valid == nil {
		return a
	}
	clean := true
	for i := range a.Len {
		if !a.Valid.Get(i) && a.Offsets[i+1] != a.Offsets[i] {
			clean = false
			break
		}
	}
	if clean {
		return a
	}
	out := *a
	out.Offsets = make([]int32, 1, a.Len+1)
	var ranges []span
	total := int32(0)
	for i := range a.Len {
		if a.Valid.Get(i) && a.Offsets[i+1] > a.Offsets[i] {
			ranges = append(ranges, span{int(a.Offsets[i]), int(a.Offsets[i+1])})
			total += a.Offsets[i+1] - a.Offsets[i]
		}
		out.Offsets = append(out.Offsets, total)
	}
	out.Data = nil
	for _, r := range ranges {
		if len(a.Data) > 0 {
			out.Data = append(out.Data, a.Data[r.lo:r.hi]...)
		}
	}
	out.Children = nil
	for _, c := range a.Children {
		out.Children = append(out.Children, c.gather(ranges))
	}
	return &out
}

// WithoutNulls returns a, a list or map whose null entries have an empty range, without those of its elements that are null in of,
// which is what it lists, or a part of that: a itself when none is.
func WithoutNulls(a, of *Array) *Array {
	if of.ValidCount() == of.Len {
		return a
	}
	out := *a
	out.Offsets = make([]int32, 1, a.Len+1)
	var ranges []span
	total := int32(0)
	for i := range a.Len {
		for e := int(a.Offsets[i]); e < int(a.Offsets[i+1]); e++ {
			if of.IsNull(e) {
				continue
			}
			total++
			if last := len(ranges) - 1; last >= 0 && ranges[last].hi == e {
				ranges[last].hi++
			} else {
				ranges = append(ranges, span{e, e + 1})
			}
		}
		out.Offsets = append(out.Offsets, total)
	}
	out.Children = nil
	for _, c := range a.Children {
		out.Children = append(out.Children, c.gather(ranges))
	}
	return &out
}

type span struct{ lo, hi int }

// gather returns a copied array of the entries in ranges, which ascend.
func (a *Array) gather(ranges []span) *Array {
	out := &Array{Type: a.Type}
	for _, r := range ranges {
		out.Len += r.hi - r.lo
	}
	if a.Valid != nil {
		out.Valid = make(vector.Bitmap, vector.BitmapWords(out.Len))
		at := 0
		for _, r := range ranges {
			for i := r.lo; i < r.hi; i++ {
				if a.Valid.Get(i) {
					out.Valid.Set(at)
				}
				at++
			}
		}
	}
	at, next := 0, 0
	for _, r := range ranges {
		for next < len(a.Faults) && a.Faults[next].Entry < r.lo {
			next++
		}
		for next < len(a.Faults) && a.Faults[next].Entry < r.hi {
			out.Faults = append(out.Faults, Fault{a.Faults[next].Entry - r.lo + at, a.Faults[next].Err})
			next++
		}
		at += r.hi - r.lo
	}
	inner := ranges
	switch a.Type.Shape {
	case Number:
		for _, r := range ranges {
			switch a.Type.Elem.Physical() {
			case vector.Float32Values:
				out.Floats = append(out.Floats, a.Floats[r.lo:r.hi]...)
			case vector.Float64Values:
				out.Doubles = append(out.Doubles, a.Doubles[r.lo:r.hi]...)
			default:
				out.Ints = append(out.Ints, a.Ints[r.lo:r.hi]...)
			}
		}
	case Bytes, String, List, Map:
		out.Offsets = make([]int32, 1, out.Len+1)
		inner = make([]span, len(ranges))
		total := int32(0)
		for k, r := range ranges {
			for i := r.lo; i < r.hi; i++ {
				total += a.Offsets[i+1] - a.Offsets[i]
				out.Offsets = append(out.Offsets, total)
			}
			inner[k] = span{int(a.Offsets[r.lo]), int(a.Offsets[r.hi])}
			if len(a.Data) > 0 {
				out.Data = append(out.Data, a.Data[inner[k].lo:inner[k].hi]...)
			}
		}
	case FixedList:
		inner = make([]span, len(ranges))
		for k, r := range ranges {
			inner[k] = span{r.lo * a.Type.Dim, r.hi * a.Type.Dim}
		}
	}
	for _, c := range a.Children {
		out.Children = append(out.Children, c.gather(inner))
	}
	return out
}

// FillFrom gives a, whose n and valid are set, copies of the first values values of src, which holds no nulls.
func (a *Array) FillFrom(src *Array, values int) {
	switch a.Type.Shape {
	case Number:
		switch a.Type.Elem.Physical() {
		case vector.Float32Values:
			a.Floats = spread(a, src.Floats[:values])
		case vector.Float64Values:
			a.Doubles = spread(a, src.Doubles[:values])
		default:
			a.Ints = spread(a, src.Ints[:values])
		}
	case Bytes, String:
		if a.Valid == nil {
			a.Offsets = append([]int32(nil), src.Offsets[:values+1]...)
		} else {
			a.Offsets = make([]int32, 1, a.Len+1)
			next := 0
			for i := range a.Len {
				if a.Valid.Get(i) {
					next++
				}
				a.Offsets = append(a.Offsets, src.Offsets[next])
			}
		}
		a.Data = append([]byte(nil), src.Data[:src.Offsets[values]]...)
	}
	if len(src.Faults) == 0 {
		return
	}
	next, f := 0, 0
	for i := 0; i < a.Len && f < len(src.Faults); i++ {
		if a.Valid == nil || a.Valid.Get(i) {
			if src.Faults[f].Entry == next {
				a.Faults = append(a.Faults, Fault{i, src.Faults[f].Err})
				f++
			}
			next++
		}
	}
}

// spread returns vals with a zero wherever a is null.
func spread[T int64 | float32 | float64](a *Array, vals []T) []T {
	if a.Valid == nil {
		return append([]T(nil), vals...)
	}
	out := make([]T, a.Len)
	next := 0
	for i := range out {
		if a.Valid.Get(i) {
			out[i] = vals[next]
			next++
		}
	}
	return out
}

// DropFirst drops the first n entries of a leaf that holds no nulls.
func (a *Array) DropFirst(n int) {
	a.Len -= n
	switch a.Type.Shape {
	case Number:
		switch a.Type.Elem.Physical() {
		case vector.Float32Values:
			a.Floats = a.Floats[:copy(a.Floats, a.Floats[n:])]
		case vector.Float64Values:
			a.Doubles = a.Doubles[:copy(a.Doubles, a.Doubles[n:])]
		default:
			a.Ints = a.Ints[:copy(a.Ints, a.Ints[n:])]
		}
	case Bytes, String:
		at := a.Offsets[n]
		a.Data = a.Data[:copy(a.Data, a.Data[at:])]
		for i := range a.Len + 1 {
			a.Offsets[i] = a.Offsets[i+n] - at
		}
		a.Offsets = a.Offsets[:a.Len+1]
	}
	kept := a.Faults[:0]
	for _, f := range a.Faults {
		if f.Entry >= n {
			kept = append(kept, Fault{f.Entry - n, f.Err})
		}
	}
	a.Faults = kept
}
