package column

import (
	"sort"

	"github.com/dsistore/dsistore/format/vector"
)

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
	clean := true
	for i := 0; a.Valid != nil && clean && i < a.Len; i++ {
		clean = a.Valid.Get(i) || a.Offsets[i+1] == a.Offsets[i]
	}
	if clean {
		return a
	}
	out := NewArray(a.Type)
	for i := range a.Len {
		if a.Valid.Get(i) {
			out.AppendFrom(a, i, i+1)
		} else {
			out.AppendNull()
		}
	}
	return out
}

// WithoutNulls returns a, a list or map whose null entries have an empty range, without those of its elements that are
// null in of, which is what it lists, or a part of that: a itself when none is.
func WithoutNulls(a, of *Array) *Array {
	if of.ValidCount() == of.Len {
		return a
	}
	out := NewArray(a.Type)
	for i := range a.Len {
		if a.IsNull(i) {
			out.AppendNull()
			continue
		}
		for e := int(a.Offsets[i]); e < int(a.Offsets[i+1]); e++ {
			for k, c := range a.Children {
				if !of.IsNull(e) {
					out.Children[k].AppendFrom(c, e, e+1)
				}
			}
		}
		out.AppendEntry(true)
	}
	return out
}

// AppendFrom appends entries [lo, hi) of src, an array of the same type, with their faults.
func (a *Array) AppendFrom(src *Array, lo, hi int) {
	if src.Valid == nil && a.Valid == nil {
		a.Len += hi - lo
	} else {
		for i := lo; i < hi; i++ {
			a.Mark(src.Valid == nil || src.Valid.Get(i))
		}
	}
	first := sort.Search(len(src.Faults), func(i int) bool { return src.Faults[i].Entry >= lo })
	for _, f := range src.Faults[first:] {
		if f.Entry < hi {
			a.Faults = append(a.Faults, Fault{a.Len - hi + f.Entry, f.Err})
		}
	}
	switch a.Type.Shape {
	case Number:
		a.Ints = append(a.Ints, part(src.Ints, lo, hi)...)
		a.Floats = append(a.Floats, part(src.Floats, lo, hi)...)
		a.Doubles = append(a.Doubles, part(src.Doubles, lo, hi)...)
	case Bytes, String, List, Map:
		shift := a.Offsets[len(a.Offsets)-1] - src.Offsets[lo]
		for _, o := range src.Offsets[lo+1 : hi+1] {
			a.Offsets = append(a.Offsets, o+shift)
		}
		if lo, hi = int(src.Offsets[lo]), int(src.Offsets[hi]); len(src.Children) == 0 {
			a.Data = append(a.Data, src.Data[lo:hi]...)
		}
	case FixedList:
		lo, hi = lo*a.Type.Dim, hi*a.Type.Dim
	}
	for k, c := range src.Children {
		a.Children[k].AppendFrom(c, lo, hi)
	}
}

// SizeBytesOf returns about how many bytes AppendFrom appends for entries [lo, hi) of a.
func (a *Array) SizeBytesOf(lo, hi int) int64 {
	size := 8 * int64(hi-lo)
	switch a.Type.Shape {
	case Bytes, String:
		size += int64(a.Offsets[hi] - a.Offsets[lo])
	case List, Map:
		lo, hi = int(a.Offsets[lo]), int(a.Offsets[hi])
	case FixedList:
		lo, hi = lo*a.Type.Dim, hi*a.Type.Dim
	}
	for _, c := range a.Children {
		size += c.SizeBytesOf(lo, hi)
	}
	return size
}

// FillFrom gives a, whose Len and Valid are set, copies of the first values values of src, which holds no nulls.
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
