package source

import "github.com/dsistore/dsistore/format/vector"

// variableList returns a fixed list as a list, and a list as it is.
func variableList(a *array) *array {
	if a.node.shape != shapeFixedList {
		return a
	}
	out := *a
	out.node = &node{name: a.node.name, nullable: a.node.nullable, shape: shapeList, children: a.node.children}
	out.offsets = make([]int32, a.n+1)
	for i := range out.offsets {
		out.offsets[i] = int32(i * a.node.dim)
	}
	return &out
}

// compactLists returns a, an array with offsets, such that null entries have an empty range: a itself when they do.
func compactLists(a *array) *array {
	if a.valid == nil {
		return a
	}
	clean := true
	for i := range a.n {
		if !a.valid.Get(i) && a.offsets[i+1] != a.offsets[i] {
			clean = false
			break
		}
	}
	if clean {
		return a
	}
	out := *a
	out.offsets = make([]int32, 1, a.n+1)
	var ranges []span
	total := int32(0)
	for i := range a.n {
		if a.valid.Get(i) && a.offsets[i+1] > a.offsets[i] {
			ranges = append(ranges, span{int(a.offsets[i]), int(a.offsets[i+1])})
			total += a.offsets[i+1] - a.offsets[i]
		}
		out.offsets = append(out.offsets, total)
	}
	out.data = nil
	for _, r := range ranges {
		if len(a.data) > 0 {
			out.data = append(out.data, a.data[r.lo:r.hi]...)
		}
	}
	out.children = nil
	for _, c := range a.children {
		out.children = append(out.children, c.gather(ranges))
	}
	return &out
}

// withoutNulls returns a, a list or map whose null entries have an empty range, without those of its elements that are null in of,
// which is what it lists, or a part of that: a itself when none is.
func withoutNulls(a, of *array) *array {
	if of.validCount() == of.n {
		return a
	}
	out := *a
	out.offsets = make([]int32, 1, a.n+1)
	var ranges []span
	total := int32(0)
	for i := range a.n {
		for e := int(a.offsets[i]); e < int(a.offsets[i+1]); e++ {
			if of.isNull(e) {
				continue
			}
			total++
			if last := len(ranges) - 1; last >= 0 && ranges[last].hi == e {
				ranges[last].hi++
			} else {
				ranges = append(ranges, span{e, e + 1})
			}
		}
		out.offsets = append(out.offsets, total)
	}
	out.children = nil
	for _, c := range a.children {
		out.children = append(out.children, c.gather(ranges))
	}
	return &out
}

type span struct{ lo, hi int }

// gather returns a copied array of the entries in ranges, which ascend.
func (a *array) gather(ranges []span) *array {
	out := &array{node: a.node}
	for _, r := range ranges {
		out.n += r.hi - r.lo
	}
	if a.valid != nil {
		out.valid = make(vector.Bitmap, vector.BitmapWords(out.n))
		at := 0
		for _, r := range ranges {
			for i := r.lo; i < r.hi; i++ {
				if a.valid.Get(i) {
					out.valid.Set(at)
				}
				at++
			}
		}
	}
	at, next := 0, 0
	for _, r := range ranges {
		for next < len(a.faults) && a.faults[next].entry < r.lo {
			next++
		}
		for next < len(a.faults) && a.faults[next].entry < r.hi {
			out.faults = append(out.faults, fault{a.faults[next].entry - r.lo + at, a.faults[next].err})
			next++
		}
		at += r.hi - r.lo
	}
	inner := ranges
	switch a.node.shape {
	case shapeNumber:
		for _, r := range ranges {
			switch a.node.elem.Physical() {
			case vector.Float32Values:
				out.floats = append(out.floats, a.floats[r.lo:r.hi]...)
			case vector.Float64Values:
				out.doubles = append(out.doubles, a.doubles[r.lo:r.hi]...)
			default:
				out.ints = append(out.ints, a.ints[r.lo:r.hi]...)
			}
		}
	case shapeBytes, shapeString, shapeList, shapeMap:
		out.offsets = make([]int32, 1, out.n+1)
		inner = make([]span, len(ranges))
		total := int32(0)
		for k, r := range ranges {
			for i := r.lo; i < r.hi; i++ {
				total += a.offsets[i+1] - a.offsets[i]
				out.offsets = append(out.offsets, total)
			}
			inner[k] = span{int(a.offsets[r.lo]), int(a.offsets[r.hi])}
			if len(a.data) > 0 {
				out.data = append(out.data, a.data[inner[k].lo:inner[k].hi]...)
			}
		}
	case shapeFixedList:
		inner = make([]span, len(ranges))
		for k, r := range ranges {
			inner[k] = span{r.lo * a.node.dim, r.hi * a.node.dim}
		}
	}
	for _, c := range a.children {
		out.children = append(out.children, c.gather(inner))
	}
	return out
}

// fillFrom gives a, whose n and valid are set, copies of the first values values of src, which holds no nulls.
func (a *array) fillFrom(src *array, values int) {
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = spread(a, src.floats[:values])
		case vector.Float64Values:
			a.doubles = spread(a, src.doubles[:values])
		default:
			a.ints = spread(a, src.ints[:values])
		}
	case shapeBytes, shapeString:
		if a.valid == nil {
			a.offsets = append([]int32(nil), src.offsets[:values+1]...)
		} else {
			a.offsets = make([]int32, 1, a.n+1)
			next := 0
			for i := range a.n {
				if a.valid.Get(i) {
					next++
				}
				a.offsets = append(a.offsets, src.offsets[next])
			}
		}
		a.data = append([]byte(nil), src.data[:src.offsets[values]]...)
	}
	if len(src.faults) == 0 {
		return
	}
	next, f := 0, 0
	for i := 0; i < a.n && f < len(src.faults); i++ {
		if a.valid == nil || a.valid.Get(i) {
			if src.faults[f].entry == next {
				a.faults = append(a.faults, fault{i, src.faults[f].err})
				f++
			}
			next++
		}
	}
}

// spread returns vals with a zero wherever a is null.
func spread[T int64 | float32 | float64](a *array, vals []T) []T {
	if a.valid == nil {
		return append([]T(nil), vals...)
	}
	out := make([]T, a.n)
	next := 0
	for i := range out {
		if a.valid.Get(i) {
			out[i] = vals[next]
			next++
		}
	}
	return out
}

// dropFirst drops the first n entries of a leaf that holds no nulls.
func (a *array) dropFirst(n int) {
	a.n -= n
	switch a.node.shape {
	case shapeNumber:
		switch a.node.elem.Physical() {
		case vector.Float32Values:
			a.floats = a.floats[:copy(a.floats, a.floats[n:])]
		case vector.Float64Values:
			a.doubles = a.doubles[:copy(a.doubles, a.doubles[n:])]
		default:
			a.ints = a.ints[:copy(a.ints, a.ints[n:])]
		}
	case shapeBytes, shapeString:
		at := a.offsets[n]
		a.data = a.data[:copy(a.data, a.data[at:])]
		for i := range a.n + 1 {
			a.offsets[i] = a.offsets[i+n] - at
		}
		a.offsets = a.offsets[:a.n+1]
	}
	kept := a.faults[:0]
	for _, f := range a.faults {
		if f.entry >= n {
			kept = append(kept, fault{f.entry - n, f.err})
		}
	}
	a.faults = kept
}
