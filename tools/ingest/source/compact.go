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
